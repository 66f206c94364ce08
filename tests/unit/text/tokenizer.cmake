find_package(Boost 1.81 REQUIRED COMPONENTS json)
foreach(subject reference gguf hostile decoding parts stop_matcher)
  cairn_test(tokenizer_${subject}_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/tokenizer_${subject}_test.cpp
             DEPS cairn_text Boost::json)
  if(TARGET tokenizer_${subject}_test)
    target_compile_definitions(tokenizer_${subject}_test
                               PRIVATE CAIRN_TOKENIZER_DATA="${CMAKE_CURRENT_LIST_DIR}/tokenizer_data")
  endif()
endforeach()

# What tests/tools/tokenizer_reference.py compares with the reference; built on demand.
add_executable(tokenizer_probe EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tests/tools/tokenizer_probe.cpp)
target_link_libraries(tokenizer_probe PRIVATE cairn_text cairn_flags)
