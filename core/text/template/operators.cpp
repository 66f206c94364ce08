// Arithmetic, comparison and containment.
#include "core/text/template/operators.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/text/template/python_format.hpp"

namespace cairn::tmpl {
namespace {

constexpr const char* kSymbols[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};

[[noreturn]] void fail_operands(BinaryOperator op, const Value& left, const Value& right) {
  if (left.is_undefined()) fail_undefined(left);
  if (right.is_undefined()) fail_undefined(right);
  if (op == BinaryOperator::kAdd && (left.is_string() || left.is_list() || left.is_tuple())) {
    throw RenderError("can only concatenate " + type_name(left) + " (not \"" + type_name(right) + "\") to " +
                      type_name(left));
  }
  throw RenderError(std::string("unsupported operand type(s) for ") + kSymbols[static_cast<int>(op)] + ": '" +
                    type_name(left) + "' and '" + type_name(right) + "'");
}

[[noreturn]] void fail_overflow() {
  throw RenderError("an integer left the range of 64 bits, which this engine's integers have");
}

Value integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) throw RenderError("0.0 cannot be raised to a negative power");
    return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  while (exponent > 0) {
    if (exponent & 1) {
      if (__builtin_mul_overflow(result, base, &result)) fail_overflow();
    }
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) fail_overflow();
  }
  return Value(result);
}

Value integer_arithmetic(BinaryOperator op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case BinaryOperator::kAdd:
      if (__builtin_add_overflow(a, b, &result)) fail_overflow();
      return Value(result);
    case BinaryOperator::kSubtract:
      if (__builtin_sub_overflow(a, b, &result)) fail_overflow();
      return Value(result);
    case BinaryOperator::kMultiply:
      if (__builtin_mul_overflow(a, b, &result)) fail_overflow();
      return Value(result);
    case BinaryOperator::kDivide:
      if (b == 0) throw RenderError("division by zero");
      return Value(static_cast<double>(a) / static_cast<double>(b));
    case BinaryOperator::kFloorDivide:
    case BinaryOperator::kModulo: {
      if (b == 0) {
        throw RenderError(op == BinaryOperator::kModulo ? "integer modulo by zero"
                                                        : "integer division or modulo by zero");
      }
      if (b == -1) {
        if (op == BinaryOperator::kModulo) return Value(int64_t{0});
        if (__builtin_sub_overflow(int64_t{0}, a, &result)) fail_overflow();
        return Value(result);
      }
      int64_t quotient = a / b;
      int64_t rest = a % b;
      if (rest != 0 && (rest < 0) != (b < 0)) {
        --quotient;
        rest += b;
      }
      return Value(op == BinaryOperator::kModulo ? rest : quotient);
    }
    case BinaryOperator::kPower:
      return integer_power(a, b);
  }
  return Value();
}

// Python's float % : the result has the divisor's sign.
double float_modulo(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest != 0.0) {
    if ((b < 0) != (rest < 0)) rest += b;
    return rest;
  }
  return std::copysign(0.0, b);
}

double float_floor_divide(double a, double b) {
  const double rest = float_modulo(a, b);
  const double quotient = (a - rest) / b;
  if (quotient == 0.0) return std::copysign(0.0, a / b);
  double floored = std::floor(quotient);
  if (quotient - floored > 0.5) floored += 1.0;
  return floored;
}

Value float_arithmetic(BinaryOperator op, double a, double b) {
  switch (op) {
    case BinaryOperator::kAdd:
      return Value(a + b);
    case BinaryOperator::kSubtract:
      return Value(a - b);
    case BinaryOperator::kMultiply:
      return Value(a * b);
    case BinaryOperator::kDivide:
      if (b == 0.0) throw RenderError("float division by zero");
      return Value(a / b);
    case BinaryOperator::kFloorDivide:
      if (b == 0.0) throw RenderError("float floor division by zero");
      return Value(float_floor_divide(a, b));
    case BinaryOperator::kModulo:
      if (b == 0.0) throw RenderError("float modulo by zero");
      return Value(float_modulo(a, b));
    case BinaryOperator::kPower:
      break;
  }
  if (a == 0.0 && b < 0.0) throw RenderError("0.0 cannot be raised to a negative power");
  if (a < 0.0 && std::isfinite(a) && b != std::floor(b)) {
    throw RenderError("a negative number to a fractional power is a complex number, which templates do not have");
  }
  const double power = std::pow(a, b);
  if (std::isinf(power) && std::isfinite(a) && std::isfinite(b)) throw RenderError("numerical result out of range");
  return Value(power);
}

