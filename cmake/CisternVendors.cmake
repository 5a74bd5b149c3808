# The vendors' SDKs: which are here, and the functions that bring their backends into a target. A
# build without an SDK gets the backend's absent twin in its place, so that nothing above asks.
include_guard(GLOBAL)

foreach(vendor CUDA HIP)
  set(CISTERN_${vendor} AUTO CACHE STRING "Build the ${vendor} backend: AUTO (if found), ON or OFF")
  set_property(CACHE CISTERN_${vendor} PROPERTY STRINGS AUTO ON OFF)
  string(TOUPPER "${CISTERN_${vendor}}" cistern_wanted)
  if(NOT cistern_wanted MATCHES "^(AUTO|ON|OFF|TRUE|FALSE|YES|NO|1|0)$")
    message(FATAL_ERROR "CISTERN_${vendor} is '${CISTERN_${vendor}}': must be AUTO, ON or OFF")
  endif()
  set(cistern_has_${vendor} FALSE)
endforeach()

# ---- CUDA ----------------------------------------------------------------------------------------

# static: the program runs wherever there is a driver, and starts where there is none. loaded: the program
# looks for the runtime at its first call (allocator/device/vendor/loaded_runtime.hpp); a build takes the
# headers alone. shared: for the benchmark that times the driver's calls, which has to come between a
# program and the runtime. Never CUDA::cuda_driver: a program linked to it starts only where there is one.
set(CISTERN_CUDA_RUNTIME static CACHE STRING "How programs get the CUDA runtime: static, shared or loaded")
set_property(CACHE CISTERN_CUDA_RUNTIME PROPERTY STRINGS static shared loaded)
if(NOT CISTERN_CUDA_RUNTIME MATCHES "^(static|shared|loaded)$")
  message(FATAL_ERROR "CISTERN_CUDA_RUNTIME is '${CISTERN_CUDA_RUNTIME}': must be static, shared or loaded")
endif()
if(NOT CISTERN_CUDA_INCLUDE_DIRS)  # a toolchain file may have set it
  set(CISTERN_CUDA_INCLUDE_DIRS "" CACHE STRING
      "Folders of CUDA 13's headers, for CISTERN_CUDA_RUNTIME=loaded without a toolkit")
endif()
mark_as_advanced(CISTERN_CUDA_INCLUDE_DIRS)
set(cistern_CUDA_how linked)
if(CISTERN_CUDA_RUNTIME STREQUAL "loaded")
  set(cistern_CUDA_how loaded)
endif()
set(cistern_cudart "")       # what the library is linked with
set(cistern_test_cudart "")  # what tests and benchmarks are linked with that call the runtime themselves
if(CISTERN_CUDA)
  find_package(CUDAToolkit 13 QUIET)
  set(cistern_CUDA_headers ${CISTERN_CUDA_INCLUDE_DIRS})
  if(CUDAToolkit_FOUND AND TARGET CUDA::cudart)
    set(cistern_has_CUDA TRUE)
    set(cistern_test_cudart CUDA::cudart)
    if(TARGET CUDA::cudart_static AND CISTERN_CUDA_RUNTIME STREQUAL "static")
      set(cistern_test_cudart CUDA::cudart_static)
    endif()
    if(cistern_CUDA_how STREQUAL "linked")
      set(cistern_cudart ${cistern_test_cudart})
    endif()
    if(NOT cistern_CUDA_headers)
      set(cistern_CUDA_headers ${CUDAToolkit_INCLUDE_DIRS})
    endif()
  elseif(cistern_CUDA_how STREQUAL "loaded" AND cistern_CUDA_headers)
    set(cistern_has_CUDA TRUE)
  elseif(NOT CISTERN_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "CISTERN_CUDA is ON, but there is no CUDA toolkit 13 or later. Put its nvcc "
                        "on the PATH or set CUDAToolkit_ROOT; or set CISTERN_CUDA to AUTO or OFF. (With "
                        "CISTERN_CUDA_RUNTIME=loaded, CISTERN_CUDA_INCLUDE_DIRS may name the headers.)")
  endif()
  if(cistern_has_CUDA AND NOT CUDAToolkit_FOUND AND (CISTERN_TESTS OR CISTERN_BENCH))
    message(FATAL_ERROR "Tests and benchmarks need a CUDA toolkit 13, and there are only the headers of "
                        "CISTERN_CUDA_INCLUDE_DIRS. Set CISTERN_TESTS and CISTERN_BENCH to OFF.")
  endif()
