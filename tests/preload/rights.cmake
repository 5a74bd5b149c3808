# `cistern run` beside other users, namespaces, lost rights and other preloaded libraries.
add_executable(handle_program programs/handle_program.cpp)
add_executable(rights_program programs/rights_program.cpp)
add_executable(runpath_program programs/runpath_program.cpp)
add_library(found_by_runpath SHARED programs/runpath_library.cpp)
foreach(target handle_program rights_program runpath_program found_by_runpath)
  cistern_preload_program(${target} CUDA on_the_driver.hpp)
  target_link_libraries(${target} PRIVATE fake_cuda Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(${target} PROPERTIES CISTERN_ON_THE_DRIVER TRUE)
endforeach()

# Not as `cistern run` does it: the library is there in a program with rights of another user, too.
add_executable(runtime_linked programs/memory_program.cpp)
cistern_preload_program(runtime_linked CUDA on_the_runtime.hpp)
target_link_libraries(runtime_linked PRIVATE cistern_preload fake_cudart_static Threads::Threads ${CMAKE_DL_LIBS})

# One is found beside the program by DT_RUNPATH alone: the tests' LD_LIBRARY_PATH does not name its folder.
set_target_properties(found_by_runpath PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/beside)
set_target_properties(runpath_program PROPERTIES BUILD_RPATH "$ORIGIN/beside")
target_link_options(runpath_program PRIVATE LINKER:--enable-new-dtags)
add_library(beside SHARED programs/beside_library.cpp)
cistern_preload_program(beside CUDA)
target_link_libraries(beside PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(beside PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/beside)

cistern_preload_test(rights fake_cuda Users Namespaces Rights Beside)
