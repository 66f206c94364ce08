find_package(Boost 1.81 REQUIRED COMPONENTS json)
cairn_fuzz(fuzz_chat_template SOURCES ${CMAKE_CURRENT_LIST_DIR}/chat_template.cpp
           DEPS cairn_text cairn_base Boost::json)
