# What every target shares: options, language, warnings, sanitizers, and the functions with which a
# folder declares its one target.
include_guard(GLOBAL)

option(CISTERN_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
set(CISTERN_SUITES all CACHE STRING "Which tests a build has: all, products, threads or quick (tests/CMakeLists.txt)")
set_property(CACHE CISTERN_SUITES PROPERTY STRINGS all products threads quick)
option(CISTERN_BENCH "Build the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(CISTERN_COMMAND "Build the `cistern` command, which needs CLI11, nlohmann_json and zlib"
       ${PROJECT_IS_TOP_LEVEL})
option(CISTERN_INSTALL "Put the library, its headers and its package where cmake --install says"
       ${PROJECT_IS_TOP_LEVEL})
option(CISTERN_AUDIT "Run the walks that check every invariant after every step (slow)" OFF)
option(CISTERN_ABLATION "Let bench_ablation switch mechanisms off, to see what each of them buys" OFF)
option(CISTERN_TIGHT_BOUNDS "Make each bound of what is remembered 4, so that tests drive all over it" OFF)
option(CISTERN_PRECOMPILE "Read the standard library's headers once a library, not once a file"
       ${PROJECT_IS_TOP_LEVEL})
set(CISTERN_SANITIZE "" CACHE STRING "address, thread, undefined, address,undefined, or empty for none")
set_property(CACHE CISTERN_SANITIZE PROPERTY STRINGS "" address thread undefined address,undefined)

# A project that has this one as a part builds of it what it links.
set(cistern_only_what_is_linked FALSE)
set(cistern_exclude "")
if(NOT PROJECT_IS_TOP_LEVEL AND NOT CISTERN_INSTALL)
  set(cistern_only_what_is_linked TRUE)
  set(cistern_exclude EXCLUDE_FROM_ALL)
endif()

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

# ---- Language ------------------------------------------------------------------------------------

# Variables of this folder and those below it: a project that has this one as a part keeps its own.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)  # the library is a shared object too
# A shared library shows what is marked CISTERN_API, and nothing else.
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

# How a build is set up is the top project's to say.
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  find_program(CISTERN_CCACHE ccache)
  mark_as_advanced(CISTERN_CCACHE)
  if(CISTERN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # The two things that ccache must overlook to work with precompiled headers; and where the checkout is,
    # so that another one of the same sources finds what this one compiled.
    set(nohashdir)
    if(CISTERN_SANITIZE)  # their line numbers have no folder (below)
      set(nohashdir CCACHE_NOHASHDIR=1)
    endif()
    set(CMAKE_CXX_COMPILER_LAUNCHER
        ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
        ${nohashdir} ${CISTERN_CCACHE})
  endif()
endif()

# ---- Flags, for the folders of this project only -------------------------------------------------

set(cistern_warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  list(APPEND cistern_warnings -Wthread-safety)
endif()
if(PROJECT_IS_TOP_LEVEL)
  list(APPEND cistern_warnings -Werror)
endif()
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${cistern_warnings}>")

add_compile_definitions($<$<CONFIG:Debug>:CISTERN_DEBUG>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CISTERN_SANITIZE)
  # Else position independent code may inline nothing that another object could replace: 2 to 6 % of
  # the instructions of a replay. clang takes it so by itself.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-semantic-interposition>)
endif()
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-mtls-dialect=gnu2 cistern_has_tls_descriptors)
if(cistern_has_tls_descriptors)
  # What a thread has of its own is found by a call that saves all registers; where the library is part of
  # the program the linker makes one instruction of it. Unlike with the initial-exec model, a program
  # may load the library when it runs already: the CUDA runtime in it alone has more than the loader
  # keeps room for then.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-mtls-dialect=gnu2>)
endif()
if(CISTERN_INSTALL)
  # What a check says names its file as the repository does, not as the machine that built it.
  add_compile_options(
    $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>)
endif()
if(CISTERN_AUDIT)
  add_compile_definitions(CISTERN_AUDIT_BUILD)
endif()

if(CISTERN_TIGHT_BOUNDS)
  add_compile_definitions(CISTERN_TIGHT_BOUNDS)
endif()

if(CISTERN_ABLATION)
  add_compile_definitions(CISTERN_ABLATION_BUILD)
endif()

if(CISTERN_SANITIZE)
  # Light optimisation and line tables only: a sanitizer build must fit into every test run.
  # (clang++ inlines from -O2 on, and takes hardly longer.)
  set(cistern_sanitize -fsanitize=${CISTERN_SANITIZE} -fno-omit-frame-pointer -g1)
  list(APPEND cistern_sanitize $<IF:$<CXX_COMPILER_ID:GNU>,-O1,-O2>)
  list(APPEND cistern_sanitize -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)  # the same in each checkout
  if(CISTERN_SANITIZE MATCHES "undefined")
    list(APPEND cistern_sanitize -fno-sanitize-recover=all)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Instrumented code confuses this analysis, even in the standard library's own headers.
    list(APPEND cistern_sanitize -Wno-maybe-uninitialized)
  endif()
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${cistern_sanitize}>")
  add_link_options(-fsanitize=${CISTERN_SANITIZE})
endif()

# ---- One target a folder -------------------------------------------------------------------------

find_package(Threads REQUIRED)
if(NOT TARGET fmt::fmt-header-only)  # a project may have brought its own
  find_package(fmt REQUIRED)
endif()

# {fmt} inside the library: compiled in, so that who uses the library needs none. Its headers are never
# the program's: no header of ours includes them. Builds that are only for tests link to it instead.
option(CISTERN_FMT_COMPILED_IN "compile {fmt} into the library, rather than link to it" ON)
mark_as_advanced(CISTERN_FMT_COMPILED_IN)
add_library(cistern_fmt INTERFACE)
if(NOT CISTERN_FMT_COMPILED_IN)
  target_link_libraries(cistern_fmt INTERFACE $<BUILD_INTERFACE:fmt::fmt>)
elseif(fmt_VERSION MATCHES "^9\\.")
  # Once, by allocator/base/fmt_library.cpp: in each file that formats it takes six seconds. The namespace is
  # not that of a {fmt} that the program is linked with.
  target_include_directories(
    cistern_fmt SYSTEM
    INTERFACE $<BUILD_INTERFACE:$<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>>)
  target_compile_definitions(
    cistern_fmt INTERFACE "$<BUILD_INTERFACE:FMT_BEGIN_NAMESPACE=namespace fmt { inline namespace cistern_own {>"
                          "$<BUILD_INTERFACE:FMT_END_NAMESPACE=}}>")
else()  # which templates another version leaves to its own library is not known here
  target_link_libraries(cistern_fmt INTERFACE $<BUILD_INTERFACE:fmt::fmt-header-only>)
endif()

# The sources of the calling folder go to `variable`; new files are seen without a new configure.
function(cistern_sources variable)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  foreach(folder IN LISTS ARGN)
    file(GLOB more CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
    list(APPEND sources ${more})
  endforeach()
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

# cistern_compile_together(n): of the targets of the calling folder and of those below, n files are
# compiled at once, in every build that does not say otherwise (presets `cuda` and `hip` do: one by
# one, a file that lacks an include is found).
macro(cistern_compile_together batch)
  if(NOT DEFINED CMAKE_UNITY_BUILD)
    set(CMAKE_UNITY_BUILD ON)
    set(CMAKE_UNITY_BUILD_BATCH_SIZE ${batch})
  endif()
endmacro()

# cistern_library(name [TOGETHER] [SCALAR] [FOLDERS sub…] [COLD sub…] LINKS target…): a static library of the
# calling folder's sources. Headers are included from the root of the repository
# ("allocator/base/types.hpp"). TOGETHER: compiled as cistern_compile_together says, where it does not
# matter what is inlined into what. COLD: the folders for which that holds alone.
function(cistern_library target)
  cmake_parse_arguments(arg "SCALAR;TOGETHER" "" "FOLDERS;COLD;LINKS" ${ARGN})
  cistern_sources(sources ${arg_FOLDERS} ${arg_COLD})
  if(sources)
    add_library(${target} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  target_compile_features(${target} ${scope} cxx_std_20)
  target_link_libraries(${target} ${scope} ${arg_LINKS})
  if(sources AND arg_TOGETHER AND NOT DEFINED CMAKE_UNITY_BUILD)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
  elseif(sources AND CISTERN_PRECOMPILE AND NOT CMAKE_UNITY_BUILD)
    target_precompile_headers(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/precompiled.hpp)
  endif()
  if(arg_COLD AND NOT DEFINED CMAKE_UNITY_BUILD)
    list(JOIN arg_COLD "|" cold)
    list(FILTER sources INCLUDE REGEX "/(${cold})/[^/]*$")
    set_source_files_properties(${sources} PROPERTIES UNITY_GROUP cold)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  endif()
  if(arg_SCALAR)
    cistern_scalar(${target})
  endif()
endfunction()

# What a hit adds up one by one is not read two at a time: the processor would have to wait until both have
# left its queue of stores.
function(cistern_scalar target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fno-tree-slp-vectorize)
  endif()
endfunction()

# cistern_executable(name [FOLDERS sub…] LINKS target…): a program of the calling folder's sources; none
# without.
function(cistern_executable target)
  cmake_parse_arguments(arg "" "" "FOLDERS;LINKS" ${ARGN})
  cistern_sources(sources ${arg_FOLDERS})
  if(sources)
    add_executable(${target} ${sources})
    target_link_libraries(${target} PRIVATE ${arg_LINKS})
  endif()
endfunction()