endif()

# CCCL, which cistern-cccl is for: a part of the toolkit, or a later one. Only tests need it.
set(CISTERN_CCCL_INCLUDE_DIRS "" CACHE STRING "Folders of the headers of another CCCL than the toolkit's")
mark_as_advanced(CISTERN_CCCL_INCLUDE_DIRS)
set(cistern_cccl_version 0)  # 1000000 * major + 1000 * minor + patch
if(cistern_has_CUDA)
  find_path(cistern_cccl cuda/std/__cccl/version.h NO_CACHE NO_DEFAULT_PATH
            PATHS ${CISTERN_CCCL_INCLUDE_DIRS} ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES cccl)
  if(cistern_cccl)
    file(STRINGS ${cistern_cccl}/cuda/std/__cccl/version.h cistern_line REGEX "define CCCL_VERSION [0-9]+")
    string(REGEX REPLACE "[^0-9]" "" cistern_cccl_version "${cistern_line}")
  endif()
endif()

# ---- HIP -----------------------------------------------------------------------------------------

# The headers are all that a build takes: the library is looked for by the program, when it runs
# (allocator/device/vendor/loaded_runtime.hpp). Not by find_package(hip): its configuration stops the
# build where hipcc, which we do without, is not installed.
if(CISTERN_HIP)
  find_path(CISTERN_HIP_INCLUDE_DIR hip/hip_runtime_api.h PATHS /opt/rocm
            HINTS ${ROCM_PATH} $ENV{ROCM_PATH} $ENV{HIP_PATH} PATH_SUFFIXES include)
  mark_as_advanced(CISTERN_HIP_INCLUDE_DIR)
  if(CISTERN_HIP_INCLUDE_DIR)
    set(cistern_has_HIP TRUE)
    set(cistern_HIP_how loaded)
    set(cistern_HIP_headers ${CISTERN_HIP_INCLUDE_DIR})
    set(cistern_HIP_definitions __HIP_PLATFORM_AMD__)
  elseif(NOT CISTERN_HIP STREQUAL "AUTO")
    message(FATAL_ERROR "CISTERN_HIP is ON, but hip/hip_runtime_api.h is not found. Install HIP's "
                        "headers (Debian: libamdhip64-dev) or set ROCM_PATH; or set CISTERN_HIP to "
                        "AUTO or OFF.")
  endif()
endif()

foreach(vendor CUDA HIP)
  set(cistern_found "no")
  if(cistern_has_${vendor})
    set(cistern_found "yes")
  endif()
  message(STATUS "Cistern: ${vendor} backend: ${cistern_found}")
endforeach()

# ---- Backends ------------------------------------------------------------------------------------

set(cistern_vendor_folder ${PROJECT_SOURCE_DIR}/allocator/device/vendor)

# cistern_vendor_code(target vendor how): what code that includes alias.hpp is compiled with. how: whether the
# runtime is linked or loaded.
function(cistern_vendor_code target vendor how)
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_compile_definitions(${target} PRIVATE CISTERN_VENDOR_${vendor} ${cistern_${vendor}_definitions})
  if(how STREQUAL "loaded")
    target_compile_definitions(${target} PRIVATE CISTERN_RUNTIME_LOADED)
  endif()
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
  target_include_directories(${target} SYSTEM PRIVATE ${cistern_${vendor}_headers})
  target_link_libraries(${target} PRIVATE cistern_base cistern_fmt)
endfunction()