Value multiply_sequence(const Value& sequence, int64_t count) {
  if (sequence.is_string()) return Value(repeat(sequence.text(), count), sequence.is_markup());
  const std::vector<Value>& items = sequence.as_sequence().items;
  std::vector<Value> result;
  if (count > 0 && !items.empty()) {
    size_t bytes = 0;
    if (__builtin_mul_overflow(items.size() * sizeof(Value), static_cast<size_t>(count), &bytes)) bytes = SIZE_MAX;
    check_room(bytes);
    result.reserve(items.size() * static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) result.insert(result.end(), items.begin(), items.end());
    charge_work(result.size());
  }
  return Value::sequence(sequence.as_sequence().kind, std::move(result));
}

Value add_sequences(const Value& left, const Value& right) {
  const std::vector<Value>& a = left.as_sequence().items;
  const std::vector<Value>& b = right.as_sequence().items;
  check_room((a.size() + b.size()) * sizeof(Value));
  charge_work(a.size() + b.size());
  std::vector<Value> joined;
  joined.reserve(a.size() + b.size());
  joined.insert(joined.end(), a.begin(), a.end());
  joined.insert(joined.end(), b.begin(), b.end());
  return Value::sequence(left.as_sequence().kind, std::move(joined));
}

bool is_repeatable(const Value& value) {
  return value.is_string() || value.is_list() || value.is_tuple();
}

[[noreturn]] void fail_comparison(Comparison op, const Value& left, const Value& right) {
  if (left.is_undefined()) fail_undefined(left);
  if (right.is_undefined()) fail_undefined(right);
  const char* symbol = op == Comparison::kLess        ? "<"
                       : op == Comparison::kLessEqual ? "<="
                       : op == Comparison::kGreater   ? ">"
                                                      : ">=";
  throw RenderError(std::string("'") + symbol + "' not supported between instances of '" + type_name(left) + "' and '" +
                    type_name(right) + "'");
}

template <class T>
bool order(Comparison op, const T& a, const T& b) {
  switch (op) {
    case Comparison::kLess:
      return a < b;
    case Comparison::kLessEqual:
      return a <= b;
    case Comparison::kGreater:
      return a > b;
    default:
      return a >= b;
  }
}

bool ordered(Comparison op, const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) {
    if (left.is_integral() && right.is_integral()) return order(op, left.as_int(), right.as_int());
    // long double holds every int64 and every double exactly here (x86-64).
    auto wide = [](const Value& v) {
      return v.is_float() ? static_cast<long double>(v.as_float()) : static_cast<long double>(v.as_int());
    };
    return order(op, wide(left), wide(right));
  }
  if (left.is_string() && right.is_string()) {
    charge_work(std::min(left.text().size(), right.text().size()));
    return order(op, left.text(), right.text());  // UTF-8 orders as code points do
  }
  if ((left.is_list() && right.is_list()) || (left.is_tuple() && right.is_tuple())) {
    const std::vector<Value>& a = left.as_sequence().items;
    const std::vector<Value>& b = right.as_sequence().items;
    const size_t common = std::min(a.size(), b.size());
    charge_work(common);
    for (size_t i = 0; i < common; ++i) {
      if (!equal(a[i], b[i])) return ordered(op, a[i], b[i]);
    }
    return order(op, a.size(), b.size());
  }
  fail_comparison(op, left, right);
}

}  // namespace

