// Checks that programs which ask for too much, and systems which give too little, end with exit
// code 2 and a message. The time limits of the commands only detect a hang.
#include <string>

#include "tests/sanitized.h"
#include "tests/tools/cli.h"

namespace heddle::tools::main_limits_cpu_test {
namespace {

namespace fs = std::filesystem;

class MainLimits : public Cli {
 protected:
  // With a sanitizer, tests that limit address space or threads are skipped. A sanitizer needs
  // terabytes of address space and its own threads.
  static constexpr bool kSanitized = heddle::testing::kSanitized;
  // The command must succeed, or exit with 2 and say why.
  void expectOrderlyEnd(const std::string& arguments, const std::string& environment) {
    const CliResult result = heddle(arguments, environment);
    EXPECT_TRUE(result.code == 0 || result.code == 2)
        << environment << " " << arguments << ": " << result.code << "\n"
        << result.text;
    if (result.code == 2) {
      EXPECT_NE(result.text.find("heddle: "), std::string::npos) << environment << result.text;
      // GCC prints this after it has tried for 15 s.
      EXPECT_EQ(result.text.find("fork: "), std::string::npos) << environment << result.text;
    }
  }
};

// ulimit -u does not limit root, so root runs the command as another user.
TEST_F(MainLimits, FewThreadsAreReported) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs threads of its own";
  const std::string user = geteuid() == 0 ? "setpriv --reuid 12345 --clear-groups " : "";
  const fs::path binaries = fs::read_symlink("/proc/self/exe").parent_path();
  if (std::system((user + "test -x " + (binaries / "heddle").string()).c_str()) != 0) {
    GTEST_SKIP() << "another user cannot run the command";
  }
  for (const std::string ranks : {"", " --ranks 4", " --adversarial 1"}) {
    for (int threads : {1, 2, 4, 6, 8, 10, 14}) {
      expectOrderlyEnd("run examples/tp_mlp.fusion --device cpu" + ranks,
                       "timeout 60 " + user + "prlimit --nproc=" + std::to_string(threads) +
                           " env TMPDIR=/tmp HEDDLE_CACHE_DIR=/nowhere");
    }
  }
}

TEST_F(MainLimits, LittleAddressSpaceIsReported) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs more address space";
  for (const char* megabytes : {"260", "280", "300", "320", "500", "1000", "2000", "4000"}) {
    expectOrderlyEnd("run examples/softmax.fusion --device cpu --ranks 512",
                     "timeout 100 prlimit --as=" + std::string(megabytes) + "000000");
  }
}

// The threads of OpenBLAS fail to allocate and try again for ever, so a command must not wait for
// them when it ends.
TEST_F(MainLimits, CommandsEndWithLittleAddressSpace) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs more address space";
  for (const std::string command :
       {"verify examples/softmax.fusion", "dump examples/softmax.fusion", "ops",
        "run examples/softmax.fusion --device cpu"}) {
    for (const char* megabytes : {"150", "200", "380"}) {
      expectOrderlyEnd(command, "timeout 60 prlimit --as=" + std::string(megabytes) + "000000");
    }
  }
}

TEST_F(MainLimits, LargeInputsAreReportedAtOnce) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer ends a process that asks for 400 TB";
  expectError("run examples/softmax.fusion --device cpu --set rows=99999999999",
              "input %x: out of memory", "ulimit -v 2000000;");
}

// The device holds only one element of the output. The command needs all of them.
TEST_F(MainLimits, LargeExpandedOutputsAreReported) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer ends a process that asks for 9 EB";
  const std::string file = write("expanded.fusion",
                                 "heddle 1\nfusion f(%x: f32[1], %n: i64) {\n"
                                 "  %y = expand(%x, sizes=[%n])\n  return %y\n}\n");
  const std::string run = "run " + file + " --device cpu --set n=2305843009213693951";
  expectError(
      run,
      "output %y: out of memory: f32[2305843009213693951] of 9223372036854775804 bytes does "
      "not fit in the memory of this machine");
  expectError(run + " --ranks 2", "output %y: out of memory: f32[2305843009213693951]");
}

TEST_F(MainLimits, FailedOutputIsReported) {
  for (const std::string command :
       {"run examples/softmax.fusion --device cpu",
        "run examples/softmax.fusion --device cpu --json", "dump examples/softmax.fusion",
        "verify examples/softmax.fusion", "devices", "ops", "--help"}) {
    for (const std::string output : {">/dev/full", ">&-"}) {
      const CliResult result = heddle(command, "sh -c '\"$@\" " + output + "' sh");
      EXPECT_EQ(result.code, 2) << command << output << result.text;
    }
  }
  expectError("run examples/softmax.fusion --device cpu --trace /dev/full",
              "cannot write /dev/full: No space left on device");
  expectError("verify examples/softmax.fusion", "cannot write the output: No space left on device",
              "sh -c '\"$@\" >/dev/full' sh");
}