# cistern_vendor_objects(target vendor how): one compilation of the vendor source, as objects.
function(cistern_vendor_objects target vendor how)
  set(sources capture.cpp vendor_current.cpp vendor_pool.cpp failure.cpp vendor_memory.cpp open_vendor.cpp
              vendor_streams.cpp virtual_memory.cpp)
  if(how STREQUAL "loaded")
    string(TOLOWER ${vendor} name)
    list(APPEND sources loaded_runtime.cpp ${name}_library.cpp)
  endif()
  list(TRANSFORM sources PREPEND ${cistern_vendor_folder}/)
  add_library(${target} OBJECT ${sources})
  cistern_vendor_code(${target} ${vendor} ${how})
endfunction()

# cistern_add_vendor_backends(target): both backends, each real or absent. A real one is an object library of
# its own, ${target}_cuda or ${target}_hip.
function(cistern_add_vendor_backends target)
  target_sources(${target} PRIVATE ${cistern_vendor_folder}/error_kind.cpp
                                   ${cistern_vendor_folder}/library_file.cpp
                                   ${cistern_vendor_folder}/loaded_library.cpp)
  target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS})
  foreach(vendor CUDA HIP)
    string(TOLOWER ${vendor} name)
    if(cistern_has_${vendor})
      cistern_vendor_objects(${target}_${name} ${vendor} ${cistern_${vendor}_how})
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_${name}>)
    else()
      target_sources(${target} PRIVATE ${cistern_vendor_folder}/absent_${name}.cpp)
    endif()
  endforeach()
  target_link_libraries(${target} PRIVATE ${cistern_cudart})
endfunction()

# ---- Test work -----------------------------------------------------------------------------------

# Machine code for compute capability 9.0, and PTX that the driver compiles for anything from 7.5.
set(cistern_cuda_code -gencode arch=compute_75,code=compute_75 -gencode arch=compute_90,code=sm_90)

# Compiles one .cu to an object in `target`, which looks in the folders ARGN first. By a command of its own,
# because CMake's CUDA language would make nvcc the linker of every program above, and nvcc takes no
# sanitizer.
function(cistern_cuda_object target source)
  get_filename_component(name ${source} NAME_WE)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.cu.o)
  list(TRANSFORM ARGN PREPEND -I)
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} -std=c++20 -O2 ${cistern_cuda_code} ${ARGN} -I
            ${PROJECT_SOURCE_DIR} -I ${PROJECT_SOURCE_DIR}/include -Xcompiler -fPIC,-Wall,-Wextra -Werror all-warnings -MD -MF
            ${object}.d -c ${source} -o ${object}
    DEPENDS ${source}
    DEPFILE ${object}.d
    COMMENT "Building CUDA object ${name}.cu.o"
    VERBATIM)
  set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  target_sources(${target} PRIVATE ${object})
endfunction()

# cistern_add_gpu_work(target): cudaWork() and hipWork() of tests/support/vendor_work.hpp, each real
# or absent. HIP's kernels are compiled by its runtime, so its headers are enough.
function(cistern_add_gpu_work target)
  set(folder ${PROJECT_SOURCE_DIR}/tests/support/vendor_work)
  if(cistern_has_CUDA AND CUDAToolkit_NVCC_EXECUTABLE)
    target_sources(${target} PRIVATE ${folder}/cuda_work.cpp)
    cistern_cuda_object(${target} ${folder}/cuda_kernels.cu)
    target_link_libraries(${target} PRIVATE ${cistern_test_cudart})
  else()
    target_sources(${target} PRIVATE ${folder}/cuda_absent.cpp)
  endif()
  if(cistern_has_HIP)
    add_library(${target}_hip OBJECT ${folder}/hip_kernels.cpp ${folder}/hip_work.cpp)
    cistern_vendor_code(${target}_hip HIP loaded)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_hip>)
    target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS})
  else()
    target_sources(${target} PRIVATE ${folder}/hip_absent.cpp)
  endif()
endfunction()

# cistern_add_gpu_tests(target): the tests that call a vendor's runtime beside the backend.
function(cistern_add_gpu_tests target)
  if(cistern_has_CUDA)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/gpu/cuda/*.cpp)
    target_sources(${target} PRIVATE ${sources})
    target_link_libraries(${target} PRIVATE ${cistern_test_cudart})
  endif()
endfunction()
