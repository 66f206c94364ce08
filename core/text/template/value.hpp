// The values a template works on: Python's none, bool, int, float, str, list, tuple, dict and a few objects.
// Used by the whole template engine. Values belong to one render and one thread; only constants inside a compiled
// template are shared, and those are never changed.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/text/template/budget.hpp"

namespace cairn::tmpl {

class Value;
class Dict;
class Interpreter;
struct CallArgs;

// Nesting of lists, dicts and objects inside one another; bounds every recursion over a value.
inline constexpr int kMaxValueDepth = 200;

struct String {
  String(std::string text_in, bool markup_in);
  std::string text;  // valid UTF-8
  bool ascii;        // so that bytes are characters
  bool markup;       // came from `safe` or `escape`: + and % escape what they add to it
  Charge charge;
};

// What an undefined value says when it is used in a way that needs a value.
struct UndefinedInfo {
  std::string message;
};

enum class SequenceKind { kList, kTuple, kRange, kGenerator, kDictKeys, kDictValues, kDictItems };

struct Sequence {
  Sequence(SequenceKind kind_in, std::vector<Value> items_in);
  SequenceKind kind;
  std::vector<Value> items;
  // Generators only: the items that were already taken. A generator can be walked once, as in Python.
  size_t taken = 0;
  // groupby gives tuples whose members are also reachable as .grouper and .list.
  bool is_group = false;
  std::string note;  // a range's arguments or a generator's name, for printing
  int depth = 1;
  Charge charge;
};

// Anything with behaviour: namespaces, macros, functions, bound methods, loops.
class Object {
 public:
  virtual ~Object() = default;
  virtual std::string type_name() const = 0;
  // As jinja2 spells it in "... has no attribute": module and class.
  virtual std::string full_type_name() const { return type_name(); }
  virtual std::string repr() const { return "<" + type_name() + ">"; }
  virtual std::optional<Value> attribute(std::string_view name) const;
  virtual bool callable() const { return false; }
  virtual Value call(Interpreter& interpreter, CallArgs& args);
  virtual std::optional<size_t> length() const { return std::nullopt; }
  int depth = 1;
};

using StringPtr = std::shared_ptr<const String>;
using SequencePtr = std::shared_ptr<Sequence>;
using DictPtr = std::shared_ptr<const Dict>;
using ObjectPtr = std::shared_ptr<Object>;
using UndefinedPtr = std::shared_ptr<const UndefinedInfo>;

class Value {
 public:
  Value() = default;  // none
  explicit Value(bool flag) : kind_(Kind::kBool), integer_(flag) {}
  explicit Value(int64_t number) : kind_(Kind::kInt), integer_(number) {}
  explicit Value(int number) : Value(int64_t{number}) {}
  explicit Value(size_t number) : Value(static_cast<int64_t>(number)) {}
  explicit Value(double number) : kind_(Kind::kFloat), real_(number) {}
  explicit Value(std::string text, bool markup = false)
      : Value(StringPtr(std::make_shared<const String>(std::move(text), markup))) {}
  explicit Value(std::string_view text) : Value(std::string(text)) {}
  explicit Value(const char* text) : Value(std::string(text)) {}
  explicit Value(StringPtr text) : kind_(Kind::kString), held_(std::move(text)) {}
  explicit Value(SequencePtr sequence) : kind_(Kind::kSequence), held_(std::move(sequence)) {}
  explicit Value(DictPtr dict) : kind_(Kind::kDict), held_(std::move(dict)) {}
  explicit Value(std::shared_ptr<Dict> dict) : Value(DictPtr(std::move(dict))) {}
  explicit Value(ObjectPtr object) : kind_(Kind::kObject), held_(std::move(object)) {}
  explicit Value(UndefinedPtr info) : kind_(Kind::kUndefined), held_(std::move(info)) {}
  static Value undefined(std::string message);
  static Value list(std::vector<Value> items) { return sequence(SequenceKind::kList, std::move(items)); }
  static Value tuple(std::vector<Value> items) { return sequence(SequenceKind::kTuple, std::move(items)); }
  static Value sequence(SequenceKind kind, std::vector<Value> items);
  static Value generator(std::vector<Value> items, std::string function_name);

