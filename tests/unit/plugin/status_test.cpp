// Statuses, messages and exceptions.
#include "core/plugin/status.hpp"

#include <gtest/gtest.h>

#include <new>
#include <thread>

#include "core/base/error.hpp"

namespace cairn {
namespace {

TEST(Status, EachCodeBecomesItsException) {
  const auto thrown_by = [](cairn_status code) -> std::string {
    set_status(code, "the reason");
    try {
      throw_status(code, "open");
    } catch (const InvalidArgument& e) {
      return std::string("InvalidArgument ") + e.what();
    } catch (const NotFound& e) {
      return std::string("NotFound ") + e.what();
    } catch (const BadFile& e) {
      return std::string("BadFile ") + e.what();
    } catch (const NotSupported& e) {
      return std::string("NotSupported ") + e.what();
    } catch (const ResourceExhausted& e) {
      return std::string("ResourceExhausted ") + e.what();
    } catch (const Cancelled& e) {
      return std::string("Cancelled ") + e.what();
    } catch (const InternalError& e) {
      return std::string("InternalError ") + e.what();
    }
  };
  EXPECT_EQ(thrown_by(CAIRN_STATUS_INVALID_ARGUMENT), "InvalidArgument open: the reason");
  EXPECT_EQ(thrown_by(CAIRN_STATUS_OUT_OF_RANGE), "InvalidArgument open: the reason");
  EXPECT_EQ(thrown_by(CAIRN_STATUS_NOT_FOUND), "NotFound open: the reason");
  EXPECT_EQ(thrown_by(CAIRN_STATUS_DATA_LOSS), "BadFile open: the reason");
  EXPECT_EQ(thrown_by(CAIRN_STATUS_UNSUPPORTED), "NotSupported open: the reason");
  EXPECT_EQ(thrown_by(CAIRN_STATUS_RESOURCE_EXHAUSTED), "ResourceExhausted open: the reason");
  EXPECT_EQ(thrown_by(CAIRN_STATUS_UNAVAILABLE), "ResourceExhausted open: the reason");
  EXPECT_EQ(thrown_by(CAIRN_STATUS_CANCELLED), "Cancelled open: the reason");
  EXPECT_EQ(thrown_by(CAIRN_STATUS_INTERNAL), "InternalError open: the reason");
  EXPECT_EQ(thrown_by(4711), "InternalError open: the reason");
}

TEST(Status, AFailureWithoutAMessageNamesTheCode) {
  take_status_message();
  try {
    throw_status(CAIRN_STATUS_ABORTED, "forward");
    FAIL();
  } catch (const InternalError& e) {
    EXPECT_STREQ(e.what(), "forward failed with ABORTED and gave no reason");
  }
}

TEST(Status, GuardTurnsEveryExceptionIntoAStatus) {
  const auto guarded = [](auto exception) { return guard("f", [&] { throw exception; }); };
  EXPECT_EQ(guarded(InvalidArgument("x")), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(guarded(std::invalid_argument("x")), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(guarded(std::out_of_range("x")), CAIRN_STATUS_OUT_OF_RANGE);
  EXPECT_EQ(guarded(NotFound("x")), CAIRN_STATUS_NOT_FOUND);
  EXPECT_EQ(guarded(BadFile("x")), CAIRN_STATUS_DATA_LOSS);
  EXPECT_EQ(guarded(NotSupported("x")), CAIRN_STATUS_UNSUPPORTED);
  EXPECT_EQ(guarded(ResourceExhausted("x")), CAIRN_STATUS_RESOURCE_EXHAUSTED);
  EXPECT_EQ(guarded(std::bad_alloc()), CAIRN_STATUS_RESOURCE_EXHAUSTED);
  EXPECT_EQ(guarded(std::length_error("x")), CAIRN_STATUS_RESOURCE_EXHAUSTED);
  EXPECT_EQ(guarded(Cancelled("x")), CAIRN_STATUS_CANCELLED);
  EXPECT_EQ(guarded(std::runtime_error("x")), CAIRN_STATUS_INTERNAL);
  EXPECT_EQ(guarded(42), CAIRN_STATUS_INTERNAL);
}

TEST(Status, GuardKeepsTheMessageWithTheFunction) {
  EXPECT_EQ(guard("ops.linear", [] { throw InvalidArgument("x [3] is odd"); }), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(last_status_message(), "ops.linear: x [3] is odd");
  EXPECT_EQ(guard([] { throw InvalidArgument("x [3] is odd"); }), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(last_status_message(), "x [3] is odd");
}

TEST(Status, GuardPassesOnAReturnedStatus) {
  EXPECT_EQ(guard("f", []() -> cairn_status { return CAIRN_STATUS_ABORTED; }), CAIRN_STATUS_ABORTED);
  EXPECT_EQ(guard("f", [] {}), CAIRN_STATUS_OK);
}

TEST(Status, TakingTheMessageEmptiesIt) {
  set_status(CAIRN_STATUS_INTERNAL, "one");
  add_status_detail("layer", "7");
  EXPECT_EQ(take_status_message(), "one (layer: 7)");
  EXPECT_EQ(take_status_message(), "");
}

TEST(Status, EachThreadHasItsOwnMessage) {
  set_status(CAIRN_STATUS_INTERNAL, "mine");
  std::string seen = "unset";
  std::thread([&] {
    seen = last_status_message();
    set_status(CAIRN_STATUS_INTERNAL, "theirs");
  }).join();
  EXPECT_EQ(seen, "");
  EXPECT_EQ(last_status_message(), "mine");
}

}  // namespace
}  // namespace cairn
