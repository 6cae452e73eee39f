#include "codegen/compile/child_process.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

namespace heddle::codegen::child_process_test {
namespace {

constexpr auto kLimit = std::chrono::seconds(60);

TEST(ChildProcess, OutputBeforeTheEndIsComplete) {
  const ProcessResult result =
      runProcess({"sh", "-c", "for i in 1 2 3; do echo $i; done; echo end >&2; exit 5"}, kLimit);
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_EQ(result.output, "1\n2\n3\nend\n");
}

TEST(ChildProcess, ProgramMayCloseItsOutputAndContinue) {
  const ProcessResult result = runProcess({"sh", "-c", "exec >&- 2>&-; sleep 0.2; exit 3"}, kLimit);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_FALSE(result.timed_out);
}

// The background process holds the output of the program open.
TEST(ChildProcess, ProcessLeftInTheBackgroundIsNotAwaited) {
  const ProcessResult result = runProcess({"sh", "-c", "sleep 1000 & echo $!"}, kLimit);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, 0);
  const pid_t background = std::atoi(result.output.c_str());
  ASSERT_GT(background, 1) << result.output;
  EXPECT_EQ(kill(background, SIGKILL), 0);
}

TEST(ChildProcess, ProgramIsEndedAtItsTimeLimit) {
  const ProcessResult result =
      runProcess({"sh", "-c", "echo begins; sleep 1000"}, std::chrono::milliseconds(500));
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.output, "begins\n");
}

TEST(ChildProcess, OutputAndExitCodeAreReturned) {
  ProcessResult result = runProcess({"sh", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_TRUE(result.started);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.output, "out\nerr\n");
  EXPECT_FALSE(runProcess({"/no/such/program"}).started);
}

// Ends child processes and their children from another thread. runProcess() returns only after all
// of them have closed its output pipe, so all have ended.
void endWhileProgramsRun() {
  TempFolder folder;
  const std::string ready = folder.path() + "/ready";
  ProcessResult result;
  std::thread runs([&] {
    result =
        runProcess({"sh", "-c", "sleep 10000 & (trap '' TERM; : >" + ready + "; sleep 10000); :"});
  });
  while (!std::filesystem::exists(ready)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  endChildProcesses();
  runs.join();
  const bool folder_is_gone = !std::filesystem::exists(folder.path());
  const bool no_more = !runProcess({"true"}).started;
  fmt::print(stderr, "{} {} {}", result.exit_code, folder_is_gone, no_more);
  _exit(0);
}

TEST(ChildProcess, EndingStopsProgramsAndDeletesFolders) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(endWhileProgramsRun(), ::testing::ExitedWithCode(0), "143 true true");
}

}  // namespace
}  // namespace heddle::codegen::child_process_test
