# Run after a plugin is linked: cmake -DPLUGIN=file -DNM=nm -DREADELF=readelf -P CheckPlugin.cmake
# Fails when the library exports anything but cairn_plugin_entry, or carries no identity note.
cmake_minimum_required(VERSION 3.20)

function(run_tool out_variable)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE output ERROR_VARIABLE errors RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${PLUGIN}: '${ARGN}' failed: ${errors}")
  endif()
  set(${out_variable} "${output}" PARENT_SCOPE)
endfunction()

run_tool(exports ${NM} --dynamic --defined-only --format=posix ${PLUGIN})
string(STRIP "${exports}" exports)
string(REGEX REPLACE " [^\n]*" "" names "${exports}")
string(REPLACE "\n" ";" names "${names}")
if(NOT names STREQUAL "cairn_plugin_entry")
  list(JOIN names ", " listed)
  message(FATAL_ERROR
    "${PLUGIN} must export exactly the function cairn_plugin_entry, but exports: '${listed}'. Build it with cairn_add_plugin() "
    "and define the entry with CAIRN_EXPORT (C) or CAIRN_PLUGIN (C++); in C++ it must be extern \"C\".")
endif()

run_tool(notes ${READELF} --notes --wide ${PLUGIN})
if(NOT notes MATCHES "(^|\n) +Cairn +0x")
  message(FATAL_ERROR
    "${PLUGIN} carries no Cairn identity note. Put CAIRN_PLUGIN_IDENTITY(...) (C) or CAIRN_PLUGIN(...) (C++) at file scope in "
    "one of its sources.")
endif()
