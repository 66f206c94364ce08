# cairn_add_plugin(): builds one model plugin. Used by this tree and, through find_package(Cairn), by yours.
include_guard()

# cairn_add_plugin(name SOURCES file... [LINK_LIBRARIES lib...])
#
# Builds <name>.so from C or C++ sources. The library exports cairn_plugin_entry and nothing else, resolves every symbol at
# link time, and can be unmapped (no unique symbols). It is written to ${CAIRN_PLUGIN_OUTPUT_DIRECTORY} when that is set. After
# linking, the build fails unless the exported symbol and the identity note (CAIRN_PLUGIN_IDENTITY) are there.
function(cairn_add_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;LINK_LIBRARIES")
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "cairn_add_plugin(${name}): unknown arguments: ${ARG_UNPARSED_ARGUMENTS}. "
                        "Write cairn_add_plugin(${name} SOURCES file... [LINK_LIBRARIES lib...]).")
  endif()
  if(NOT ARG_SOURCES)
    message(FATAL_ERROR "cairn_add_plugin(${name}): no SOURCES given.")
  endif()

  add_library(${name} MODULE ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE Cairn::plugin_api ${ARG_LINK_LIBRARIES})
  set_target_properties(${name} PROPERTIES
    PREFIX "" SUFFIX ".so"
    POSITION_INDEPENDENT_CODE ON
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin.map)
  if(CAIRN_PLUGIN_OUTPUT_DIRECTORY)
    set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CAIRN_PLUGIN_OUTPUT_DIRECTORY})
  endif()
  # Unique symbols (gcc's default for inline statics) would keep the library mapped after dlclose.
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>)
  target_link_options(${name} PRIVATE
    -Wl,--version-script=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin.map
    -Wl,--exclude-libs,ALL -Wl,-Bsymbolic -Wl,-z,defs -Wl,-z,now -Wl,-z,relro -Wl,-z,noexecstack)
  add_custom_command(TARGET ${name} POST_BUILD
    COMMAND ${CMAKE_COMMAND} -DPLUGIN=$<TARGET_FILE:${name}> -DNM=${CMAKE_NM} -DREADELF=${CMAKE_READELF}
            -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/CheckPlugin.cmake
    COMMENT "Checking the exports and the identity note of ${name}.so" VERBATIM)
endfunction()
