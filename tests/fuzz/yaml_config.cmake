cairn_fuzz(fuzz_yaml_config SOURCES yaml_config.cpp DEPS cairn_config)
