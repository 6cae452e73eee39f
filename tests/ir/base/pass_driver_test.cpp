#include "ir/base/pass_driver.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "ir/base/check.h"

namespace heddle::pass_driver_test {
namespace {

// In these tests a number takes the place of a fusion.
bool same(const int& a, const int& b) { return a == b; }
std::string print(const int& number) { return std::to_string(number); }
int increment(int number) { return number + 1; }
int keep(int number) { return number; }
void accept(const int&) {}
void rejectTwo(const int& number) { HEDDLE_USER_CHECK(number != 2, "the number is 2"); }

TEST(PassDriver, DumpsOnlyChangesAndTimesAll) {
  PassOptions options;
  std::vector<std::string> dumped, timed;
  options.dump = [&](std::string_view pass, const std::string& text) {
    dumped.push_back(std::string(pass) + " " + text);
  };
  options.timing = [&](std::string_view pass, double seconds) {
    timed.emplace_back(pass);
    EXPECT_GE(seconds, 0);
  };
  const PassDriver<int> driver(options, same, print);
  EXPECT_EQ(driver.run("first", driver.run("second", 1, keep, accept), increment, accept), 2);
  EXPECT_EQ(dumped, std::vector<std::string>{"first 2"});
  EXPECT_EQ(timed, (std::vector<std::string>{"second", "first"}));
}

TEST(PassDriver, SkippedPassesDoNotRun) {
  PassOptions options;
  options.skip = {"first"};
  int timed = 0;
  options.timing = [&](std::string_view, double) { ++timed; };
  const PassDriver<int> driver(options, same, print);
  EXPECT_EQ(driver.run("first", 1, increment, accept), 1);
  EXPECT_EQ(driver.run("second", 1, increment, accept), 2);
  EXPECT_EQ(timed, 1);
}

TEST(PassDriver, VerifyEachNamesThePassThatBrokeTheProgram) {
  PassOptions options;
  options.verify_each = true;
  const PassDriver<int> driver(options, same, print);
  EXPECT_EQ(driver.run("good", 2, increment, rejectTwo), 3);
  try {
    driver.run("bad", 1, increment, rejectTwo);
    ADD_FAILURE() << "no error";
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(), "the pass bad broke the program: the number is 2");
  }
  options.verify_each = false;
  EXPECT_EQ(driver.run("bad", 1, increment, rejectTwo), 2);
}

// ctest sets the environment variable for every test without the thread sanitizer, so every
// compilation verifies after each pass.
TEST(PassDriver, EnvironmentOfTestsTurnsVerifyEachOn) {
  const char* value = std::getenv("HEDDLE_VERIFY_EACH");
  EXPECT_EQ(PassOptions().verify_each, value != nullptr && std::string(value) == "1");
}

TEST(PassDriver, UnknownNamesAreRefused) {
  EXPECT_NO_THROW(checkSkippedPasses({"b"}, {"a", "b"}));
  try {
    checkSkippedPasses({"c"}, {"a", "b"});
    ADD_FAILURE() << "no error";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "there is no pass 'c'; the passes are a, b");
  }
}

}  // namespace
}  // namespace heddle::pass_driver_test
