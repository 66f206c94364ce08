// The UnicodeScripts pre-tokenizer: cuts where the script changes. Scripts come from PCRE2's tables, one search per
// script over all characters, when the first such tokenizer is loaded.
#include <algorithm>
#include <cstdint>

#include "core/text/tokenizer_pretokenizer.hpp"
#include "core/text/tokenizer_regex.hpp"
#include "core/text/unicode.hpp"

namespace cairn {

namespace {

// The scripts of PCRE2's tables but Hiragana and Katakana, which count as Han here (SentencePiece's rule).
constexpr std::string_view kScripts[] = {"Common",
                                         "Latin",
                                         "Cyrillic",
                                         "Arabic",
                                         "Greek",
                                         "Devanagari",
                                         "Hebrew",
                                         "Hangul",
                                         "Thai",
                                         "Inherited",
                                         "Armenian",
                                         "Bengali",
                                         "Bopomofo",
                                         "Braille",
                                         "Canadian_Aboriginal",
                                         "Cherokee",
                                         "Ethiopic",
                                         "Georgian",
                                         "Gujarati",
                                         "Gurmukhi",
                                         "Kannada",
                                         "Khmer",
                                         "Lao",
                                         "Malayalam",
                                         "Mongolian",
                                         "Myanmar",
                                         "Ogham",
                                         "Oriya",
                                         "Runic",
                                         "Sinhala",
                                         "Syriac",
                                         "Tamil",
                                         "Telugu",
                                         "Thaana",
                                         "Tibetan",
                                         "Yi",
                                         "Deseret",
                                         "Gothic",
                                         "Old_Italic",
                                         "Tagalog",
                                         "Hanunoo",
                                         "Buhid",
                                         "Tagbanwa",
                                         "Limbu",
                                         "Tai_Le",
                                         "Linear_B",
                                         "Ugaritic",
                                         "Shavian",
                                         "Osmanya",
                                         "Cypriot",
                                         "Buginese",
                                         "Coptic",
                                         "New_Tai_Lue",
                                         "Glagolitic",
                                         "Tifinagh",
                                         "Syloti_Nagri",
                                         "Old_Persian",
                                         "Kharoshthi",
                                         "Balinese",
                                         "Cuneiform",
                                         "Phoenician",
                                         "Phags_Pa",
                                         "Nko",
                                         "Sundanese",
                                         "Lepcha",
                                         "Ol_Chiki",
                                         "Vai",
                                         "Saurashtra",
                                         "Kayah_Li",
                                         "Rejang",
                                         "Lycian",
                                         "Carian",
                                         "Lydian",
                                         "Cham",
                                         "Tai_Tham",
                                         "Tai_Viet",
                                         "Avestan",
                                         "Egyptian_Hieroglyphs",
                                         "Samaritan",
                                         "Lisu",
                                         "Bamum",
                                         "Javanese",
                                         "Meetei_Mayek",
                                         "Imperial_Aramaic",
                                         "Old_South_Arabian",
                                         "Inscriptional_Parthian",
                                         "Inscriptional_Pahlavi",
                                         "Old_Turkic",
                                         "Kaithi",
                                         "Batak",
                                         "Brahmi",
                                         "Mandaic",
                                         "Chakma",
                                         "Meroitic_Cursive",
                                         "Meroitic_Hieroglyphs",
                                         "Miao",
                                         "Sharada",
                                         "Sora_Sompeng",
                                         "Takri"};

constexpr std::uint8_t kAny = 0;  // a space, and what no table knows: joins whatever is around it
constexpr std::uint8_t kHan = 1;
constexpr std::uint8_t kFirstListed = 2;
constexpr char32_t kTableEnd = 0x20000;  // ideographs and a few tags lie behind

std::vector<std::uint8_t> build_table() {
  std::string all;
  std::vector<char32_t> char_at;  // by byte of `all`
  for (char32_t c = 0; c < kTableEnd; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    unicode::append(all, c);
    char_at.resize(all.size(), c);
  }
  std::vector<std::uint8_t> table(kTableEnd, kAny);
  const auto mark = [&](const std::string& pattern, std::uint8_t script) {
    Regex(pattern, "UnicodeScripts").for_each(all, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) table[char_at[i]] = script;
    });
  };
  std::uint8_t script = kFirstListed;
  for (const std::string_view name : kScripts) mark("\\p{sc=" + std::string(name) + "}+", script++);
  mark("[\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\x{30fc}]+", kHan);
  table[U' '] = kAny;
  return table;
}

std::uint8_t script_of(char32_t c) {
  static const std::vector<std::uint8_t> table = build_table();
  if (c < kTableEnd) return table[c];
  return c < 0x40000 && !unicode::is_other(c) ? kHan : kAny;
}

class UnicodeScripts final : public PreTokenizer {
 public:
  UnicodeScripts() { script_of(U' '); }

  void apply(PieceText& t) const override {
    std::vector<PieceText::Piece> out;
    for (const PieceText::Piece p : t.pieces) {
      const std::string_view piece = t.view(p);
      std::uint32_t begin = p.begin;
      std::size_t last = kNone;
      for (std::size_t pos = 0; pos < piece.size();) {
        const std::size_t start = pos;
        const std::size_t script = script_of(unicode::next(piece, pos));
        // As the reference: a space neither cuts nor is remembered, and the first piece starts at its first
        // character of a script.
        if (script != kAny && last != script) {
          const auto here = p.begin + static_cast<std::uint32_t>(start);
          if (last != kNone && here > begin) out.push_back({begin, here});
          begin = here;
        }
        if (script != kAny) last = script;
      }
      if (last != kNone && begin < p.end) out.push_back({begin, p.end});
    }
    t.at_start = t.at_start && !out.empty() && !t.pieces.empty() && out[0].begin == t.pieces[0].begin;
    t.pieces = std::move(out);
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
};

}  // namespace

PreTokenizerPtr make_unicode_scripts() {
  return std::make_unique<UnicodeScripts>();
}

}  // namespace cairn