TEST_F(MainLimits, LongProgramsAreRejectedBeforeTheyAreUnrolled) {
  std::string loops = "heddle 1\nprogram p(%x: f32[4]) -> (%x) {\n";
  for (char index : std::string("abcdef"))
    loops += std::string("for ") + index + " in 0 .. 1000 {\n";
  loops += "%s = evaluate a\n}}}}}}\n}\n";
  loops.insert(loops.find("{\n") + 2, "slot %s: i64\n");
  const std::string file = write("loops.hostir", loops);
  for (const char* command : {"verify ", "dump --stage kernel ", "run --device cpu "}) {
    expectError(command + file, "steps on rank 0, and at most 1000000 are allowed",
                kSanitized ? "" : "ulimit -v 2000000;");
  }
  std::string calls = "heddle 1\nprogram p0(%x: f32[4]) -> (%x) {\n}\n";
  for (int level = 1; level <= 9; ++level) {
    calls += "program p" + std::to_string(level) + "(%x: f32[4]) -> (%x) {\n";
    for (int i = 0; i < 10; ++i) calls += "call @p" + std::to_string(level - 1) + "(%x) -> (%x)\n";
    calls += "}\n";
  }
  expectError("verify " + write("calls.hostir", calls), "1111111110 instructions",
              kSanitized ? "" : "ulimit -v 2000000;");
  std::string slots = "heddle 1\nprogram p0(%x: f32[4]) -> (%x) {\n";
  for (int i = 0; i < 1000; ++i) slots += "slot %s" + std::to_string(i) + ": f32[4]\n";
  slots += "}\n" + calls.substr(calls.find("program p1"));
  slots.resize(slots.find("program p4"));
  expectError("verify " + write("slots.hostir", slots), "1001111 slots and kernels",
              kSanitized ? "" : "ulimit -v 2000000;");
}

TEST_F(MainLimits, ManyMeshesAndDefaultsAreRejected) {
  std::string meshes = "heddle 1\n";
  std::string defaults = "with s0 = 1";
  for (int i = 0; i < 100000; ++i) meshes += "mesh @m" + std::to_string(i) + " = [x=2]\n";
  for (int i = 1; i < 100000; ++i) defaults += ", s" + std::to_string(i) + " = 1";
  const std::string body = " {\n  %y = neg(%x)\n  return %y\n}\n";
  expectError("verify " + write("meshes.fusion", meshes + "fusion f(%x: f32[4])" + body),
              "mesh number 1001, and at most 1000 are allowed");
  expectError(
      "verify " + write("sizes.fusion", "heddle 1\nfusion f(%x: f32[4]) " + defaults + body),
      "the default of size s10000 is number 10001, and at most 10000 are allowed");
  expectError("verify " + write("sizes.hostir",
                                "heddle 1\nprogram f(%x: f32[4]) -> (%x) " + defaults + " {\n}\n"),
              "the default of size s10000 is number 10001, and at most 10000 are allowed");
}

TEST_F(MainLimits, TensorsWithManyAxesAreRejected) {
  std::string ones = "1";
  for (int i = 1; i < 100000; ++i) ones += ", 1";
  const std::string head = "heddle 1\nfusion f(%x: f32[";
  expectError(
      "verify " + write("input.fusion", head + ones + "]) {\n  %y = neg(%x)\n  return %y\n}\n"),
      "input.fusion:2:18: the type has 100000 axes, and at most 256 are allowed");
  expectError("verify " + write("reshape.fusion", head + "1]) {\n  %y = reshape(%x, sizes=[" +
                                                      ones + "])\n  return %y\n}\n"),
              "reshape.fusion:3: reshape at line 3: the result has 100000 axes, and at most 256");
  expectError(
      "verify " + write("slot.hostir", "heddle 1\nprogram f(%x: f32[" + ones + "]) -> (%x) {\n}\n"),
      "the type has 100000 axes, and at most 256 are allowed");
  std::string chain = head + "4]) {\n  %a0 = neg(%x)\n";
  for (int i = 1; i < 3000; ++i) {
    chain += "  %a" + std::to_string(i) + " = unsqueeze(%a" + std::to_string(i - 1) + ", axis=0)\n";
  }
  expectError("verify " + write("chain.fusion", chain + "  return %a2999\n}\n"),
              "chain.fusion:259: broadcast at line 259: the result has 257 axes");
}

}  // namespace
}  // namespace heddle::tools::main_limits_cpu_test
