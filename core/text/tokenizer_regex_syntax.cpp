// Oniguruma's Ruby dialect to PCRE2's. What differs and matters to tokenizer patterns:
//   \s   Unicode White_Space; PCRE2's also holds U+180E
//   \w   Alphabetic, M, Nd, Pc; PCRE2 10.42's is L, N and the underscore
//   \p{Han}  the script; PCRE2's is the script extensions
//   [:punct:]  symbols too
//   [a[b]] and [a&&b]   union and intersection of sets; PCRE2 reads them as plain characters
//   x{1,3}+  repeats the group; PCRE2's is possessive
//   (?m)  dot matches newline, PCRE2's (?s); ^ and $ match at line ends always (the MULTILINE option)
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <vector>

#include "core/base/error.hpp"
#include "core/text/tokenizer_regex.hpp"

namespace cairn {

namespace {

constexpr std::string_view kSpaceRanges =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}";
constexpr std::string_view kNotSpaceRanges =
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}"
    "\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}";
constexpr std::string_view kWordRanges = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
constexpr int kMaxNesting = 50;

std::string folded(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c != '_' && c != ' ' && c != '-') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

struct LongName {
  std::string_view folded_name;
  std::string_view pcre2;
};
constexpr LongName kLongNames[] = {
    {"letter", "L"},
    {"uppercaseletter", "Lu"},
    {"lowercaseletter", "Ll"},
    {"titlecaseletter", "Lt"},
    {"casedletter", "L&"},
    {"modifierletter", "Lm"},
    {"otherletter", "Lo"},
    {"mark", "M"},
    {"nonspacingmark", "Mn"},
    {"spacingmark", "Mc"},
    {"enclosingmark", "Me"},
    {"number", "N"},
    {"decimalnumber", "Nd"},
    {"letternumber", "Nl"},
    {"othernumber", "No"},
    {"symbol", "S"},
    {"mathsymbol", "Sm"},
    {"currencysymbol", "Sc"},
    {"modifiersymbol", "Sk"},
    {"othersymbol", "So"},
    {"punctuation", "P"},
    {"connectorpunctuation", "Pc"},
    {"dashpunctuation", "Pd"},
    {"openpunctuation", "Ps"},
    {"closepunctuation", "Pe"},
    {"initialpunctuation", "Pi"},
    {"finalpunctuation", "Pf"},
    {"otherpunctuation", "Po"},
    {"separator", "Z"},
    {"spaceseparator", "Zs"},
    {"lineseparator", "Zl"},
    {"paragraphseparator", "Zp"},
    {"other", "C"},
    {"control", "Cc"},
    {"format", "Cf"},
    {"surrogate", "Cs"},
    {"privateuse", "Co"},
    {"unassigned", "Cn"},
    {"any", "Any"},
    {"alphabetic", "Alphabetic"},
    {"uppercase", "Uppercase"},
    {"lowercase", "Lowercase"},
    {"alpha", "Alphabetic"},
    {"digit", "Nd"},
    {"cntrl", "Cc"},
    {"upper", "Uppercase"},
    {"lower", "Lowercase"},
    {"whitespace", "White_Space"},
    {"space", "White_Space"},
    {"emoji", "Emoji"},
    {"extendedpictographic", "Extended_Pictographic"},
    {"ideographic", "Ideographic"},
};

// One character set of the source, cut into what PCRE2 can hold in one pair of brackets and what must stand outside.
struct CharSet {
  bool negated = false;
  std::string items;                // text between PCRE2 brackets
  std::vector<std::string> nested;  // further alternatives, each a complete PCRE2 atom of one character
  std::vector<std::string> also;    // look-aheads that must hold as well
};

class Translator {
 public:
  explicit Translator(std::string_view source) : in_(source) {}

  std::string run() {
    while (pos_ < in_.size()) {
      const char c = in_[pos_];
      if (c == '\\') {
        const std::size_t start = out_.size();
        out_ += escape(false);
        atom_ = start;
      } else if (c == '[') {
        const std::size_t start = out_.size();
        out_ += set(0);
        atom_ = start;
      } else if (c == '(') {
        open();
      } else if (c == ')') {
        if (groups_.empty()) throw BadFile("it has a closing bracket too many.");
        out_ += c;
        ++pos_;
        atom_ = groups_.back();
        groups_.pop_back();
      } else if (c == '{') {
        interval();
      } else if (c == '*' || c == '+' || c == '?') {
        out_ += c;
        ++pos_;
      } else {
        atom_ = out_.size();
        do {
          out_ += in_[pos_++];
        } while (pos_ < in_.size() && (static_cast<unsigned char>(in_[pos_]) & 0xC0) == 0x80);
      }
    }
    return std::move(out_);
  }

