cairn_fuzz(fuzz_chat_template SOURCES chat_template.cpp DEPS cairn_text cairn_base Boost::json)
