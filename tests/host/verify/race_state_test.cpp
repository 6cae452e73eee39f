// Tests the search for races in programs with many branches whose conditions are known only at run
// time. tests/text/verify/races.txt tests the rules.
#include <gtest/gtest.h>

#include "host/text/program_text.h"
#include "host/verify/verify.h"
#include "ir/base/error.h"
#include "tests/sanitized.h"

namespace heddle::host::race_state_test {
namespace {

// Returns a program of `count` branches and then the instructions `last`. Each branch uses its own
// buffer, event and collective.
std::string branches(int count, const std::string& last) {
  std::string slots, body;
  for (int i = 0; i < count; ++i) {
    const std::string n = std::to_string(i);
    slots += "  slot %t" + n + ": f32[4]\n  slot %m" + n + ": i64\n";
    body += "  if %n > " + n + " {\n    %m" + n + " = evaluate 1\n    %t" + n +
            " = allocate\n    copy %x -> %t" + n + "\n    !e" + n +
            " = record_event stream=0\n    wait_event !e" + n + " stream=1\n    $p" + n +
            " = communicate barrier team=@m[x] stream=1\n    wait $p" + n + "\n    free %t" + n +
            "\n  } else {\n    %m" + n + " = evaluate 2\n    copy %x -> %y\n  }\n";
  }
  return "heddle 1\nmesh @m = [x=1]\nprogram f(%x: f32[4], %c: i64[]) -> (%y) {\n"
         "  slot %n: i64\n  slot %y: f32[4]\n" +
         slots + "  %n = read_back %c\n  %y = allocate\n" + body + last + "}\n";
}

// verify() must not copy its complete state for each branch, which would take hours.
TEST(RaceState, ManyBranchesEnd) {
  verify(parseProgram(branches(heddle::testing::casesOf(10000, 1000), "  copy %x -> %y\n"), "f"));
}

TEST(RaceState, RaceAfterManyBranchesIsReported) {
  EXPECT_THROW(verify(parseProgram(branches(50, "  copy %x -> %y stream=1\n"), "f")), UserError);
  EXPECT_NO_THROW(verify(parseProgram(branches(50,
                                               "  !e = record_event\n  wait_event !e stream=1\n"
                                               "  copy %x -> %y stream=1\n"
                                               "  !f = record_event stream=1\n"
                                               "  wait_event !f\n"),
                                      "f")));
}

}  // namespace
}  // namespace heddle::host::race_state_test
