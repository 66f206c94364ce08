// Layout of nested lists and dicts.
#include "core/text/template/pretty_print.hpp"

#include <algorithm>

#include "core/text/template/operators.hpp"
#include "core/text/template/unicode.hpp"

namespace cairn::tmpl {
namespace {

constexpr size_t kColumns = 80;

// The same value with the keys of every dict sorted; keys of different types are ordered by their types' names.
Value sorted_keys(const Value& value) {
  charge_work(1);
  if (value.is_list() || value.is_tuple()) {
    std::vector<Value> items;
    for (const Value& item : value.as_sequence().items) items.push_back(sorted_keys(item));
    return Value::sequence(value.as_sequence().kind, std::move(items));
  }
  if (!value.is_dict()) return value;
  std::vector<std::pair<Value, Value>> items(value.dict().items());
  std::stable_sort(items.begin(), items.end(), [](const auto& a, const auto& b) {
    const bool comparable =
        (a.first.is_string() && b.first.is_string()) || (a.first.is_number() && b.first.is_number());
    return comparable ? less(a.first, b.first) : type_name(a.first) < type_name(b.first);
  });
  auto sorted = std::make_shared<Dict>();
  for (const auto& [key, item] : items) sorted->set(key, sorted_keys(item));
  return Value(std::move(sorted));
}

// `indent` is the column of the value, `allowance` what must still fit after it.
void write(std::string& out, const Value& value, size_t indent, size_t allowance) {
  const std::string line = repr(value);
  check_room(out.size() + line.size());
  const bool fits = indent + count_characters(line) + allowance <= kColumns;
  const bool nested = (value.is_list() || value.is_tuple() ? !value.as_sequence().items.empty()
                                                           : value.is_dict() && value.dict().size() != 0);
  if (fits || !nested) {
    out += line;
    return;
  }
  const std::string break_line = ",\n" + std::string(indent + 1, ' ');
  if (value.is_dict()) {
    out += '{';
    const auto& items = value.dict().items();
    for (size_t i = 0; i < items.size(); ++i) {
      if (i != 0) out += break_line;
      const std::string key = repr(items[i].first);
      out += key + ": ";
      write(out, items[i].second, indent + count_characters(key) + 3, i + 1 == items.size() ? allowance + 1 : 1);
    }
    out += '}';
    return;
  }
  const std::vector<Value>& items = value.as_sequence().items;
  const std::string close = value.is_list() ? "]" : items.size() == 1 ? ",)" : ")";
  out += value.is_list() ? '[' : '(';
  for (size_t i = 0; i < items.size(); ++i) {
    if (i != 0) out += break_line;
    write(out, items[i], indent + 1, i + 1 == items.size() ? allowance + close.size() : 1);
  }
  out += close;
}

}  // namespace

std::string pretty_print(const Value& value) {
  std::string out;
  write(out, sorted_keys(value), 0, 0);
  return out;
}

}  // namespace cairn::tmpl