 private:
  bool at(std::string_view text) const { return in_.substr(pos_, text.size()) == text; }

  // "(", "(?:", "(?i:", "(?=" and so on: copied, but Ruby's m option is PCRE2's s.
  void open() {
    groups_.push_back(out_.size());
    out_ += in_[pos_++];
    if (!at("?")) return;
    std::size_t i = pos_ + 1;
    while (i < in_.size() && (std::isalpha(static_cast<unsigned char>(in_[i])) || in_[i] == '-')) ++i;
    if (i < in_.size() && i > pos_ + 1 && (in_[i] == ':' || in_[i] == ')')) {
      for (; pos_ < i; ++pos_) out_ += in_[pos_] == 'm' ? 's' : in_[pos_];
    }
  }

  // "{n,m}" behind an atom. "{,m}" starts at nought; a "+" behind it repeats the whole.
  void interval() {
    std::size_t i = pos_ + 1;
    while (i < in_.size() && (std::isdigit(static_cast<unsigned char>(in_[i])) || in_[i] == ',')) ++i;
    const bool is_interval = i < in_.size() && in_[i] == '}' && i > pos_ + 1 && in_.substr(pos_, i - pos_) != "{,";
    if (!is_interval) {
      out_ += "\\{";
      atom_ = out_.size() - 2;
      ++pos_;
      return;
    }
    std::string body(in_.substr(pos_ + 1, i - pos_ - 1));
    if (body.front() == ',') body.insert(0, "0");
    out_ += "{" + body + "}";
    pos_ = i + 1;
    if (pos_ < in_.size() && in_[pos_] == '+') {
      out_.insert(atom_, "(?:");
      out_ += ")+";
      ++pos_;
    }
  }

  // A backslash and what belongs to it. `in_set`: inside brackets, where the result must be a set item.
  std::string escape(bool in_set) {
    if (pos_ + 1 >= in_.size()) throw BadFile("it ends in a lone backslash.");
    const char c = in_[pos_ + 1];
    const auto set_item = [&](std::string_view ranges, bool negated) {
      pos_ += 2;
      if (in_set && !negated) return std::string(ranges);
      return (negated ? "[^" : "[") + std::string(ranges) + "]";
    };
    switch (c) {
      case 's':
        return set_item(kSpaceRanges, false);
      case 'S':
        return in_set ? set_item(kNotSpaceRanges, false) : set_item(kSpaceRanges, true);
      case 'w':
        return set_item(kWordRanges, false);
      case 'W':
        if (in_set) throw BadFile("\\W inside a set is not supported.");
        return set_item(kWordRanges, true);
      case 'd':
        pos_ += 2;
        return "\\p{Nd}";
      case 'D':
        pos_ += 2;
        return "\\P{Nd}";
      case 'h':
        return set_item("0-9a-fA-F", false);
      case 'p':
      case 'P':
        return property();
      case 'u': {
        if (pos_ + 6 > in_.size()) throw BadFile("\\u needs four digits.");
        const std::string digits(in_.substr(pos_ + 2, 4));
        if (!std::all_of(digits.begin(), digits.end(), [](unsigned char d) { return std::isxdigit(d) != 0; })) {
          throw BadFile("\\u needs four hexadecimal digits.");
        }
        pos_ += 6;
        return "\\x{" + digits + "}";
      }
      case 'x': {
        if (pos_ + 2 < in_.size() && in_[pos_ + 2] == '{') {
          const std::size_t end = in_.find('}', pos_);
          if (end == std::string_view::npos) throw BadFile("\\x{ has no end.");
          std::string copy(in_.substr(pos_, end + 1 - pos_));
          pos_ = end + 1;
          return copy;
        }
        [[fallthrough]];
      }
      default: {
        std::string copy(in_.substr(pos_, 2));
        pos_ += 2;
        // The rest of an escaped character beyond ASCII.
        while (pos_ < in_.size() && (static_cast<unsigned char>(in_[pos_]) & 0xC0) == 0x80) copy += in_[pos_++];
        if (static_cast<unsigned char>(copy[1]) >= 0x80) copy.erase(0, 1);
        return copy;
      }
    }
  }

