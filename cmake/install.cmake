# Rules of `cmake --install`, and the package for find_package(heddle).
include(CMakePackageConfigHelpers)

install(TARGETS heddle_core EXPORT heddle_targets LIBRARY DESTINATION lib)
if(heddle_modules)
  install(TARGETS ${heddle_modules} LIBRARY DESTINATION lib)
endif()
# Programs include these headers by paths such as "host/executable.h". The headers include each other
# in the same way.
include("${CMAKE_CURRENT_LIST_DIR}/public_headers.cmake")
foreach(header IN LISTS heddle_public_headers)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES "${PROJECT_SOURCE_DIR}/${header}" DESTINATION "include/heddle/${folder}")
endforeach()

set(package_dir lib/cmake/heddle)
install(EXPORT heddle_targets NAMESPACE heddle:: FILE heddleTargets.cmake DESTINATION ${package_dir})
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/HeddleConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/heddle-config.cmake" INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/heddle-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/heddle-config.cmake"
              "${PROJECT_BINARY_DIR}/heddle-config-version.cmake"
  DESTINATION ${package_dir})
