# Rules of `cmake --install`, the package for find_package(heddle), and heddle.pc for pkg-config. The
# fuzzer, the load test and the examples are not installed.
include(CMakePackageConfigHelpers)

install(TARGETS ${heddle_installed} EXPORT heddle_targets LIBRARY DESTINATION lib)
if(heddle_modules)
  install(TARGETS ${heddle_modules} LIBRARY DESTINATION lib)
endif()
if(TARGET heddle)
  install(TARGETS heddle RUNTIME DESTINATION bin)
endif()
install(DIRECTORY "${heddle_include_dir}/heddle" DESTINATION include FILES_MATCHING PATTERN "*.h")

set(package_dir lib/cmake/heddle)
install(EXPORT heddle_targets NAMESPACE heddle:: FILE heddleTargets.cmake DESTINATION ${package_dir})
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/HeddleConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/heddle-config.cmake" INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/heddle-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/heddle-config.cmake"
              "${PROJECT_BINARY_DIR}/heddle-config-version.cmake"
  DESTINATION ${package_dir})

configure_file("${PROJECT_SOURCE_DIR}/cmake/heddle.pc.in" "${PROJECT_BINARY_DIR}/heddle.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/heddle.pc" DESTINATION lib/pkgconfig)
