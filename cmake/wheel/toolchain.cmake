# The machine's compiler with the sysroot of sysroot.py.
cmake_path(SET CMAKE_SYSROOT NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../../build/wheel/sysroot)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)

set(libraries ${CMAKE_SYSROOT}/usr/lib/x86_64-linux-gnu)
# Else a part would show what it has of libstdc++.a, and another part would take it from there.
set(link_flags "-B${libraries} -L${libraries} -L${CMAKE_SYSROOT}/lib/x86_64-linux-gnu -Wl,--exclude-libs,ALL")
set(CMAKE_CXX_FLAGS_INIT "-isystem ${CMAKE_CURRENT_LIST_DIR}/include")
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "${link_flags}")
endforeach()

set(CMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit ON)  # the machine's
set(CISTERN_CUDA_INCLUDE_DIRS ${CMAKE_SYSROOT}/nvidia/cu13/include)
set(CISTERN_HIP_INCLUDE_DIR ${CMAKE_SYSROOT}/usr/include)
