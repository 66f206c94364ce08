find_package(Boost 1.81 REQUIRED COMPONENTS json)
foreach(subject reference limits messages)
  cairn_test(text_template_${subject}_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/template_${subject}_test.cpp
             DEPS cairn_text cairn_base Boost::json)
  if(TARGET text_template_${subject}_test)
    target_compile_definitions(text_template_${subject}_test
                               PRIVATE CAIRN_TEMPLATE_DATA="${CMAKE_CURRENT_LIST_DIR}/data/templates")
  endif()
endforeach()
