foreach(subject reference limits messages)
  cairn_test(text_template_${subject}_test SOURCES template_${subject}_test.cpp DEPS cairn_text cairn_base Boost::json)
  target_compile_definitions(text_template_${subject}_test
                             PRIVATE CAIRN_TEMPLATE_DATA="${CMAKE_CURRENT_SOURCE_DIR}/data/templates")
endforeach()
