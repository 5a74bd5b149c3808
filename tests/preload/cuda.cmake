# libcuda.so.1, in a folder that has nothing else.
file(GLOB fake_driver CONFIGURE_DEPENDS fake_device/*.cpp fake_driver/*.cpp)
add_library(fake_cuda SHARED ${fake_driver})
cistern_preload_program(fake_cuda CUDA)
target_link_libraries(fake_cuda PRIVATE cistern_device)
target_link_options(fake_cuda PRIVATE LINKER:--exclude-libs,ALL LINKER:-Bsymbolic)
set_target_properties(fake_cuda PROPERTIES OUTPUT_NAME cuda SOVERSION 1
                                           LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/driver)

add_library(fake_cudart_static STATIC fake_runtime/fake_runtime.cpp)
add_library(fake_cudart SHARED fake_runtime/fake_runtime.cpp)
foreach(kind static shared)
  set(runtime fake_cudart)
  if(kind STREQUAL "static")
    set(runtime fake_cudart_static)
  endif()
  cistern_preload_program(${runtime} CUDA)
  target_link_libraries(${runtime} PRIVATE ${CMAKE_DL_LIBS})
  add_executable(runtime_${kind} programs/memory_program.cpp)
  add_executable(ipc_runtime_${kind} programs/ipc_program.cpp)
  foreach(program runtime_${kind} ipc_runtime_${kind})
    cistern_preload_program(${program} CUDA on_the_runtime.hpp)
    target_link_libraries(${program} PRIVATE ${runtime} Threads::Threads ${CMAKE_DL_LIBS})
  endforeach()
endforeach()

add_executable(driver_program programs/driver_program.cpp)
add_executable(ipc_driver programs/ipc_program.cpp)
add_executable(order_program programs/order_program.cpp programs/random_program.cpp)
add_executable(pressure_program programs/pressure_program.cpp)
add_executable(pool_program programs/pool_program.cpp)
add_executable(attribute_program programs/attribute_program.cpp)
add_executable(cancel_program programs/cancel_program.cpp)
add_executable(storm_program programs/storm_program.cpp programs/storm_world.cpp)
add_library(deep SHARED programs/deep_library.cpp)
foreach(target driver_program ipc_driver order_program pressure_program pool_program
               attribute_program cancel_program storm_program deep)
  cistern_preload_program(${target} CUDA on_the_driver.hpp)
  target_link_libraries(${target} PRIVATE fake_cuda Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(${target} PROPERTIES CISTERN_ON_THE_DRIVER TRUE)
endforeach()

list(GET CUDAToolkit_INCLUDE_DIRS 0 cistern_cuda_headers)
add_test(NAME preload_names
         COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/names_test.py
                 ${PROJECT_SOURCE_DIR}/interop/preload/hooks/cuda ${cistern_cuda_headers}
                 $<TARGET_FILE:cistern_preload>)
set_tests_properties(preload_names PROPERTIES LABELS preload)

cistern_preload_pair(preload_pair fake_cuda order_program)
cistern_preload_test(preload fake_cuda Programs Cancelled Pressure Ipc Order Endings Children)
cistern_preload_test(preload_pools fake_cuda Pools)
cistern_preload_test(preload_files fake_cuda Reports Traces Summaries)
cistern_preload_test(preload_processes fake_cuda Numbers KilledRuns Environment)
