# The library as programs link it: all floors in one archive (cistern_static), and the same in one
# shared object (cistern_shared, libcistern.so.0). Each file but those of the hits is compiled once, for both.
include_guard(GLOBAL)

set(cistern_parts base hooks layout device engine history reports emptying sleep allocator pinned pools handles cpp c plugin
                  python_stacks)
set(cistern_objects "")
foreach(part IN LISTS cistern_parts)
  list(APPEND cistern_objects $<TARGET_OBJECTS:cistern_${part}>)
endforeach()
foreach(vendor cuda hip)
  if(TARGET cistern_device_${vendor})
    list(APPEND cistern_objects $<TARGET_OBJECTS:cistern_device_${vendor}>)
  endif()
  if(TARGET cistern_handles_${vendor})
    list(APPEND cistern_objects $<TARGET_OBJECTS:cistern_handles_${vendor}>)
  endif()
endforeach()

# What a program that links either needs.
function(cistern_as_seen_by_programs target name)
  target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  target_compile_features(${target} INTERFACE cxx_std_17)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME cistern EXPORT_NAME ${name} LINKER_LANGUAGE CXX
                                             EXCLUDE_FROM_ALL ${cistern_only_what_is_linked})
  add_library(cistern::${name} ALIAS ${target})
endfunction()

add_library(cistern_static STATIC ${cistern_objects})
target_link_libraries(cistern_static INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
cistern_as_seen_by_programs(cistern_static static)

# The hits are compiled once more: see allocator/engine/CMakeLists.txt.
list(TRANSFORM cistern_objects REPLACE "^(.*:cistern_engine>)$" "$<FILTER:\\1,EXCLUDE,/fast_path>"
     OUTPUT_VARIABLE cistern_shared_objects)
list(TRANSFORM cistern_shared_objects REPLACE "^(.*:cistern_c>)$"
                                              "$<FILTER:\\1,EXCLUDE,/c_memory>")
add_library(cistern_shared SHARED ${cistern_shared_objects}
                                  ${PROJECT_SOURCE_DIR}/allocator/engine/paths/fast_path.cpp
                                  ${PROJECT_SOURCE_DIR}/interop/c/c_memory.cpp)
target_include_directories(cistern_shared PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
target_compile_features(cistern_shared PRIVATE cxx_std_20)
cistern_scalar(cistern_shared)
target_link_libraries(cistern_shared PRIVATE cistern_fmt)
target_link_libraries(cistern_shared PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
set_target_properties(cistern_shared PROPERTIES VERSION ${PROJECT_VERSION}
                                                SOVERSION ${PROJECT_VERSION_MAJOR})
cistern_as_seen_by_programs(cistern_shared shared)
set(cistern_symbols ${PROJECT_SOURCE_DIR}/cmake/cistern.symbols)
target_link_options(cistern_shared PRIVATE LINKER:--version-script=${cistern_symbols}
                                           LINKER:--exclude-libs,ALL LINKER:-Bsymbolic-functions)
if(NOT CISTERN_SANITIZE)  # a sanitizer's runtime is the program's
  target_link_options(cistern_shared PRIVATE LINKER:-z,defs)
endif()
set_target_properties(cistern_shared PROPERTIES LINK_DEPENDS ${cistern_symbols})

# A static runtime is part of the shared library. A program that links the archive links it as well
# (cisternConfig.cmake finds it for programs).
target_link_libraries(cistern_static INTERFACE ${cistern_cudart})
target_link_libraries(cistern_shared PRIVATE ${cistern_cudart})

# A library's handles are linked one by one. Installed, they are linked with the archive.
foreach(target IN LISTS cistern_handle_libraries)
  string(REPLACE "cistern_handles_" "cistern::handles_" name ${target})
  add_library(${name} ALIAS ${target})
endforeach()

# After add_subdirectory: the archive, unless the program builds shared libraries.
if(BUILD_SHARED_LIBS)
  add_library(cistern::cistern ALIAS cistern_shared)
else()
  add_library(cistern::cistern ALIAS cistern_static)
endif()
