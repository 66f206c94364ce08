// Values across the ABI.
#include "core/plugin/abi_value.hpp"

#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "core/plugin/status.hpp"

namespace cairn {
namespace {

TEST(AbiValue, CopiesEveryKindIntoTheArena) {
  Arena arena;
  cairn_value abi{};
  {
    Value value{ValueMap{}};
    value.set("none", Value());
    value.set("yes", true);
    value.set("int", std::int64_t{-5});
    value.set("real", 0.25);
    value.set("text", "h\xC3\xA9");
    value.set("bytes", ValueBytes{std::byte{7}, std::byte{255}});
    value.set("empty", ValueList{});
    value.set("list", ValueList{Value(1), Value(ValueList{Value("two")})});
    abi = to_abi_value(value, arena);
  }  // nothing refers to the original any more
  ASSERT_EQ(abi.kind, static_cast<std::uint32_t>(CAIRN_VALUE_MAP));
  ASSERT_EQ(abi.as.map.count, 8U);
  const auto entry = [&](std::size_t i, std::string_view key, std::uint32_t kind) -> const cairn_value_payload& {
    EXPECT_EQ(from_abi_str(abi.as.map.data[i].key), key);
    EXPECT_EQ(abi.as.map.data[i].value.kind, kind) << key;
    return abi.as.map.data[i].value.as;
  };
  entry(0, "none", CAIRN_VALUE_NONE);
  EXPECT_EQ(entry(1, "yes", CAIRN_VALUE_BOOL).integer, 1);
  EXPECT_EQ(entry(2, "int", CAIRN_VALUE_INT).integer, -5);
  EXPECT_EQ(entry(3, "real", CAIRN_VALUE_FLOAT).real, 0.25);
  EXPECT_EQ(from_abi_str(entry(4, "text", CAIRN_VALUE_STRING).string), "h\xC3\xA9");
  const cairn_bytes bytes = entry(5, "bytes", CAIRN_VALUE_BYTES).bytes;
  ASSERT_EQ(bytes.size, 2U);
  EXPECT_EQ(static_cast<const unsigned char*>(bytes.data)[1], 255);
  EXPECT_EQ(entry(6, "empty", CAIRN_VALUE_LIST).list.count, 0U);
  const cairn_list list = entry(7, "list", CAIRN_VALUE_LIST).list;
  ASSERT_EQ(list.count, 2U);
  EXPECT_EQ(list.data[0].as.integer, 1);
  ASSERT_EQ(list.data[1].as.list.count, 1U);
  EXPECT_EQ(from_abi_str(list.data[1].as.list.data[0].as.string), "two");
}

TEST(AbiValue, ANoneIsAnEmptyMapAndAnythingElseIsNone) {
  Arena arena;
  EXPECT_EQ(to_abi_map(Value(), arena).count, 0U);
  EXPECT_THROW(to_abi_map(Value(1), arena), InvalidArgument);
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
