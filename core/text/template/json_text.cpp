// Writes JSON the way Python's encoder does, byte for byte.
#include "core/text/template/json_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/text/template/operators.hpp"
#include "core/text/template/unicode.hpp"

namespace cairn::tmpl {
namespace {

class JsonWriter {
 public:
  explicit JsonWriter(const JsonStyle& style) : style_(style) {}

  void write(const Value& value) {
    charge_work(1);
    check_room(out_.size());
    if (value.is_none()) {
      out_ += "null";
    } else if (value.is_bool()) {
      out_ += value.as_bool() ? "true" : "false";
    } else if (value.is_number()) {
      out_ += number_text(value);
    } else if (value.is_string()) {
      write_string(value.text());
    } else if (value.is_dict()) {
      write_dict(value.dict());
    } else if (value.is_list() || value.is_tuple()) {
      write_list(value.as_sequence().items);
    } else {
      throw RenderError("Object of type " + type_name(value) + " is not JSON serializable");
    }
  }

  std::string take() { return std::move(out_); }

 private:
  static std::string number_text(const Value& value) {
    if (!value.is_float()) return std::to_string(value.as_int());
    const double number = value.as_float();
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
    return float_text(number);
  }

  void write_list(const std::vector<Value>& items) {
    if (items.empty()) {
      out_ += "[]";
      return;
    }
    out_ += '[';
    ++level_;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i != 0) out_ += style_.item_separator;
      new_line();
      write(items[i]);
    }
    --level_;
    new_line();
    out_ += ']';
  }

  void write_dict(const Dict& dict) {
    if (dict.size() == 0) {
      out_ += "{}";
      return;
    }
    std::vector<const std::pair<Value, Value>*> order;
    order.reserve(dict.size());
    for (const auto& item : dict.items()) order.push_back(&item);
    if (style_.sort_keys) {
      std::stable_sort(order.begin(), order.end(),
                       [](const auto* a, const auto* b) { return less(a->first, b->first); });
    }
    out_ += '{';
    ++level_;
    bool first = true;
    for (const auto* item : order) {
      if (!first) out_ += style_.item_separator;
      first = false;
      new_line();
      write_string(key_text(item->first));
      out_ += style_.key_separator;
      write(item->second);
    }
    --level_;
    new_line();
    out_ += '}';
  }

  static std::string key_text(const Value& key) {
    if (key.is_string()) return key.text();
    if (key.is_none()) return "null";
    if (key.is_bool()) return key.as_bool() ? "true" : "false";
    if (key.is_number()) return number_text(key);
    throw RenderError("keys must be str, int, float, bool or None, not " + type_name(key));
  }

  void new_line() {
    if (!style_.indent) return;
    out_ += '\n';
    for (int i = 0; i < level_; ++i) out_ += *style_.indent;
  }

  void write_escape(char32_t code) {
    char buffer[16];
    std::snprintf(buffer, sizeof(buffer), "\\u%04x", static_cast<unsigned>(code));
    out_ += buffer;
  }

  void write_string(std::string_view text) {
    charge_work(text.size());
    check_room(out_.size() + text.size());
    out_ += '"';
    for (size_t i = 0; i < text.size();) {
      const char c = text[i];
      const auto byte = static_cast<unsigned char>(c);
      constexpr std::string_view kNamed = "\"\\\n\r\t\f\b";
      constexpr std::string_view kLetters = "\"\\nrtfb";
      if (const size_t at = kNamed.find(c); at != std::string_view::npos) {
        out_ += '\\';
        out_ += kLetters[at];
      } else if (byte < 0x20) {
        write_escape(byte);
      } else if (byte < 0x80 || !style_.ensure_ascii) {
        // 0x7f is written as it is; Python's ASCII form does the same.
        out_ += c;
      } else {
        const char32_t code = decode_first(text.substr(i));
        if (code > 0xFFFF) {
          write_escape(0xD800 + ((code - 0x10000) >> 10));
          write_escape(0xDC00 + ((code - 0x10000) & 0x3FF));
        } else {
          write_escape(code);
        }
        i += character_bytes(text.substr(i));
        continue;
      }
      ++i;
    }
    out_ += '"';
  }

  const JsonStyle& style_;
  std::string out_;
  int level_ = 0;
};

}  // namespace

std::string to_json(const Value& value, const JsonStyle& style) {
  JsonWriter writer(style);
  writer.write(value);
  return writer.take();
}

}  // namespace cairn::tmpl
