// All normalizers but the compiled character map.
#include "core/text/tokenizer_normalizer.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/text/tokenizer_model.hpp"
#include "core/text/tokenizer_regex.hpp"

namespace cairn {

namespace {

void check_size(std::size_t bytes) {
  if (bytes > kMaxNormalizedBytes) {
    throw InvalidArgument("The text grows beyond " + std::to_string(kMaxNormalizedBytes) +
                          " bytes when the tokenizer normalises it. Send it in smaller parts.");
  }
}

// A normalizer that is one function of the text.
template <class F>
class Function final : public Normalizer {
 public:
  explicit Function(F f) : f_(std::move(f)) {}
  void apply(std::string& text) const override {
    f_(text);
    check_size(text.size());
  }

 private:
  F f_;
};

template <class F>
NormalizerPtr make(F f) {
  return std::make_unique<Function<F>>(std::move(f));
}

// Rebuilds `text` from what `each(out, c)` appends for every character.
template <class F>
void rebuild(std::string& text, F&& each) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t pos = 0; pos < text.size();) each(out, unicode::next(text, pos));
  text = std::move(out);
}

void lowercase(std::string& text) {
  if (unicode::is_ascii(text)) {
    for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    return;
  }
  rebuild(text, [](std::string& out, char32_t c) { unicode::append_lowercase(out, c); });
}

void clean(std::string& text) {
  rebuild(text, [](std::string& out, char32_t c) {
    const bool is_line_space = c == '\t' || c == '\n' || c == '\r';
    if (c == 0 || c == unicode::kReplacement || (!is_line_space && unicode::is_other(c))) return;
    unicode::append(out, is_line_space || unicode::is_white_space(c) ? U' ' : c);
  });
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  std::size_t found = text.find(what);
  if (found == std::string::npos) return;
  std::string out;
  std::size_t from = 0;
  for (; found != std::string::npos; found = text.find(what, from)) {
    out.append(text, from, found - from);
    out.append(with);
    check_size(out.size());
    from = found + what.size();
  }
  out.append(text, from);
  text = std::move(out);
}

}  // namespace

NormalizerPtr make_unicode_form(unicode::Form form) {
  return make([form](std::string& text) {
    if (!unicode::is_ascii(text)) text = unicode::normalize(text, form);
  });
}

NormalizerPtr make_lowercase() {
  return make(lowercase);
}

NormalizerPtr make_strip_accents() {
  return make([](std::string& text) {
    if (unicode::is_ascii(text)) return;
    rebuild(text, [](std::string& out, char32_t c) {
      if (!unicode::is_mark(c)) unicode::append(out, c);
    });
  });
}

NormalizerPtr make_strip(bool left, bool right) {
  return make([left, right](std::string& text) {
    std::size_t begin = 0;
    std::size_t end = text.size();
    while (left && begin < end) {
      std::size_t pos = begin;
      if (!unicode::is_white_space(unicode::next(text, pos))) break;
      begin = pos;
    }
    while (right && end > begin) {
      const std::size_t start = unicode::last_char(std::string_view(text).substr(0, end));
      std::size_t pos = start;
      if (!unicode::is_white_space(unicode::next(text, pos))) break;
      end = start;
    }
    text.resize(end);
    text.erase(0, begin);
  });
}

NormalizerPtr make_prepend(std::string prefix) {
  return make([prefix = std::move(prefix)](std::string& text) {
    if (!text.empty()) text.insert(0, prefix);
  });
}

NormalizerPtr make_replace(std::string what, std::string with) {
  return make([what = std::move(what), with = std::move(with)](std::string& text) {
    if (!what.empty()) replace_all(text, what, with);
  });
}

NormalizerPtr make_regex_replace(std::string_view pattern, std::string with, std::string_view key) {
  return make([regex = Regex(pattern, key), with = std::move(with)](std::string& text) {
    std::string out;
    std::size_t from = 0;
    regex.for_each(text, [&](std::size_t begin, std::size_t end) {
      out.append(text, from, begin - from);
      out.append(with);
      check_size(out.size());
      from = end;
    });
    if (from == 0 && out.empty()) return;
    out.append(text, from);
    text = std::move(out);
  });
}

NormalizerPtr make_bert_normalizer(BertNormalizerOptions options) {
  return make([options](std::string& text) {
    if (options.clean_text) clean(text);
    const bool ascii = unicode::is_ascii(text);
    if (options.handle_chinese_chars && !ascii) {
      rebuild(text, [](std::string& out, char32_t c) {
        const bool alone = unicode::is_cjk_ideograph(c);
        if (alone) out.push_back(' ');
        unicode::append(out, c);
        if (alone) out.push_back(' ');
      });
    }
    if (options.strip_accents && !ascii) {
      text = unicode::normalize(text, unicode::Form::kNfd);
      rebuild(text, [](std::string& out, char32_t c) {
        if (!unicode::is_nonspacing_mark(c)) unicode::append(out, c);
      });
    }
    if (options.lowercase) lowercase(text);
  });
}

NormalizerPtr make_nmt() {
  return make([](std::string& text) {
    rebuild(text, [](std::string& out, char32_t c) {
      const bool dropped =
          (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
      const bool space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                         (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF ||
                         c == unicode::kReplacement;
      if (!dropped) unicode::append(out, space ? U' ' : c);
    });
  });
}

NormalizerPtr make_byte_level_normalizer() {
  return make([](std::string& text) {
    std::string out;
    out.reserve(text.size() * 2);
    for (const char c : text) unicode::append(out, byte_level_char(static_cast<unsigned char>(c)));
    text = std::move(out);
  });
}

NormalizerPtr make_collapse_spaces() {
  return make([](std::string& text) {
    std::string out;
    for (const char c : text) {
      if (c != ' ' || (!out.empty() && out.back() != ' ')) out.push_back(c);
    }
    if (!out.empty() && out.back() == ' ') out.pop_back();
    text = std::move(out);
  });
}

}  // namespace cairn
