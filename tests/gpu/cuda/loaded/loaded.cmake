# test_cuda_runtime: how CUDA's runtime is found by a library that loads it, whatever this build's own does.
# It runs once for each place where a fake one is, or where none is; none of it needs a GPU.

set(here ${CMAKE_CURRENT_LIST_DIR})
set(folder ${CMAKE_CURRENT_BINARY_DIR}/cuda)

# cistern_fake_cudart(version file…): a fake runtime of that version, under each of these names.
function(cistern_fake_cudart version)
  set(target cistern_fake_cudart_${version})
  add_library(${target} MODULE ${here}/fake_runtime.cpp)
  set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${folder})
  target_include_directories(${target} SYSTEM PRIVATE ${cistern_CUDA_headers})
  target_compile_definitions(${target} PRIVATE FAKE_VERSION=${version})
  foreach(file IN LISTS ARGN)
    get_filename_component(parent ${folder}/${file} DIRECTORY)
    file(MAKE_DIRECTORY ${parent})
    file(CREATE_LINK ${folder}/lib${target}.so ${folder}/${file} SYMBOLIC)
  endforeach()
  add_dependencies(test_cuda_runtime ${target})
endfunction()

# Its own objects come before those of the libraries, which are then not taken.
cistern_vendor_objects(cistern_cuda_loaded CUDA loaded)
target_sources(cistern_cuda_loaded PRIVATE ${PROJECT_SOURCE_DIR}/handles/vendor/runtime.cpp)
add_executable(test_cuda_runtime ${here}/find_runtime_test.cpp loaded/no_runtime_test.cpp
                                 $<TARGET_OBJECTS:cistern_cuda_loaded>)
target_link_libraries(test_cuda_runtime PRIVATE cistern_handles cistern_test_main)
target_compile_definitions(
  test_cuda_runtime PRIVATE VENDOR=cuda VENDOR_VARIABLE="CISTERN_CUDA_LIBRARY" VENDOR_GPU="NVIDIA GPU"
                            CISTERN_FAKE_RENAMED="${folder}/renamed/libcudart-d0da41ae.so.12"
                            CISTERN_FAKE_OLD="${folder}/old/libcudart.so.12"
                            CISTERN_PIPES="${folder}/pipes")
file(MAKE_DIRECTORY ${folder}/pipes)
target_precompile_headers(test_cuda_runtime REUSE_FROM cistern_test_headers)

set(pip13 pip13/site-packages)
set(pip12 pip12/site-packages)
cistern_fake_cudart(13000 both/libcudart.so.13 only13/libcudart.so.13
                    ${pip13}/nvidia/cu13/lib/libcudart.so.13)
cistern_fake_cudart(12080 both/libcudart.so.12 renamed/libcudart-d0da41ae.so.12
                    ${pip12}/nvidia/cuda_runtime/lib/libcudart.so.12)
cistern_fake_cudart(12040 old/libcudart.so.12)

# The package's files are in cistern/_lib: the program stands for one of them.
foreach(site ${pip13} ${pip12})
  add_custom_command(TARGET test_cuda_runtime POST_BUILD
                     COMMAND ${CMAKE_COMMAND} -E copy_if_different $<TARGET_FILE:test_cuda_runtime>
                             ${folder}/${site}/cistern/_lib/test_cuda_runtime)
endforeach()

function(cistern_cuda_runtime_test name cases program)
  add_test(NAME cuda_runtime_${name} COMMAND ${program} ${cases})
  set_tests_properties(cuda_runtime_${name} PROPERTIES LABELS device TIMEOUT 60 ENVIRONMENT "${ARGN}")
endfunction()

set(unnamed CISTERN_CUDA_LIBRARY=)
cistern_cuda_runtime_test(none "[none]" test_cuda_runtime
                          CISTERN_CUDA_LIBRARY=${folder}/none/libcudart.so.13)
cistern_cuda_runtime_test(broken "[broken]" test_cuda_runtime CISTERN_CUDA_LIBRARY=${here}/loaded.cmake)
cistern_cuda_runtime_test(pipe "[pipe]" test_cuda_runtime
                          CISTERN_CUDA_LIBRARY=${folder}/pipes/named.so)
