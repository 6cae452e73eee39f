#include <gtest/gtest.h>

#include <string>

#include "ir/base/check.h"

namespace heddle::error_test {
namespace {

TEST(Error, PathsAreRelativeToTheSources) {
  const int line = __LINE__ + 2;
  try {
    HEDDLE_CHECK(line < 0, "found {}", line);
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_EQ(error.what(),
              fmt::format("internal error at tests/ir/base/error_test.cpp:{}: found {} (check: "
                          "line < 0)",
                          line, line));
  }
}

}  // namespace
}  // namespace heddle::error_test
