#include "codegen/compile/child_process.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>

namespace heddle::codegen::child_process_test {
namespace {

constexpr auto kLimit = std::chrono::seconds(60);

TEST(RunProcess, OutputBeforeTheEndIsComplete) {
  const ProcessResult result =
      runProcess({"sh", "-c", "for i in 1 2 3; do echo $i; done; echo end >&2; exit 5"}, kLimit);
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_EQ(result.output, "1\n2\n3\nend\n");
}

TEST(RunProcess, ProgramMayCloseItsOutputAndContinue) {
  const ProcessResult result = runProcess({"sh", "-c", "exec >&- 2>&-; sleep 0.2; exit 3"}, kLimit);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_FALSE(result.timed_out);
}

// The background process holds the output of the program open.
TEST(RunProcess, ProcessLeftInTheBackgroundIsNotAwaited) {
  const ProcessResult result = runProcess({"sh", "-c", "sleep 1000 & echo $!"}, kLimit);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, 0);
  const pid_t background = std::atoi(result.output.c_str());
  ASSERT_GT(background, 1) << result.output;
  EXPECT_EQ(kill(background, SIGKILL), 0);
}

TEST(RunProcess, ProgramIsEndedAtItsTimeLimit) {
  const ProcessResult result =
      runProcess({"sh", "-c", "echo begins; sleep 1000"}, std::chrono::milliseconds(500));
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.output, "begins\n");
}

}  // namespace
}  // namespace heddle::codegen::child_process_test
