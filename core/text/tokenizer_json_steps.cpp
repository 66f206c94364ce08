// One function per section, one branch per kind of step; sequences are flattened.
#include "core/text/tokenizer_json_steps.hpp"

#include <array>

#include "core/text/unicode.hpp"

namespace cairn {

namespace {

constexpr int kMaxNesting = 16;         // sequences inside sequences
constexpr std::size_t kMaxSteps = 256;  // in one section

void check_nesting(const JsonPlace& place, int depth, std::size_t steps) {
  if (depth > kMaxNesting) place.fail("nests sequences more than " + std::to_string(kMaxNesting) + " deep");
  if (steps > kMaxSteps) place.fail("makes more than " + std::to_string(kMaxSteps) + " steps");
}

[[noreturn]] void unknown_kind(const JsonPlace& place, std::string_view kind) {
  throw NotSupported(place.path() + " is of type " + quote_token(kind) + ", which this build does not know.");
}

// {"String": "x"} or {"Regex": "x"}, or a plain string.
struct TextOrRegex {
  std::string text;
  bool is_regex;
};
TextOrRegex pattern_of(const JsonPlace& place) {
  if (place && place.value().is_string()) return {std::string(place.string()), false};
  if (const JsonPlace regex = place.get("Regex")) return {std::string(regex.string()), true};
  return {std::string(place.need("String").string()), false};
}

SplitBehavior behavior_of(const JsonPlace& place, SplitBehavior fallback) {
  if (!place) return fallback;
  constexpr std::pair<std::string_view, SplitBehavior> kNames[] = {
      {"Removed", SplitBehavior::kRemoved},
      {"Isolated", SplitBehavior::kIsolated},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous},
  };
  for (const auto& [name, behavior] : kNames) {
    if (place.string() == name) return behavior;
  }
  place.fail("is " + quote_token(place.string()) + ", no behaviour of a split");
}

std::string decode_base64(const JsonPlace& place) {
  const std::string_view in = place.string();
  std::string out;
  out.reserve(in.size() / 4 * 3);
  std::uint32_t bits = 0;
  int have = 0;
  for (const char c : in) {
    if (c == '=') break;
    const int value = c >= 'A' && c <= 'Z'   ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 26
                      : c >= '0' && c <= '9' ? c - '0' + 52
                      : c == '+'             ? 62
                      : c == '/'             ? 63
                                             : -1;
    if (value < 0) place.fail("is not base64");
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    have += 6;
    if (have >= 8) {
      have -= 8;
      out.push_back(static_cast<char>(bits >> have & 0xFF));
    }
  }
  return out;
}

std::size_t small_count(const JsonPlace& place) {
  const std::int64_t n = place.integer();
  if (n < 0 || n > 1 << 20) place.fail("is " + std::to_string(n) + ", outside [0, 1048576]");
  return static_cast<std::size_t>(n);
}

char32_t one_character(const JsonPlace& place) {
  const std::string_view text = place.string();
  if (text.empty() || unicode::length_of(text[0]) != text.size()) place.fail("is not one character");
  std::size_t pos = 0;
  return unicode::next(text, pos);
}

PrependScheme prepend_scheme_of(const JsonPlace& place) {
  if (const JsonPlace scheme = place.get("prepend_scheme")) {
    const std::string_view name = scheme.string();
    if (name == "always") return PrependScheme::kAlways;
    if (name == "first") return PrependScheme::kFirst;
    if (name == "never") return PrependScheme::kNever;
    scheme.fail("is " + quote_token(name) + "; known are always, first and never");
  }
  return place.boolean("add_prefix_space", true) ? PrependScheme::kAlways : PrependScheme::kNever;
}

void normalizer(const JsonPlace& place, NormalizerList& out, int depth) {
  check_nesting(place, depth, out.size());
  const std::string_view kind = place.need("type").string();
  if (kind == "Sequence") {
    const JsonPlace list = place.need("normalizers");
    for (std::size_t i = 0; i < list.array().size(); ++i) normalizer(list.item(i), out, depth + 1);
  } else if (kind == "NFC") {
    out.push_back(make_unicode_form(unicode::Form::kNfc));
  } else if (kind == "NFD") {
    out.push_back(make_unicode_form(unicode::Form::kNfd));
  } else if (kind == "NFKC") {
    out.push_back(make_unicode_form(unicode::Form::kNfkc));
  } else if (kind == "NFKD") {
    out.push_back(make_unicode_form(unicode::Form::kNfkd));
  } else if (kind == "Lowercase") {
    out.push_back(make_lowercase());
  } else if (kind == "StripAccents") {
    out.push_back(make_strip_accents());
  } else if (kind == "Strip") {
    out.push_back(make_strip(place.boolean("strip_left", true), place.boolean("strip_right", true)));
  } else if (kind == "Prepend") {
    out.push_back(make_prepend(std::string(place.need("prepend").string())));
  } else if (kind == "Replace") {
    const auto [text, is_regex] = pattern_of(place.need("pattern"));
    std::string with(place.need("content").string());
    out.push_back(is_regex ? make_regex_replace(text, std::move(with), place.path() + ".pattern")
                           : make_replace(text, std::move(with)));
  } else if (kind == "BertNormalizer" || kind == "Bert") {
    const bool lowercase = place.boolean("lowercase", true);
    out.push_back(make_bert_normalizer({.clean_text = place.boolean("clean_text", true),
                                        .handle_chinese_chars = place.boolean("handle_chinese_chars", true),
                                        .strip_accents = place.boolean("strip_accents", lowercase),
                                        .lowercase = lowercase}));
  } else if (kind == "Nmt") {
    out.push_back(make_nmt());
  } else if (kind == "Precompiled") {
    const JsonPlace map = place.need("precompiled_charsmap");
    if (map) out.push_back(make_charsmap(decode_base64(map), false, map.path()));
  } else if (kind == "ByteLevel") {
    out.push_back(make_byte_level_normalizer());
  } else {
    unknown_kind(place, kind);
  }
}

void pre_tokenizer(const JsonPlace& place, PreTokenizerList& out, bool& byte_map_due, int depth) {
  check_nesting(place, depth, out.size());
  const std::string_view kind = place.need("type").string();
  if (kind == "Sequence") {
    const JsonPlace list = place.need("pretokenizers");
    for (std::size_t i = 0; i < list.array().size(); ++i) pre_tokenizer(list.item(i), out, byte_map_due, depth + 1);
    return;
  }
  if (byte_map_due) out.push_back(make_byte_map());
  byte_map_due = false;
  if (kind == "ByteLevel") {
    if (auto words = make_byte_level_words(place.boolean("add_prefix_space", true), place.boolean("use_regex", true))) {
      out.push_back(std::move(words));
    }
    byte_map_due = true;
  } else if (kind == "Split") {
    const auto [text, is_regex] = pattern_of(place.need("pattern"));
    const SplitBehavior behavior = behavior_of(place.need("behavior"), SplitBehavior::kIsolated);
    const bool invert = place.boolean("invert", false);
    out.push_back(is_regex ? make_split(text, behavior, invert, place.path() + ".pattern")
                           : make_literal_split(text, behavior, invert));
  } else if (kind == "Digits") {
    const bool each = place.boolean("individual_digits", false);
    out.push_back(make_char_split(&unicode::is_numeric, each ? SplitBehavior::kIsolated : SplitBehavior::kContiguous));
  } else if (kind == "Whitespace") {
    out.push_back(make_whitespace());
  } else if (kind == "WhitespaceSplit") {
    out.push_back(make_char_split(&unicode::is_white_space, SplitBehavior::kRemoved));
  } else if (kind == "Punctuation") {
    out.push_back(
        make_char_split(&unicode::is_punctuation, behavior_of(place.get("behavior"), SplitBehavior::kIsolated)));
  } else if (kind == "BertPreTokenizer") {
    out.push_back(make_char_split(&unicode::is_white_space, SplitBehavior::kRemoved));
    out.push_back(make_char_split(&unicode::is_punctuation, SplitBehavior::kIsolated));
  } else if (kind == "Metaspace") {
    const JsonPlace replacement = place.get("replacement");
    out.push_back(make_metaspace(replacement ? one_character(replacement) : U'\u2581', prepend_scheme_of(place),
                                 place.boolean("split", true)));
  } else if (kind == "CharDelimiterSplit") {
    out.push_back(make_delimiter_split(one_character(place.need("delimiter"))));
  } else if (kind == "FixedLength") {
    const JsonPlace length = place.get("length");
    const std::size_t n = length ? small_count(length) : 5;
    if (n == 0) length.fail("is 0");
    out.push_back(make_fixed_length(n));
  } else if (kind == "UnicodeScripts") {
    out.push_back(make_unicode_scripts());
  } else {
    unknown_kind(place, kind);
  }
}

void decoder(const JsonPlace& place, DecoderConfig& out, int depth) {
  check_nesting(place, depth, out.steps.size());
  const std::string_view kind = place.need("type").string();
  using Kind = DecodeStep::Kind;
  if (kind == "Sequence") {
    const JsonPlace list = place.need("decoders");
    for (std::size_t i = 0; i < list.array().size(); ++i) decoder(list.item(i), out, depth + 1);
  } else if (kind == "ByteLevel") {
    out.steps.push_back({.kind = Kind::kByteLevel});
  } else if (kind == "ByteFallback") {
    out.steps.push_back({.kind = Kind::kByteFallback});
    out.replace_each_byte = true;
  } else if (kind == "Fuse") {
    out.steps.push_back({.kind = Kind::kFuse});
  } else if (kind == "Metaspace") {
    std::string mark;
    const JsonPlace replacement = place.get("replacement");
    unicode::append(mark, replacement ? one_character(replacement) : U'\u2581');
    out.steps.push_back(
        {.kind = Kind::kMetaspace, .what = mark, .flag = prepend_scheme_of(place) != PrependScheme::kNever});
  } else if (kind == "WordPiece") {
    out.steps.push_back(
        {.kind = Kind::kWordPiece, .what = place.string("prefix", "##"), .flag = place.boolean("cleanup", true)});
  } else if (kind == "Strip") {
    std::string content;
    unicode::append(content, one_character(place.need("content")));
    out.steps.push_back({.kind = Kind::kStrip,
                         .what = content,
                         .start = small_count(place.need("start")),
                         .stop = small_count(place.need("stop"))});
  } else if (kind == "Replace") {
    const auto [text, is_regex] = pattern_of(place.need("pattern"));
    DecodeStep step{.kind = is_regex ? Kind::kRegexReplace : Kind::kReplace,
                    .what = text,
                    .with = std::string(place.need("content").string())};
    if (is_regex) step.regex = std::make_shared<const Regex>(text, place.path() + ".pattern");
    out.steps.push_back(std::move(step));
  } else if (kind == "BPEDecoder") {
    out.steps.push_back({.kind = Kind::kBpeSuffix, .what = place.string("suffix", "</w>")});
  } else if (kind == "CTC") {
    out.steps.push_back({.kind = Kind::kCtc,
                         .what = place.string("pad_token", "<pad>"),
                         .with = place.string("word_delimiter_token", "|"),
                         .flag = place.boolean("cleanup", true)});
  } else {
    unknown_kind(place, kind);
  }
}

}  // namespace

void read_normalizer(const JsonPlace& place, NormalizerList& out) {
  if (place) normalizer(place, out, 0);
}

void read_pre_tokenizer(const JsonPlace& place, PreTokenizerList& out, bool& ends_in_byte_map) {
  ends_in_byte_map = false;
  if (place) pre_tokenizer(place, out, ends_in_byte_map, 0);
}

void read_decoder(const JsonPlace& place, DecoderConfig& out) {
  if (place) {
    decoder(place, out, 0);
  } else {
    out.steps.push_back({.kind = DecodeStep::Kind::kJoin});
  }
}

}  // namespace cairn