  std::string property() {
    const bool upper = in_[pos_ + 1] == 'P';
    pos_ += 2;
    if (pos_ >= in_.size() || in_[pos_] != '{') {  // \pL
      if (pos_ >= in_.size()) throw BadFile("\\p has no name.");
      return std::string(upper ? "\\P{" : "\\p{") + in_[pos_++] + "}";
    }
    const std::size_t end = in_.find('}', pos_);
    if (end == std::string_view::npos) throw BadFile("\\p{ has no end.");
    std::string_view name = in_.substr(pos_ + 1, end - pos_ - 1);
    pos_ = end + 1;
    bool negated = upper;
    if (!name.empty() && name.front() == '^') {
      negated = !negated;
      name.remove_prefix(1);
    }
    const std::string head = negated ? "\\P{" : "\\p{";
    if (name.size() <= 2) return head + std::string(name) + "}";
    const std::string wanted = folded(name);
    for (const LongName& known : kLongNames) {
      if (known.folded_name == wanted) return head + std::string(known.pcre2) + "}";
    }
    if (name.find_first_of("=:") != std::string_view::npos) return head + std::string(name) + "}";
    return head + "sc:" + std::string(name) + "}";
  }

  // A set in brackets, as one PCRE2 atom.
  std::string set(int depth) {
    if (depth > kMaxNesting) throw BadFile("its sets nest more than " + std::to_string(kMaxNesting) + " deep.");
    ++pos_;  // [
    CharSet current;
    if (at("^")) {
      current.negated = true;
      ++pos_;
    }
    const bool negated = current.negated;
    std::vector<std::string> operands;  // finished operands of &&
    bool first = true;
    for (;; first = false) {
      if (pos_ >= in_.size()) throw BadFile("a set has no end.");
      const char c = in_[pos_];
      if (c == ']' && !first) {
        ++pos_;
        break;
      }
      if (at("[:")) {
        const std::size_t end = in_.find(":]", pos_);
        if (end != std::string_view::npos) {
          current.items += posix_class(in_.substr(pos_ + 2, end - pos_ - 2));
          pos_ = end + 2;
          continue;
        }
      }
      if (c == '[') {
        current.nested.push_back(set(depth + 1));
      } else if (at("&&")) {
        pos_ += 2;
        operands.push_back(union_of(current));
        current = CharSet{};
      } else if (c == '\\') {
        std::string item = escape(true);
        if (!item.empty() && item.front() == '[') {
          current.nested.push_back(std::move(item));
        } else {
          current.items += item;
        }
      } else if (c == ']') {  // first in the set: the character itself
        current.items += "\\]";
        ++pos_;
      } else {
        current.items += c;
        ++pos_;
      }
    }
    if (operands.empty() && current.nested.empty()) return (negated ? "[^" : "[") + current.items + "]";
    operands.push_back(union_of(current));
    // x must be in every operand: look-aheads for all but the last, which consumes.
    std::string all;
    for (std::size_t i = 0; i + 1 < operands.size(); ++i) all += "(?=" + operands[i] + ")";
    all += operands.back();
    if (negated) return "(?:(?!" + all + ")[\\x{0}-\\x{10ffff}])";
    return "(?:" + all + ")";
  }

  // "[:punct:]" and its like hold Unicode characters there.
  static std::string posix_class(std::string_view name) {
    if (name == "punct") return "\\p{P}\\p{S}";
    if (name == "alpha") return "\\p{Alphabetic}";
    if (name == "alnum") return "\\p{Alphabetic}\\p{Nd}";
    if (name == "digit") return "\\p{Nd}";
    if (name == "space") return std::string(kSpaceRanges);
    if (name == "word") return std::string(kWordRanges);
    return "[:" + std::string(name) + ":]";
  }

  static std::string union_of(const CharSet& s) {
    std::string out;
    if (!s.items.empty()) out = "[" + s.items + "]";
    for (const std::string& n : s.nested) out += (out.empty() ? "" : "|") + n;
    if (out.empty()) return "(?!)";
    return s.nested.empty() || (s.items.empty() && s.nested.size() == 1) ? out : "(?:" + out + ")";
  }

  std::string_view in_;
  std::size_t pos_ = 0;
  std::string out_;
  std::size_t atom_ = 0;             // where the last atom starts in out_
  std::vector<std::size_t> groups_;  // where each open group starts in out_
};

}  // namespace

std::string translate_pattern(std::string_view ruby) {
  // A run of white space at a line's end. As written it takes quadratic time inside long runs; with the look-behind it
  // finds the same matches: the leftmost start is the start of the run, and no start further in matches behind it.
  if (ruby == "\\s+$") return "(?<![" + std::string(kSpaceRanges) + "])[" + std::string(kSpaceRanges) + "]+$";
  return Translator(ruby).run();
}

}  // namespace cairn
