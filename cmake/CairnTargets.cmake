# Helper functions that every layer's CMakeLists.txt uses, so that flags and naming are decided in one place.
include_guard()
include(GNUInstallDirs)

find_program(CAIRN_CCACHE ccache)
if(CAIRN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths below the tree count as relative, so that a second checkout finds the results of the first.
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CAIRN_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
endif()

add_library(cairn_flags INTERFACE)
target_include_directories(cairn_flags INTERFACE ${CMAKE_SOURCE_DIR})
# -ffp-contract=off: the compiler must not fuse a multiply and an add in one loop and not in another; results are
# promised to be bit-identical whatever the batch, so every fused operation is written by hand.
target_compile_options(cairn_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers
                                             -ffp-contract=off -fno-omit-frame-pointer)
# gcc 12 sees uninitialised reads in moved-from variants that are not there.
target_compile_options(cairn_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
if(CAIRN_WERROR)
  target_compile_options(cairn_flags INTERFACE -Werror)
endif()
if(CAIRN_SANITIZE)
  target_compile_options(cairn_flags INTERFACE -fsanitize=${CAIRN_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(cairn_flags INTERFACE -fsanitize=${CAIRN_SANITIZE})
endif()
if(CAIRN_FUZZ)
  target_compile_options(cairn_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined)
  target_link_options(cairn_flags INTERFACE -fsanitize=address,undefined)
endif()

# cairn_library(name [DEPS lib...]): a static library from every .cpp below the current folder.
function(cairn_library name)
  cmake_parse_arguments(ARG "" "" "DEPS;PRIVATE_DEPS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC cairn_flags ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
endfunction()

# cairn_test(name SOURCES file... [DEPS lib...] [ENV VAR=value...] [TIMEOUT seconds]): one GoogleTest binary per subject.
function(cairn_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;ENV" ${ARGN})
  if(NOT CAIRN_BUILD_TESTS)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE cairn_flags ${ARG_DEPS} GTest::gtest GTest::gtest_main)
  # gcc 12 sees overlapping copies in inlined std::string concatenation that are not there.
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT})
  if(ARG_ENV)
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "${ARG_ENV}")
  endif()
endfunction()

# cairn_fuzz(name SOURCES file... [DEPS lib...]): a libFuzzer binary, built only with CAIRN_FUZZ.
function(cairn_fuzz name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(NOT CAIRN_FUZZ)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE cairn_flags ${ARG_DEPS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
endfunction()
