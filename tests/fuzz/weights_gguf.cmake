cairn_fuzz(fuzz_gguf SOURCES weights_gguf.cpp DEPS cairn_weights)
