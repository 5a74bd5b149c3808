# `cmake --install` and `cpack -G DEB`: the headers of include, both libraries, the libraries of
# handles, the licence, the `cistern` command where it was built, its manual and completion, and what
# lets others find all that: a CMake package and two files for pkg-config. Nothing that is installed
# names a place of this machine: the whole may be moved afterwards.
include_guard(GLOBAL)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(cistern_package ${CMAKE_INSTALL_LIBDIR}/cmake/cistern)
set(cistern_generated ${PROJECT_BINARY_DIR}/package)

# ---- Headers, libraries, the command -------------------------------------------------------------

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/cistern ${PROJECT_SOURCE_DIR}/include/cistern-cccl
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT cistern
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT cistern)
install(TARGETS cistern_static cistern_shared ${cistern_handle_libraries} EXPORT cistern
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cistern
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cistern
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET cistern_preload)
  install(TARGETS cistern_preload LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cistern)
endif()
if(TARGET cistern)
  install(TARGETS cistern RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT cistern)
  get_property(cistern_manual TARGET cistern PROPERTY CISTERN_MANUAL)
  if(cistern_manual)
    install(DIRECTORY ${cistern_manual}/ DESTINATION ${CMAKE_INSTALL_DATAROOTDIR} COMPONENT cistern)
  endif()
endif()

# All that `cmake --install` takes: no test and no benchmark.
add_custom_target(cistern_installed DEPENDS cistern_static cistern_shared ${cistern_handle_libraries})
foreach(target cistern_preload cistern)
  if(TARGET ${target})
    add_dependencies(cistern_installed ${target})
  endif()
endforeach()

# ---- find_package(cistern) -----------------------------------------------------------------------

# A line for each library of handles: its name, its vendor, and the names of the vendor's library.
set(cistern_handle_lines "")
foreach(target IN LISTS cistern_handle_libraries)
  get_target_property(name ${target} EXPORT_NAME)
  get_target_property(vendor ${target} CISTERN_VENDOR)
  get_target_property(library ${target} CISTERN_LIBRARY)
  list(JOIN library " " library)
  string(APPEND cistern_handle_lines "_cistern_handles(${name} ${vendor} ${library})\n")
endforeach()
# A linker for C knows nothing of C++'s own library, which the archive needs.
set(cistern_cxx_libraries "")
foreach(library stdc++ c++ m)
  if(library IN_LIST CMAKE_CXX_IMPLICIT_LINK_LIBRARIES)
    list(APPEND cistern_cxx_libraries ${library})
  endif()
endforeach()
set(cistern_toolkit_version "")  # of the CUDA toolkit that this build took
if(CUDAToolkit_FOUND)
  set(cistern_toolkit_version ${CUDAToolkit_VERSION_MAJOR})
endif()

install(EXPORT cistern NAMESPACE cistern:: FILE cisternTargets.cmake DESTINATION ${cistern_package}
        COMPONENT cistern)
configure_file(${PROJECT_SOURCE_DIR}/cmake/cisternConfig.cmake.in
               ${cistern_generated}/cisternConfig.cmake @ONLY)
write_basic_package_version_file(${cistern_generated}/cisternConfigVersion.cmake
                                 VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${cistern_generated}/cisternConfig.cmake ${cistern_generated}/cisternConfigVersion.cmake
        DESTINATION ${cistern_package} COMPONENT cistern)

# ---- pkg-config ----------------------------------------------------------------------------------

# From lib/pkgconfig up to the prefix, so that the files say where they are themselves.
file(RELATIVE_PATH cistern_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" cistern_up "${cistern_up}")
list(TRANSFORM cistern_cxx_libraries PREPEND "-l" OUTPUT_VARIABLE cistern_private)
list(JOIN cistern_private " " cistern_private)
string(PREPEND cistern_private " ")
string(APPEND cistern_private " -lpthread -ldl")
if(cistern_cudart STREQUAL "CUDA::cudart_static")
  string(PREPEND cistern_private " -lcudart_static -lrt")
elseif(cistern_cudart)
  string(PREPEND cistern_private " -lcudart")
endif()
foreach(cistern_pc cistern cistern-static)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${cistern_pc}.pc.in ${cistern_generated}/${cistern_pc}.pc
                 @ONLY)
  install(FILES ${cistern_generated}/${cistern_pc}.pc
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT cistern)
endforeach()

# ---- cpack -G DEB --------------------------------------------------------------------------------

if(PROJECT_IS_TOP_LEVEL)
  set(CPACK_PACKAGE_NAME cistern)
  set(CPACK_PACKAGE_CONTACT "The Cistern authors")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
  set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # what the command and the shared library need
  include(CPack)
endif()
