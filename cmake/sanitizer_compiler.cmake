# Chooses Clang for builds with sanitizers, before project() chooses a compiler. With sanitizers,
# GCC needs more than twice the time of Clang. If the user names a compiler, the build uses that one.
# If Clang or its sanitizer libraries are missing, the build uses the default compiler.
if(HEDDLE_SANITIZE AND NOT CMAKE_CXX_COMPILER AND NOT DEFINED ENV{CXX}
   AND NOT CMAKE_C_COMPILER AND NOT DEFINED ENV{CC} AND NOT CMAKE_TOOLCHAIN_FILE)
  find_program(HEDDLE_CLANG clang++)
  if(HEDDLE_CLANG)
    file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/sanitizer_probe.cpp" "#include <span>\n#include <barrier>\nint main() {}\n")
    execute_process(
      COMMAND "${HEDDLE_CLANG}" -std=c++20 "-fsanitize=${HEDDLE_SANITIZE}" -o sanitizer_probe sanitizer_probe.cpp
      WORKING_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}"
      RESULT_VARIABLE heddle_probe OUTPUT_QUIET ERROR_QUIET)
    if(heddle_probe EQUAL 0)
      set(CMAKE_CXX_COMPILER "${HEDDLE_CLANG}")
      message(STATUS "heddle: compiles with ${HEDDLE_CLANG}, because sanitizers are on")
    endif()
  endif()
endif()
