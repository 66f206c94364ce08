cairn_fuzz(fuzz_identity_note SOURCES identity_note.cpp DEPS cairn_plugin)
