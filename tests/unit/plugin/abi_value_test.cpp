// Values across the ABI.
#include "core/plugin/abi_value.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "core/base/error.hpp"

namespace cairn {
namespace {

TEST(AbiValue, GoesThereAndBackUnchanged) {
  Value value{ValueMap{}};
  value.set("none", Value());
  value.set("yes", true);
  value.set("int", std::int64_t{-5});
  value.set("real", 0.25);
  value.set("text", "h\xC3\xA9");
  value.set("bytes", ValueBytes{std::byte{0}, std::byte{255}});
  value.set("empty", ValueList{});
  value.set("list", ValueList{Value(1), Value("two"), Value(ValueList{Value(3.5)})});
  Value inner{ValueMap{}};
  inner.set("a.b", false);
  value.set("map", inner);

  Arena arena;
  const cairn_value abi = to_abi_value(value, arena);
  ASSERT_EQ(abi.kind, static_cast<std::uint32_t>(CAIRN_VALUE_MAP));
  ASSERT_EQ(abi.as.map.count, 9U);
  EXPECT_EQ(abi.as.map.data[1].value.kind, static_cast<std::uint32_t>(CAIRN_VALUE_BOOL));
  EXPECT_EQ(abi.as.map.data[2].value.as.integer, -5);
  EXPECT_EQ(from_abi_value(abi), value);
}

TEST(AbiValue, ANoneIsAnEmptyMapAndAnythingElseIsNone) {
  Arena arena;
  EXPECT_EQ(to_abi_map(Value(), arena).count, 0U);
  EXPECT_THROW(to_abi_map(Value(1), arena), InvalidArgument);
}

TEST(AbiValue, UnknownKindsReadAsNone) {
  cairn_value value{};
  value.kind = 4711;
  EXPECT_TRUE(from_abi_value(value).is_none());
}

TEST(AbiValue, RefusesWhatPlainValuesCannotHold) {
  cairn_value value{};
  value.kind = CAIRN_VALUE_TENSOR;
  EXPECT_THROW(from_abi_value(value), InvalidArgument);
  value.kind = CAIRN_VALUE_OPAQUE;
  EXPECT_THROW(from_abi_value(value), InvalidArgument);
  value.kind = CAIRN_VALUE_LIST;
  value.as.list = {nullptr, 3};
  EXPECT_THROW(from_abi_value(value), InvalidArgument);

  std::vector<cairn_value> chain(200);
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    chain[i].kind = CAIRN_VALUE_LIST;
    chain[i].as.list = {&chain[i + 1], 1};
  }
  EXPECT_THROW(from_abi_value(chain[0]), InvalidArgument);
}

TEST(ReadSized, TakesWhatLiesInsideAndZeroesTheRest) {
  struct Table {
    std::uint64_t struct_size;
    std::uint64_t first;
    std::uint64_t second;
  };
  const Table full{sizeof(Table), 1, 2};
  EXPECT_EQ(read_sized(&full).second, 2U);
  const Table older{offsetof(Table, second), 1, 2};
  EXPECT_EQ(read_sized(&older).first, 1U);
  EXPECT_EQ(read_sized(&older).second, 0U);
  const Table newer{sizeof(Table) + 100, 1, 2};
  EXPECT_EQ(read_sized(&newer).second, 2U);
  EXPECT_EQ(read_sized<Table>(nullptr).struct_size, 0U);
}

}  // namespace
}  // namespace cairn
