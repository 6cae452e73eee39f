# The libheddle.so that is installed. It consists of the objects of heddle_core, but exports only the
# symbols that users, the modules and the command heddle need. Both libraries have the same soname, so
# the modules and the command run with either.
set(heddle_installed heddle_core)
if(HEDDLE_SANITIZE)
  return()
endif()

set(heddle_installed_users ${heddle_modules})
if(TARGET heddle)
  list(APPEND heddle_installed_users heddle)
endif()
set(heddle_installed_files)
foreach(user IN LISTS heddle_installed_users)
  list(APPEND heddle_installed_files $<TARGET_FILE:${user}>)
endforeach()

set(heddle_installed_map "${PROJECT_BINARY_DIR}/generated/exported_symbols.map")
set(heddle_export_script "${PROJECT_SOURCE_DIR}/cmake/export_symbols.sh")
add_custom_command(
  OUTPUT "${heddle_installed_map}"
  COMMAND bash "${heddle_export_script}" "${CMAKE_NM}" "${heddle_installed_map}" "${heddle_include_dir}"
          $<TARGET_FILE:heddle_core> ${heddle_installed_files}
  DEPENDS "${heddle_export_script}" ${heddle_generated_headers} heddle_core ${heddle_installed_users}
  COMMENT "Listing the symbols that libheddle.so exports"
  VERBATIM)

set(heddle_installed heddle_installed)
add_library(heddle_installed SHARED $<TARGET_OBJECTS:heddle_core> "${heddle_installed_map}")
heddle_library(heddle_installed "${heddle_installed_map}")
set_target_properties(heddle_installed PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/installed")
add_dependencies(heddle_product heddle_installed)
