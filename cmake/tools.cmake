# The command line tools: tools/<folder>/*.cpp.

# Builds everything that a user runs: the heddle command and every module that can be built.
add_custom_target(heddle_product DEPENDS heddle_core ${heddle_modules})
# Builds the fuzzer. The target is empty if the fuzzer has no sources.
add_custom_target(heddle_fuzzer)

# The library of random fusions (tools/random), which the fuzzer and the tests use.
heddle_glob(random_sources tools/random)
add_library(heddle_random STATIC EXCLUDE_FROM_ALL ${random_sources})
heddle_batch(heddle_random)
target_link_libraries(heddle_random PUBLIC heddle_core PRIVATE heddle_options)

if(NOT HEDDLE_TOOLS)
  return()
endif()

find_package(CLI11 2.1 REQUIRED)

function(heddle_tool name)
  if(NOT ARGN)
    return()
  endif()
  add_executable(${name} ${ARGN})
  heddle_batch(${name})
  target_link_libraries(${name} PRIVATE heddle_commands heddle_core heddle_options CLI11::CLI11
    nlohmann_json::nlohmann_json)
endfunction()

# The library of the commands of heddle. The fuzzer also runs these commands.
heddle_glob(command_sources tools/heddle tools/arguments tools/bench tools/profile
  tools/tune)
list(FILTER command_sources EXCLUDE REGEX "/main\\.cpp$")
add_library(heddle_commands STATIC EXCLUDE_FROM_ALL ${command_sources})
heddle_batch(heddle_commands)
target_link_libraries(heddle_commands PUBLIC heddle_core
  PRIVATE heddle_options CLI11::CLI11 nlohmann_json::nlohmann_json)

heddle_tool(heddle "${PROJECT_SOURCE_DIR}/tools/heddle/main.cpp")
heddle_glob(fuzz_sources tools/fuzz)
heddle_tool(heddle-fuzz ${fuzz_sources})
if(TARGET heddle-fuzz)
  target_link_libraries(heddle-fuzz PRIVATE heddle_random)
endif()
# The load test of one process.
heddle_glob(load_sources tools/load)
heddle_tool(heddle-load ${load_sources})
if(TARGET heddle)
  add_dependencies(heddle_product heddle)
endif()
if(TARGET heddle-fuzz)
  add_dependencies(heddle_fuzzer heddle-fuzz)
endif()

# The example of heddle inside an MPI program.
if(heddle_have_mpi AND HEDDLE_TESTS)
  add_executable(mpi_job examples/mpi_job.cpp)
  target_link_libraries(mpi_job PRIVATE heddle::heddle heddle_options MPI::MPI_CXX)
  add_dependencies(mpi_job heddle_mpi)
endif()
