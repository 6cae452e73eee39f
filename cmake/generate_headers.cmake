# Writes the public headers to the folder include/heddle of the build, in the form in which they are
# installed: they include each other as <heddle/...>, and heddle.h includes all of them.
include("${CMAKE_CURRENT_LIST_DIR}/public_headers.cmake")
set(heddle_include_dir "${PROJECT_BINARY_DIR}/include")

# Writes a file, unless it already has this content. Writing an unchanged file would rebuild all
# programs that include it.
function(heddle_write_header path content)
  set(present)
  if(EXISTS "${path}")
    file(READ "${path}" present)
  endif()
  if(NOT content STREQUAL present)
    file(WRITE "${path}" "${content}")
  endif()
endfunction()

function(heddle_generate_headers folder)
  set(expected "${folder}/heddle.h")
  set(all "#pragma once\n\n// Includes all headers of heddle.\n")
  foreach(header IN LISTS heddle_public_headers)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${header}")
    file(READ "${PROJECT_SOURCE_DIR}/${header}" content)
    string(REGEX REPLACE "(^|\n)#include \"([^\"\n]+)\"" "\\1#include <heddle/\\2>" content "${content}")
    heddle_write_header("${folder}/${header}" "${content}")
    list(APPEND expected "${folder}/${header}")
    string(APPEND all "#include <heddle/${header}>\n")
  endforeach()
  heddle_write_header("${folder}/heddle.h" "${all}")

  set(heddle_generated_headers "${expected}" PARENT_SCOPE)

  # Deletes headers that are no longer public.
  file(GLOB_RECURSE present "${folder}/*.h")
  list(REMOVE_ITEM present ${expected})
  if(present)
    file(REMOVE ${present})
  endif()
endfunction()
heddle_generate_headers("${heddle_include_dir}/heddle")
