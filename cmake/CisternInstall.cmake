# `cmake --install` puts the libraries, their headers and the `cistern` program in place, so that
# another project can say find_package(cistern) and link cistern::engine. After add_subdirectory the
# libraries have the same names.

include(CMakePackageConfigHelpers)

set(cistern_package ${CMAKE_INSTALL_LIBDIR}/cmake/cistern)
set(cistern_libraries cistern_static cistern_shared)
install(TARGETS ${cistern_libraries} EXPORT cistern
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT cistern NAMESPACE cistern:: FILE cisternTargets.cmake DESTINATION ${cistern_package})
install(DIRECTORY include/cistern DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET cistern)
  install(TARGETS cistern RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

configure_package_config_file(
  cmake/cisternConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/cisternConfig.cmake
  INSTALL_DESTINATION ${cistern_package})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/cisternConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/cisternConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/cisternConfigVersion.cmake
        DESTINATION ${cistern_package})
