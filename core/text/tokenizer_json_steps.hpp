// The normalizer, pre-tokenizer and decoder sections of tokenizer.json. Used by the loader.
#pragma once

#include "core/text/tokenizer_json_value.hpp"
#include "core/text/tokenizer_parts.hpp"

namespace cairn {

// Each appends the steps of `place` (nothing when it is null). Throws BadFile for a damaged section, NotSupported for
// a kind of step this build does not know.
void read_normalizer(const JsonPlace& place, NormalizerList& out);
// `ends_in_byte_map`: the last step was ByteLevel, whose byte map is left to the caller.
void read_pre_tokenizer(const JsonPlace& place, PreTokenizerList& out, bool& ends_in_byte_map);
void read_decoder(const JsonPlace& place, DecoderConfig& out);

}  // namespace cairn
