# Language level, warnings, sanitizers, ccache and output folders.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g -D_GLIBCXX_ASSERTIONS")
# With a sanitizer, optimized code takes two to three times as long to compile. For the library, this
# pays (cmake/libraries.cmake). For the tests, it would save less time than the compilation costs.
set(CMAKE_CXX_FLAGS_SANITIZE "-O0 -g1 -D_GLIBCXX_ASSERTIONS")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()

# Compiles batches of this many sources as one translation unit (a unity build), so that the compiler
# reads headers and instantiates templates once per batch. This halves the time of a first build.
# Batches of 24 sources would save a tenth more, but a change of one source would then take twice as
# long to compile. With 0, every source is compiled alone.
set(HEDDLE_UNITY 12 CACHE STRING "Sources per translation unit, 0 for no unity build")

# Precompiles the headers that most files include, which saves a fifth of the time of a fresh build.
# With ccache, precompiled headers are off: ccache saves more time, and supports them only with
# special settings.
set(heddle_precompile_default ON)
if(CMAKE_CXX_COMPILER_LAUNCHER)
  set(heddle_precompile_default OFF)
endif()
option(HEDDLE_PRECOMPILE "Precompile common headers" ${heddle_precompile_default})

# Warnings are errors only with the compiler versions that the project is tested with, so that a
# newer compiler does not break a user's build. With precompiled headers, GCC 12 emits false
# warnings for system headers.
set(heddle_werror_default OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13
   AND NOT HEDDLE_SANITIZE AND NOT HEDDLE_PRECOMPILE)
  set(heddle_werror_default ON)
endif()
option(HEDDLE_WERROR "Treat warnings as errors" ${heddle_werror_default})

add_library(heddle_options INTERFACE)
target_compile_options(heddle_options INTERFACE -Wall -Wextra $<$<BOOL:${HEDDLE_WERROR}>:-Werror>)
# GCC 12 sometimes reports a moved std::optional member as uninitialized. This depends on which
# functions it inlines.
target_compile_options(heddle_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
# Makes the paths in messages of internal errors relative to the folder of the sources.
target_compile_options(heddle_options INTERFACE "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
# Makes the linker refuse shared libraries with undefined symbols. Exception: with Clang, only
# executables contain the sanitizer library, so its symbols are undefined in shared libraries.
set(heddle_no_undefined LINKER:--no-undefined)
if(HEDDLE_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(heddle_no_undefined)
endif()
if(HEDDLE_SANITIZE)
  set(heddle_sanitize_flags -fsanitize=${HEDDLE_SANITIZE} -fno-omit-frame-pointer)
  if(HEDDLE_SANITIZE MATCHES "undefined")
    list(APPEND heddle_sanitize_flags -fno-sanitize-recover=undefined)
  endif()
  # The code of the tests is compiled without checks for undefined behaviour
  # (tests/CMakeLists.txt). The last option about a check wins.
  target_compile_options(heddle_options INTERFACE ${heddle_sanitize_flags}
    $<$<BOOL:$<TARGET_PROPERTY:HEDDLE_TEST_CODE>>:-fno-sanitize=undefined>)
  target_compile_definitions(heddle_options INTERFACE HEDDLE_SANITIZED)
  if(HEDDLE_SANITIZE MATCHES "thread")
    target_compile_definitions(heddle_options INTERFACE HEDDLE_SANITIZED_THREADS)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # With sanitizers, GCC reports uninitialized reads that do not exist.
    target_compile_options(heddle_options INTERFACE -Wno-maybe-uninitialized)
  endif()
  target_link_options(heddle_options INTERFACE ${heddle_sanitize_flags})
  # The libraries are ten times as large as without a sanitizer. LLD links them in a third of the time.
  find_program(HEDDLE_LLD ld.lld)
  if(HEDDLE_LLD AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_link_options(heddle_options INTERFACE -fuse-ld=lld)
  endif()
endif()

# The build tree has the layout of an installation, so that the modules are found in the same way.
if(PROJECT_IS_TOP_LEVEL)
  # A new libheddle.so needs no new link of the programs that use it.
  set(CMAKE_LINK_DEPENDS_NO_SHARED ON)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
  set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
  set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
endif()
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(CMAKE_BUILD_RPATH "$ORIGIN" "$ORIGIN/../lib")
set(CMAKE_INSTALL_RPATH "$ORIGIN" "$ORIGIN/../lib")
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