cistern_cuda_runtime_test(folder "[folder]" test_cuda_runtime CISTERN_CUDA_LIBRARY=${folder}/pipes)
cistern_cuda_runtime_test(truncated "[truncated]" test_cuda_runtime
                          CISTERN_CUDA_LIBRARY=${folder}/pipes/truncated.so)
cistern_cuda_runtime_test(no_slash "[no slash]" test_cuda_runtime CISTERN_CUDA_LIBRARY=build.ninja)
cistern_cuda_runtime_test(loader_pipe "[pipe 12]" test_cuda_runtime ${unnamed}
                          LD_LIBRARY_PATH=${folder}/pipes:${folder}/both)
cistern_cuda_runtime_test(old "[old]" test_cuda_runtime
                          CISTERN_CUDA_LIBRARY=${folder}/old/libcudart.so.12)
cistern_cuda_runtime_test(old_driver "[driver]" test_cuda_runtime FAKE_DRIVER_VERSION=12040
                          CISTERN_CUDA_LIBRARY=${folder}/both/libcudart.so.13)
cistern_cuda_runtime_test(named_13 "[13]" test_cuda_runtime
                          CISTERN_CUDA_LIBRARY=${folder}/both/libcudart.so.13)
cistern_cuda_runtime_test(named_12 "[12]" test_cuda_runtime
                          CISTERN_CUDA_LIBRARY=${folder}/both/libcudart.so.12)
cistern_cuda_runtime_test(loader "[13]" test_cuda_runtime ${unnamed} LD_LIBRARY_PATH=${folder}/both)
# The newest that the driver can serve.
cistern_cuda_runtime_test(fits_driver "[12]" test_cuda_runtime ${unnamed} FAKE_DRIVER_VERSION=12040
                          LD_LIBRARY_PATH=${folder}/both)
cistern_cuda_runtime_test(pip_13 "[13]" ${folder}/${pip13}/cistern/_lib/test_cuda_runtime ${unnamed})
cistern_cuda_runtime_test(pip_12 "[12]" ${folder}/${pip12}/cistern/_lib/test_cuda_runtime ${unnamed}
                          LD_LIBRARY_PATH=${folder}/only13)
cistern_cuda_runtime_test(loaded "[loaded]" test_cuda_runtime ${unnamed}
                          LD_LIBRARY_PATH=${folder}/only13)
cistern_cuda_runtime_test(loaded_old "[loaded old]" test_cuda_runtime ${unnamed}
                          LD_LIBRARY_PATH=${folder}/only13)

# The headers of CUDA 12, where they are, declare the same.
find_path(CISTERN_CUDA12_INCLUDE_DIR cuda_runtime_api.h NO_DEFAULT_PATH
          PATHS /usr/local/cuda-12/include /usr/local/cuda-12.9/include /usr/local/cuda-12.8/include
                /usr/local/cuda-12.6/include /usr/local/cuda-12.5/include)
mark_as_advanced(CISTERN_CUDA12_INCLUDE_DIR)
if(CISTERN_CUDA12_INCLUDE_DIR)
  set(cistern_CUDA12_headers ${CISTERN_CUDA12_INCLUDE_DIR})
  foreach(which CUDA CUDA12)
    add_executable(signatures_${which} ${here}/signatures.cpp)
    target_compile_features(signatures_${which} PRIVATE cxx_std_20)
    target_include_directories(signatures_${which} PRIVATE ${PROJECT_SOURCE_DIR})
    target_include_directories(signatures_${which} SYSTEM PRIVATE ${cistern_${which}_headers})
  endforeach()
  add_test(NAME cuda_signatures
           COMMAND ${CMAKE_COMMAND} -DFIRST=$<TARGET_FILE:signatures_CUDA>
                   -DSECOND=$<TARGET_FILE:signatures_CUDA12> -P ${here}/compare.cmake)
  set_tests_properties(cuda_signatures PROPERTIES LABELS device TIMEOUT 60)
endif()
