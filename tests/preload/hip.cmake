# libamdhip64.so.7, in a folder that has nothing else, with versions of its symbols as HIP's has them.
file(GLOB fake_hip CONFIGURE_DEPENDS fake_device/*.cpp fake_hip/*.cpp)
add_library(fake_hip SHARED ${fake_hip})
cistern_preload_program(fake_hip HIP)
target_link_libraries(fake_hip PRIVATE cistern_device ${CMAKE_DL_LIBS})
set(cistern_fake_map ${CMAKE_CURRENT_SOURCE_DIR}/fake_hip/export.map)
target_link_options(fake_hip PRIVATE LINKER:--version-script=${cistern_fake_map} LINKER:-Bsymbolic)
set_target_properties(
  fake_hip PROPERTIES OUTPUT_NAME amdhip64 SOVERSION 7 LINK_DEPENDS ${cistern_fake_map}
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/hip)

add_executable(hip_memory programs/memory_program.cpp)
add_executable(hip_order programs/order_program.cpp programs/random_program.cpp)
add_executable(hip_pressure programs/pressure_program.cpp)
add_executable(hip_pools programs/pool_program.cpp)
add_executable(hip_attributes programs/attribute_program.cpp)
add_executable(hip_cancel programs/cancel_program.cpp)
add_executable(hip_storm programs/storm_program.cpp programs/storm_world.cpp)
add_executable(hip_program programs/hip_program.cpp)
add_executable(hip_late programs/hip_late.cpp)
foreach(target hip_memory hip_order hip_pressure hip_pools hip_attributes hip_cancel hip_storm hip_program
               hip_late)
  cistern_preload_program(${target} HIP on_hip.hpp)
  target_link_libraries(${target} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  if(NOT target STREQUAL "hip_late")
    target_link_libraries(${target} PRIVATE fake_hip)
  endif()
  set_target_properties(${target} PROPERTIES CISTERN_ON_THE_DRIVER TRUE)
endforeach()

add_test(NAME hip_preload_names
         COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/hip_names_test.py
                 ${PROJECT_SOURCE_DIR}/interop/preload/hooks/hip ${CISTERN_HIP_INCLUDE_DIR}
                 $<TARGET_FILE:cistern_preload>)
set_tests_properties(hip_preload_names PROPERTIES LABELS preload)

cistern_preload_pair(hip_preload_pair fake_hip hip_order)
cistern_preload_test(hip_preload fake_hip Programs Cancelled Pools Pressure Order Traces)
