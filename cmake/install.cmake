# Rules of `cmake --install`, and the package for find_package(heddle).
include(CMakePackageConfigHelpers)

install(TARGETS heddle_core EXPORT heddle_targets LIBRARY DESTINATION lib)
if(heddle_modules)
  install(TARGETS ${heddle_modules} LIBRARY DESTINATION lib)
endif()
foreach(folder IN LISTS heddle_folders)
  if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/${folder}")
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/${folder}" DESTINATION include/heddle
      FILES_MATCHING PATTERN "*.h" PATTERN "runtime" EXCLUDE)
  endif()
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