Value apply(BinaryOperator op, const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) {
    if (left.is_float() || right.is_float()) return float_arithmetic(op, left.as_float(), right.as_float());
    return integer_arithmetic(op, left.as_int(), right.as_int());
  }
  if (op == BinaryOperator::kAdd) {
    if (left.is_string() && right.is_string()) {
      if (left.is_markup() || right.is_markup()) {
        return Value(concatenate(escape_html(left), escape_html(right)), true);
      }
      return Value(concatenate(left.text(), right.text()));
    }
    if ((left.is_list() && right.is_list()) || (left.is_tuple() && right.is_tuple())) return add_sequences(left, right);
  }
  if (op == BinaryOperator::kMultiply) {
    if (is_repeatable(left) && right.is_integral()) return multiply_sequence(left, right.as_int());
    if (left.is_integral() && is_repeatable(right)) return multiply_sequence(right, left.as_int());
  }
  if (op == BinaryOperator::kModulo && left.is_string()) return percent_format(left, right);
  fail_operands(op, left, right);
}

Value negate(const Value& value) {
  if (value.is_float()) return Value(-value.as_float());
  if (value.is_integral()) return integer_arithmetic(BinaryOperator::kSubtract, 0, value.as_int());
  if (value.is_undefined()) fail_undefined(value);
  throw RenderError("bad operand type for unary -: '" + type_name(value) + "'");
}

Value plus(const Value& value) {
  if (value.is_float()) return value;
  if (value.is_integral()) return Value(value.as_int());
  if (value.is_undefined()) fail_undefined(value);
  throw RenderError("bad operand type for unary +: '" + type_name(value) + "'");
}

bool compare(Comparison op, const Value& left, const Value& right) {
  switch (op) {
    case Comparison::kEqual:
      return equal(left, right);
    case Comparison::kNotEqual:
      return !equal(left, right);
    case Comparison::kIn:
      return contains(right, left);
    case Comparison::kNotIn:
      return !contains(right, left);
    default:
      return ordered(op, left, right);
  }
}

bool less(const Value& left, const Value& right) {
  return ordered(Comparison::kLess, left, right);
}

bool contains(const Value& container, const Value& item) {
  if (container.is_string()) {
    if (!item.is_string()) {
      throw RenderError("'in <string>' requires string as left operand, not " + type_name(item));
    }
    return find_text(container.text(), item.text()) != std::string_view::npos;
  }
  if (container.is_dict()) return container.dict().find(item) != nullptr;
  if (container.is_generator()) {
    Sequence& generator = container.as_sequence();
    while (generator.taken < generator.items.size()) {
      charge_work(1);
      if (equal(generator.items[generator.taken++], item)) return true;
    }
    return false;
  }
  if (container.is_sequence()) {
    const std::vector<Value>& items = container.as_sequence().items;
    charge_work(items.size());
    return std::any_of(items.begin(), items.end(), [&](const Value& one) { return equal(one, item); });
  }
  if (container.is_undefined()) return false;
  throw RenderError("argument of type '" + type_name(container) + "' is not iterable");
}

std::string concatenate(std::string_view left, std::string_view right) {
  check_room(left.size() + right.size());
  charge_work(left.size() + right.size());
  std::string joined;
  joined.reserve(left.size() + right.size());
  joined += left;
  joined += right;
  return joined;
}

std::string repeat(std::string_view text, int64_t count) {
  std::string out;
  if (count <= 0 || text.empty()) return out;
  size_t bytes = 0;
  if (__builtin_mul_overflow(text.size(), static_cast<size_t>(count), &bytes)) bytes = SIZE_MAX;
  check_room(bytes);
  charge_work(bytes);
  out.reserve(bytes);
  for (int64_t i = 0; i < count; ++i) out += text;
  return out;
}

std::string escape_html(const Value& value) {
  if (value.is_markup()) return value.text();
  const std::string text = to_text(value);
  charge_work(text.size());
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

size_t find_text(std::string_view text, std::string_view needle, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (needle.empty()) return from;
  // memmem is two-way search in glibc: linear whatever the text.
  const void* at = memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
  const size_t found = at ? static_cast<size_t>(static_cast<const char*>(at) - text.data()) : std::string_view::npos;
  charge_work((at ? found : text.size()) - from);
  return found;
}

size_t rfind_text(std::string_view text, std::string_view needle) {
  if (needle.size() > text.size()) return std::string_view::npos;
  const std::string backwards(text.rbegin(), text.rend());
  const std::string wanted(needle.rbegin(), needle.rend());
  const size_t at = find_text(backwards, wanted);
  return at == std::string_view::npos ? at : text.size() - at - needle.size();
}

}  // namespace cairn::tmpl