  bool is_none() const { return kind_ == Kind::kNone; }
  bool is_bool() const { return kind_ == Kind::kBool; }
  bool is_int() const { return kind_ == Kind::kInt; }  // not a bool
  bool is_float() const { return kind_ == Kind::kFloat; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_sequence() const { return kind_ == Kind::kSequence; }
  bool is_dict() const { return kind_ == Kind::kDict; }
  bool is_object() const { return kind_ == Kind::kObject; }
  bool is_undefined() const { return kind_ == Kind::kUndefined; }
  bool is_integral() const { return is_int() || is_bool(); }  // Python's bool is an int
  bool is_number() const { return is_integral() || is_float(); }
  bool is_kind(SequenceKind kind) const { return is_sequence() && as_sequence().kind == kind; }
  bool is_list() const { return is_kind(SequenceKind::kList); }
  bool is_tuple() const { return is_kind(SequenceKind::kTuple); }
  bool is_generator() const { return is_kind(SequenceKind::kGenerator); }
  bool is_markup() const { return is_string() && string().markup; }
  bool is_callable() const { return is_object() && object().callable(); }

  // Each only for a value of its kind.
  bool as_bool() const { return integer_ != 0; }
  int64_t as_int() const { return integer_; }  // of a bool too
  double as_float() const { return is_float() ? real_ : static_cast<double>(integer_); }
  const String& string() const { return *static_cast<const String*>(held_.get()); }
  const std::string& text() const { return string().text; }
  Sequence& as_sequence() const { return *static_cast<Sequence*>(const_cast<void*>(held_.get())); }
  const Dict& dict() const { return *static_cast<const Dict*>(held_.get()); }
  Object& object() const { return *static_cast<Object*>(const_cast<void*>(held_.get())); }
  const UndefinedInfo& undefined_info() const { return *static_cast<const UndefinedInfo*>(held_.get()); }
  template <class T>
  T* object_as() const {
    return is_object() ? dynamic_cast<T*>(&object()) : nullptr;
  }
  // The address that tells one container or object from another; null for plain values.
  const void* identity() const;

  bool truthy() const;
  int depth() const;

 private:
  enum class Kind : uint8_t { kNone, kBool, kInt, kFloat, kString, kSequence, kDict, kObject, kUndefined };

  Kind kind_ = Kind::kNone;
  union {
    int64_t integer_ = 0;
    double real_;
  };
  std::shared_ptr<const void> held_;  // a String, Sequence, Dict, Object or UndefinedInfo
};

// A Python dict: keeps insertion order, any hashable key.
class Dict {
 public:
  Dict();
  ~Dict();
  // Throws RenderError for a key that cannot be hashed (list, dict).
  void set(const Value& key, const Value& value);
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  const std::vector<std::pair<Value, Value>>& items() const { return items_; }
  size_t size() const { return items_.size(); }
  int depth() const { return depth_; }

 private:
  size_t position(const Value& key) const;

  std::vector<std::pair<Value, Value>> items_;
  std::unordered_multimap<size_t, size_t> index_;  // hash to position, kept once the dict is larger than a few items
  int depth_ = 1;
  Charge charge_;
};

struct CallArgs {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// The names of Python's types, as its error messages use them ("str", "NoneType").
std::string type_name(const Value& value);

// str() and repr() of Python.
std::string to_text(const Value& value);
std::string repr(const Value& value);
std::string repr_text(std::string_view text);
std::string float_text(double number);

// ==, which never fails, and hash(), which throws RenderError for lists and dicts.
bool equal(const Value& left, const Value& right);
size_t hash_of(const Value& value);

// Throws RenderError with the undefined value's message.
[[noreturn]] void fail_undefined(const Value& value);

// len(); throws RenderError for a value without one.
size_t length_of(const Value& value);

// The items a `for` would see. Takes what is left of a generator. Throws RenderError for a value that is not iterable.
std::vector<Value> iterate(const Value& value);
bool is_iterable(const Value& value);

}  // namespace cairn::tmpl
