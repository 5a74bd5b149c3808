# PyTorch's native allocator as a library of its own, which the programs open if it is there, so
# that who has no PyTorch builds all the rest. By hand: the command in peers/torch/library.cpp.
set(torch_folder "")
if(CISTERN_BENCH_TORCH AND cistern_has_CUDA)
  execute_process(
    COMMAND python3 -c "import os, torch; print(os.path.dirname(torch.__file__))"
    OUTPUT_VARIABLE torch_folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT EXISTS "${torch_folder}/lib/libc10_cuda.so")
    if(NOT CISTERN_BENCH_TORCH STREQUAL "AUTO")
      message(FATAL_ERROR "CISTERN_BENCH_TORCH is ON, but python3 has no PyTorch with CUDA. "
                          "Install it, or set CISTERN_BENCH_TORCH to AUTO or OFF.")
    endif()
    set(torch_folder "")
  endif()
endif()
if(NOT torch_folder)
  message(STATUS "Benchmarks: PyTorch's allocator: no")
  return()
endif()
message(STATUS "Benchmarks: PyTorch's allocator: ${torch_folder}")

add_library(cistern_peer_torch MODULE peers/torch/library.cpp)
set_target_properties(cistern_peer_torch PROPERTIES CXX_VISIBILITY_PRESET default)  # found by their names
target_compile_definitions(cistern_peer_torch PRIVATE _GLIBCXX_USE_CXX11_ABI=1)
target_include_directories(cistern_peer_torch PRIVATE ${PROJECT_SOURCE_DIR})
target_include_directories(cistern_peer_torch SYSTEM PRIVATE
                           ${torch_folder}/include ${torch_folder}/include/torch/csrc/api/include
                           ${CUDAToolkit_INCLUDE_DIRS})
target_link_options(cistern_peer_torch PRIVATE -Wl,--no-as-needed)
foreach(library c10 c10_cuda torch_cpu torch_cuda torch)
  target_link_libraries(cistern_peer_torch PRIVATE ${torch_folder}/lib/lib${library}.so)
endforeach()
