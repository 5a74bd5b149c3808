# The libraries that handles/ binds: which are here, and a target for each that is. Nothing is
# fetched; CUDNN_ROOT, CUDSS_ROOT and ROCM_PATH say where to look beside the usual places.
include_guard(GLOBAL)

set(cistern_handle_libraries "")  # the targets that were made

# ---- The vendors' runtimes, as the libraries' files see them --------------------------------------

# cistern_handles_vendor(vendor [runtime]): what a program is linked with for it; nothing, if it loads it.
function(cistern_handles_vendor vendor)
  string(TOLOWER ${vendor} name)
  set(target cistern_handles_${name})
  add_library(${target} STATIC ${PROJECT_SOURCE_DIR}/handles/vendor/runtime.cpp)
  cistern_vendor_code(${target} ${vendor} ${cistern_${vendor}_how})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_definitions(${target} PUBLIC ${cistern_${vendor}_definitions})
  target_include_directories(${target} SYSTEM PUBLIC $<BUILD_INTERFACE:${cistern_${vendor}_headers}>)
  target_link_libraries(${target} PUBLIC cistern_handles ${ARGN})
endfunction()

if(cistern_has_CUDA)
  cistern_handles_vendor(CUDA ${cistern_cudart})
endif()
if(cistern_has_HIP)
  cistern_handles_vendor(HIP)
endif()

# ---- One target a library -------------------------------------------------------------------------

# cistern_handles_library(vendor name library [include folder]): the target cistern_handles_<name>.
# Installed it has neither what it is made of, which is in cistern::static, nor a library's path on
# this machine: the package looks for the library by its names (CISTERN_LIBRARY) where it is used.
function(cistern_handles_library vendor name library)
  set(target cistern_handles_${name})
  add_library(${target} STATIC ${PROJECT_SOURCE_DIR}/handles/${vendor}/${name}.cpp)
  target_include_directories(${target} SYSTEM PUBLIC $<BUILD_INTERFACE:${ARGN}>)
  target_link_libraries(${target} PUBLIC $<BUILD_INTERFACE:cistern_handles_${vendor}>
                                         $<BUILD_INTERFACE:${library}>)
  set_target_properties(${target} PROPERTIES EXPORT_NAME handles_${name} CISTERN_VENDOR ${vendor}
                                             CISTERN_LIBRARY "${library}")
  set(cistern_handle_libraries ${cistern_handle_libraries} ${target} PARENT_SCOPE)
endfunction()

# The toolkit's own have targets.
if(cistern_has_CUDA)
  foreach(pair cublas:cublas cublas_lt:cublasLt cusparse:cusparse cusolver:cusolver)
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 name)
    list(GET pair 1 library)
    if(TARGET CUDA::${library})
      cistern_handles_library(cuda ${name} CUDA::${library})
    endif()
  endforeach()
endif()

# cistern_handles_find(vendor name header library hint…): those without, by header and library.
function(cistern_handles_find vendor name header library)
  string(TOUPPER ${name} upper)
  find_path(CISTERN_${upper}_INCLUDE_DIR ${header} HINTS ${ARGN} PATH_SUFFIXES include)
  find_library(CISTERN_${upper}_LIBRARY NAMES ${library} HINTS ${ARGN} PATH_SUFFIXES lib lib64)
  mark_as_advanced(CISTERN_${upper}_INCLUDE_DIR CISTERN_${upper}_LIBRARY)
  if(CISTERN_${upper}_INCLUDE_DIR AND CISTERN_${upper}_LIBRARY)
    cistern_handles_library(${vendor} ${name} ${CISTERN_${upper}_LIBRARY}
                            ${CISTERN_${upper}_INCLUDE_DIR})
    set_target_properties(cistern_handles_${name} PROPERTIES CISTERN_LIBRARY "${library}")
    set(cistern_handle_libraries ${cistern_handle_libraries} PARENT_SCOPE)
  endif()
endfunction()

# A wheel of cuDNN or cuDSS has no plain libX.so, only the one with its version.
if(cistern_has_CUDA)
  list(GET CUDAToolkit_INCLUDE_DIRS 0 cistern_toolkit)
  cistern_handles_find(cuda cudnn cudnn.h "cudnn;libcudnn.so.9" ${CUDNN_ROOT} $ENV{CUDNN_ROOT}
                       ${cistern_toolkit}/.. ${CUDAToolkit_LIBRARY_DIR}/..)
  cistern_handles_find(cuda cudss cudss.h "cudss;libcudss.so.1;libcudss.so.0" ${CUDSS_ROOT}
                       $ENV{CUDSS_ROOT} ${cistern_toolkit}/.. ${CUDAToolkit_LIBRARY_DIR}/..)
endif()
if(cistern_has_HIP)
  set(cistern_rocm_roots ${ROCM_PATH} $ENV{ROCM_PATH} $ENV{HIP_PATH} /opt/rocm)
  foreach(name miopen rocblas hipblas hipsparse hipsolver)
    set(library ${name})
    if(name STREQUAL "miopen")
      set(library MIOpen)
    endif()
    cistern_handles_find(hip ${name} ${name}/${name}.h ${library} ${cistern_rocm_roots})
  endforeach()
endif()

set(cistern_found ${cistern_handle_libraries})
list(TRANSFORM cistern_found REPLACE "cistern_handles_" "")
list(JOIN cistern_found " " cistern_found)
message(STATUS "Cistern: handles of: ${cistern_found}")
set(cistern_handle_libraries ${cistern_handle_libraries} PARENT_SCOPE)
