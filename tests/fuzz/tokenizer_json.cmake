cairn_fuzz(fuzz_tokenizer_json SOURCES ${CMAKE_CURRENT_LIST_DIR}/tokenizer_json.cpp DEPS cairn_text)
