// OwnedMap: deep copies of the ABI's maps, and their limits.
#include "core/tensor/value_abi.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/error.hpp"

namespace cairn {
namespace {

cairn_str str(const char* text) {
  return {text, std::strlen(text)};
}
cairn_value integer(std::int64_t value) {
  cairn_value result{};
  result.kind = CAIRN_VALUE_INT;
  result.as.integer = value;
  return result;
}
cairn_value list_of(const cairn_value* data, std::uint64_t count) {
  cairn_value result{};
  result.kind = CAIRN_VALUE_LIST;
  result.as.list = {data, count};
  return result;
}
std::string refusal(const cairn_map& map) {
  try {
    OwnedMap::copy_of(map, "the map");
  } catch (const std::exception& error) {
    return error.what();
  }
  return "accepted";
}

TEST(OwnedMap, CopiesEverythingDeeply) {
  std::string text = "hello";
  std::array<cairn_value, 2> items{integer(1), integer(2)};
  cairn_value string{};
  string.kind = CAIRN_VALUE_STRING;
  string.as.string = {text.data(), text.size()};
  cairn_value unknown = integer(5);
  unknown.kind = 77;
  std::array<cairn_entry, 3> entries{
      {{str("text"), string}, {str("list"), list_of(items.data(), 2)}, {str("new kind"), unknown}}};
  OwnedMap first = OwnedMap::copy_of({entries.data(), entries.size()}, "the map");
  text = "xxxxx";
  items[1] = integer(99);
  const OwnedMap map = std::move(first);
  ASSERT_NE(map.find("text"), nullptr);
  EXPECT_EQ(std::string(map.find("text")->as.string.data, 5), "hello");
  EXPECT_EQ(map.find("list")->as.list.data[1].as.integer, 2);
  EXPECT_EQ(map.find("new kind")->kind, static_cast<std::uint32_t>(CAIRN_VALUE_NONE));
  EXPECT_EQ(map.find("absent"), nullptr);
}

TEST(OwnedMap, KeepsTensorsAlive) {
  const std::int64_t before = Tensor::live_count();
  {
    TensorPtr tensor = Tensor::create(kInt32, std::array<std::int64_t, 1>{1});
    cairn_value value{};
    value.kind = CAIRN_VALUE_TENSOR;
    value.as.tensor = tensor->handle();
    const cairn_entry entry{str("t"), value};
    const OwnedMap map = OwnedMap::copy_of({&entry, 1}, "the map");
    tensor = TensorPtr();
    EXPECT_EQ(Tensor::live_count(), before + 1);
    EXPECT_EQ(Tensor::from_handle(map.find("t")->as.tensor)->elements(), 1);
  }
  EXPECT_EQ(Tensor::live_count(), before);
}

TEST(OwnedMap, RefusesHostileMaps) {
  const cairn_entry twice[] = {{str("k"), integer(1)}, {str("k"), integer(2)}};
  EXPECT_NE(refusal({twice, 2}).find("twice"), std::string::npos);
  EXPECT_NE(refusal({nullptr, 2}).find("no data"), std::string::npos);
  EXPECT_NE(refusal({twice, 1ULL << 60}).find("65536"), std::string::npos);
  cairn_value endless = integer(0);
  endless = list_of(&endless, 1);  // holds itself
  const cairn_entry nested{str("k"), endless};
  EXPECT_NE(refusal({&nested, 1}).find("deep"), std::string::npos);
  cairn_value wide[8];  // eight lists of eight lists of ...: 8^6 values through 48 of them
  for (cairn_value& value : wide) value = integer(0);
  std::vector<std::array<cairn_value, 8>> levels(6);
  for (std::size_t level = 0; level < levels.size(); ++level) {
    levels[level].fill(list_of(level == 0 ? wide : levels[level - 1].data(), 8));
  }
  const cairn_entry blown{str("k"), levels.back()[0]};
  EXPECT_NE(refusal({&blown, 1}).find("65536"), std::string::npos);
  cairn_value null_tensor{};
  null_tensor.kind = CAIRN_VALUE_TENSOR;
  const cairn_entry missing{str("k"), null_tensor};
  EXPECT_NE(refusal({&missing, 1}).find("NULL"), std::string::npos);
  cairn_value opaque{};
  opaque.kind = CAIRN_VALUE_OPAQUE;
  const cairn_entry object{str("k"), opaque};
  EXPECT_NE(refusal({&object, 1}).find("opaque"), std::string::npos);
}

TEST(OwnedMap, ComesFromAValue) {
  const Value value(ValueMap{{"on", Value(true)}, {"rate", Value(0.5)}, {"names", Value(ValueList{Value("a"), {}})}});
  const OwnedMap map = OwnedMap::from_value(value, "the map");
  EXPECT_EQ(map.find("on")->kind, static_cast<std::uint32_t>(CAIRN_VALUE_BOOL));
  EXPECT_EQ(map.find("on")->as.integer, 1);
  EXPECT_EQ(map.find("rate")->as.real, 0.5);
  ASSERT_EQ(map.find("names")->as.list.count, 2U);
  EXPECT_EQ(map.find("names")->as.list.data[1].kind, static_cast<std::uint32_t>(CAIRN_VALUE_NONE));
  EXPECT_EQ(OwnedMap::from_value(Value(), "the map").view().count, 0U);
  EXPECT_THROW(OwnedMap::from_value(Value(3), "the map"), InvalidArgument);
}

TEST(OwnedMap, MergesWithTheOverlayOnTop) {
  const OwnedMap base = OwnedMap::from_value(Value(ValueMap{{"a", Value(1)}, {"b", Value(2)}}), "base");
  const OwnedMap overlay = OwnedMap::from_value(Value(ValueMap{{"b", Value(3)}, {"c", Value(4)}}), "overlay");
  const OwnedMap merged = OwnedMap::merged(base.view(), overlay.view(), "merged");
  ASSERT_EQ(merged.view().count, 3U);
  EXPECT_EQ(merged.find("a")->as.integer, 1);
  EXPECT_EQ(merged.find("b")->as.integer, 3);
  EXPECT_EQ(merged.find("c")->as.integer, 4);
}

}  // namespace
}  // namespace cairn
