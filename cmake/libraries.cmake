# libheddle and its modules. The sources of each folder are globbed, so a new file needs no change
# here.
set(heddle_folders ir codegen comm host)
set(heddle_module_folders codegen/cuda host/device/cuda host/device/cudnn host/device/onednn
  comm/cuda comm/nccl comm/mpi)

function(heddle_glob out)
  set(found)
  foreach(folder IN LISTS ARGN)
    file(GLOB_RECURSE more CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.cpp")
    list(APPEND found ${more})
  endforeach()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

heddle_glob(core_sources ${heddle_folders})
foreach(folder IN LISTS heddle_module_folders)
  list(FILTER core_sources EXCLUDE REGEX "/${folder}/")
endforeach()
if(NOT core_sources)
  return()
endif()

file(GLOB runtime_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/codegen/runtime/*.h")
foreach(header IN LISTS runtime_headers)
  heddle_embed_header("${header}" core_sources)
endforeach()

# The libheddle.so of the build. It exports all symbols of heddle, because the tests call internal
# functions. cmake/installed_library.cmake links the same objects to the library that is installed.
add_library(heddle_core SHARED ${core_sources})
# Unity builds compile headers and templates once per batch of files, not once per file.
function(heddle_batch target)
  if(HEDDLE_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${HEDDLE_UNITY})
  endif()
endfunction()
heddle_batch(heddle_core)
# With a sanitizer, the library takes twice as long to compile with -O1 as with -O0, but the tests then
# need less than half the time. -O2 would take longer to compile, for little more speed.
if(HEDDLE_SANITIZE)
  target_compile_options(heddle_core PRIVATE -O1)
endif()
# GCC 12 does not vectorize the loops of these files with -O2. -fno-trapping-math is safe, because
# heddle never reads the flags of floating-point exceptions.
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set_source_files_properties("${PROJECT_SOURCE_DIR}/comm/reduce.cpp"
    "${PROJECT_SOURCE_DIR}/host/device/cpu/cpu_matmul.cpp"
    "${PROJECT_SOURCE_DIR}/host/device/cpu/part_matmul.cpp" PROPERTIES
    COMPILE_OPTIONS "-O3;-fno-trapping-math" SKIP_PRECOMPILE_HEADERS ON)
endif()
set_source_files_properties("${PROJECT_SOURCE_DIR}/ir/base/version.cpp" PROPERTIES
  COMPILE_DEFINITIONS "HEDDLE_VERSION=\"${PROJECT_VERSION}\"")
target_include_directories(heddle_core PRIVATE "${PROJECT_SOURCE_DIR}" ${CBLAS_INCLUDE_DIR})

# Sets the names, the libraries and the exported symbols of a libheddle.so. MAP is a version script of
# the linker.
function(heddle_library target map)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME heddle EXPORT_NAME heddle LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:include>)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(${target}
    PUBLIC Threads::Threads
    PRIVATE $<BUILD_INTERFACE:heddle_options> $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>
            $<BUILD_INTERFACE:OpenSSL::Crypto> ${OPENBLAS_LIBRARY} ${CMAKE_DL_LIBS})
  # With this option, linking the core fails if the core uses a symbol of a module. Without it, the
  # error would appear only when a program loads the core.
  target_link_options(${target} PRIVATE ${heddle_no_undefined})
  # Makes libheddle use its own versions of inline functions, even if the program contains other
  # versions. The tests contain versions that are not optimized (tests/CMakeLists.txt) or have other
  # sanitizer options.
  target_link_options(${target} PRIVATE LINKER:-Bsymbolic-functions)
  if(NOT HEDDLE_SANITIZE)
    target_link_options(${target} PRIVATE "LINKER:--version-script=${map}")
    set_target_properties(${target} PROPERTIES LINK_DEPENDS "${map}")
  endif()
endfunction()
heddle_library(heddle_core "${PROJECT_SOURCE_DIR}/cmake/exported_symbols.map")

# The sources of this project include each other by paths from its root, and use fmt and Boost. The
# public headers use neither.
target_include_directories(heddle_options INTERFACE "${PROJECT_SOURCE_DIR}")
target_link_libraries(heddle_options INTERFACE fmt::fmt Boost::headers)

# The target for projects that add heddle with add_subdirectory(). It offers the same headers as an
# installation.
include("${CMAKE_CURRENT_LIST_DIR}/generate_headers.cmake")
add_library(heddle_package INTERFACE)
add_library(heddle::heddle ALIAS heddle_package)
target_include_directories(heddle_package INTERFACE "${heddle_include_dir}")
target_link_libraries(heddle_package INTERFACE heddle_core)

if(HEDDLE_PRECOMPILE)
  target_precompile_headers(heddle_core PRIVATE <algorithm> <functional> <map> <memory> <optional> <set> <string>
    <unordered_map> <variant> <vector> <fmt/format.h> "${PROJECT_SOURCE_DIR}/ir/graph/fusion.h")
endif()

# heddle_module(NAME FOLDERS ... LIBRARIES ... INCLUDES ...) adds a module, which the core loads
# with dlopen on first use.
set(heddle_modules)
function(heddle_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FOLDERS;LIBRARIES;INCLUDES")
  heddle_glob(sources ${arg_FOLDERS})
  if(NOT sources)
    message(STATUS "heddle: ${name} has no sources yet")
    return()
  endif()
  add_library(${name} MODULE ${sources})
  target_include_directories(${name} SYSTEM PRIVATE ${arg_INCLUDES})
  target_link_libraries(${name} PRIVATE heddle_core heddle_options ${arg_LIBRARIES} ${CMAKE_DL_LIBS})
  target_link_options(${name} PRIVATE ${heddle_no_undefined})
  heddle_batch(${name})
  set(heddle_modules ${heddle_modules} ${name} PARENT_SCOPE)
endfunction()

if(heddle_have_cuda)
  heddle_module(heddle_cuda FOLDERS codegen/cuda host/device/cuda comm/cuda
    LIBRARIES CUDA::cudart CUDA::nvrtc CUDA::cublasLt)
endif()
if(heddle_have_cudnn)
  heddle_module(heddle_cudnn FOLDERS host/device/cudnn
    LIBRARIES ${CUDNN_LIBRARY} CUDA::cudart INCLUDES ${CUDNN_INCLUDE_DIR})
endif()
if(heddle_have_nccl)
  heddle_module(heddle_nccl FOLDERS comm/nccl
    LIBRARIES ${NCCL_LIBRARY} CUDA::cudart INCLUDES ${NCCL_INCLUDE_DIR})
endif()
if(heddle_have_mpi)
  heddle_module(heddle_mpi FOLDERS comm/mpi LIBRARIES MPI::MPI_CXX)
endif()
if(heddle_have_onednn)
  heddle_module(heddle_onednn FOLDERS host/device/onednn
    LIBRARIES ${ONEDNN_LIBRARY} OpenMP::OpenMP_CXX INCLUDES ${ONEDNN_INCLUDE_DIR})
endif()
