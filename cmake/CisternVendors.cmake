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

set(CISTERN_CUDA_RUNTIME static CACHE STRING "How programs get the CUDA runtime: static or shared")
set_property(CACHE CISTERN_CUDA_RUNTIME PROPERTY STRINGS static shared)
if(CISTERN_CUDA)
  find_package(CUDAToolkit 13 QUIET)
  if(CUDAToolkit_FOUND AND TARGET CUDA::cudart)
    set(cistern_has_CUDA TRUE)
    # Static unless asked otherwise: the program then runs wherever there is a driver, and starts
    # where there is none. (The benchmark that times the driver's calls has to come between a program
    # and the runtime, which takes a shared one.) Never CUDA::cuda_driver: a program linked to it starts only where there is one.
    set(cistern_cudart CUDA::cudart)
    if(TARGET CUDA::cudart_static AND NOT CISTERN_CUDA_RUNTIME STREQUAL "shared")
      set(cistern_cudart CUDA::cudart_static)
    endif()
  elseif(NOT CISTERN_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "CISTERN_CUDA is ON, but there is no CUDA toolkit 13 or later. Put its nvcc "
                        "on the PATH or set CUDAToolkit_ROOT; or set CISTERN_CUDA to AUTO or OFF.")
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
# (allocator/device/vendor/hip_library.hpp). Not by find_package(hip): its configuration stops the
# build where hipcc, which we do without, is not installed.
if(CISTERN_HIP)
  find_path(CISTERN_HIP_INCLUDE_DIR hip/hip_runtime_api.h PATHS /opt/rocm
            HINTS ${ROCM_PATH} $ENV{ROCM_PATH} $ENV{HIP_PATH} PATH_SUFFIXES include)
  mark_as_advanced(CISTERN_HIP_INCLUDE_DIR)
  if(CISTERN_HIP_INCLUDE_DIR)
    set(cistern_has_HIP TRUE)
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

# cistern_vendor_backend(target vendor runtime [include folder]): one compilation of the vendor
# source, as objects in `target`. `runtime`: what a program is linked to for it.
function(cistern_vendor_backend target vendor runtime)
  string(TOLOWER ${vendor} name)
  set(objects ${target}_${name})
  list(TRANSFORM cistern_vendor_sources PREPEND ${cistern_vendor_folder}/ OUTPUT_VARIABLE sources)
  add_library(${objects} OBJECT ${sources})
  target_compile_features(${objects} PRIVATE cxx_std_20)
  target_compile_definitions(${objects} PRIVATE CISTERN_VENDOR_${vendor})
  target_include_directories(${objects} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
  target_include_directories(${objects} SYSTEM PRIVATE ${ARGN})
  target_link_libraries(${objects} PRIVATE cistern_base cistern_fmt ${runtime})
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
  target_link_libraries(${target} PRIVATE ${runtime})
endfunction()

set(cistern_vendor_sources capture.cpp vendor_current.cpp vendor_pool.cpp failure.cpp vendor_memory.cpp
                           open_vendor.cpp vendor_streams.cpp virtual_memory.cpp)

# cistern_add_vendor_backends(target): both backends, each real or absent.
function(cistern_add_vendor_backends target)
  target_sources(${target} PRIVATE ${cistern_vendor_folder}/error_kind.cpp)
  if(cistern_has_CUDA)
    cistern_vendor_backend(${target} CUDA ${cistern_cudart})
  else()
    target_sources(${target} PRIVATE ${cistern_vendor_folder}/absent_cuda.cpp)
  endif()
  if(cistern_has_HIP)
    cistern_vendor_backend(${target} HIP "${CMAKE_DL_LIBS}" ${CISTERN_HIP_INCLUDE_DIR})
    target_sources(${target}_hip PRIVATE ${cistern_vendor_folder}/hip_library.cpp
                                          ${cistern_vendor_folder}/hip_runtime.cpp)
    target_compile_definitions(${target}_hip PRIVATE __HIP_PLATFORM_AMD__)
  else()
    target_sources(${target} PRIVATE ${cistern_vendor_folder}/absent_hip.cpp)
  endif()
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
# or absent. HIP's is always absent: kernels would need hipcc.
function(cistern_add_gpu_work target)
  set(folder ${PROJECT_SOURCE_DIR}/tests/support/vendor_work)
  if(cistern_has_CUDA AND CUDAToolkit_NVCC_EXECUTABLE)
    target_sources(${target} PRIVATE ${folder}/cuda_work.cpp)
    cistern_cuda_object(${target} ${folder}/cuda_kernels.cu)
    target_link_libraries(${target} PRIVATE ${cistern_cudart})
  else()
    target_sources(${target} PRIVATE ${folder}/cuda_absent.cpp)
  endif()
  target_sources(${target} PRIVATE ${folder}/hip_absent.cpp)
endfunction()

# cistern_add_gpu_tests(target): the tests that call a vendor's runtime beside the backend.
function(cistern_add_gpu_tests target)
  if(cistern_has_CUDA)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/gpu/cuda/*.cpp)
    target_sources(${target} PRIVATE ${sources})
    target_link_libraries(${target} PRIVATE ${cistern_cudart})
  endif()
endfunction()
