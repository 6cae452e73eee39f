// Runs every command that needs no device on every example, at every stage.
#include <string>
#include <vector>

#include "tests/sanitized.h"
#include "tests/tools/cli.h"

namespace heddle::tools::main_examples_cpu_test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> examples() {
  std::vector<std::string> files;
  for (const fs::directory_entry& file : fs::directory_iterator("examples")) {
    const std::string extension = file.path().extension().string();
    if (extension == ".fusion" || extension == ".hostir") files.push_back(file.path().string());
  }
  return files;
}

// Returns the smallest number of ranks with which the example is legal.
int ranksOf(const std::string& file) {
  for (int ranks : {1, 2, 3, 4, 6, 8}) {
    if (heddle("verify " + file + " --ranks " + std::to_string(ranks)).code == 0) return ranks;
  }
  return 0;
}

class MainExamples : public Cli {};

TEST_F(MainExamples, EveryCommandWorksAtEveryStage) {
  int checked = 0;
  int number = 0;
  for (const std::string& file : examples()) {
    if (number++ % heddle::testing::kOneIn != 0) continue;
    const int ranks = ranksOf(file);
    ASSERT_GT(ranks, 0) << file << ": " << heddle("verify " + file).text;
    const bool is_fusion = file.ends_with(".fusion");
    for (const char* stage : {"fusion", "segments", "schedule", "kernel", "host", "all"}) {
      // With a sanitizer, only the stage `all` runs. It writes the text of every stage.
      if (heddle::testing::kSanitized && stage != std::string("all")) continue;
      const bool of_fusion = stage == std::string("fusion") || stage == std::string("segments");
      for (const char* device : {"cpu", "cuda"}) {
        const CliResult dump = heddle("dump " + file + " --ranks " + std::to_string(ranks) +
                                      " --stage " + stage + " --device " + device);
        EXPECT_EQ(dump.code, is_fusion || !of_fusion ? 0 : 2) << file << stage << dump.text;
        EXPECT_EQ(dump.text.find("internal error"), std::string::npos) << dump.text;
        ++checked;
      }
    }
    const CliResult all = heddle("dump " + file + " --ranks " + std::to_string(ranks) +
                                 " --dump-dir " + (folder_ / fs::path(file).filename()).string());
    EXPECT_EQ(all.code, 0) << file << all.text;
  }
  EXPECT_GE(checked, heddle::testing::casesOf(200, 4));
}

// The kernel is launched only in the called program.
TEST_F(MainExamples, ProgramsWithCallsAreDumped) {
  const std::string text =
      "heddle 1\nkernel @k {\n  fusion k(%a: f32[n]) {\n    %b = neg(%a)\n    return %b\n  }\n}\n"
      "program inner(%x: f32[n]) -> (%y) {\n  slot %y: f32[n]\n  %y = allocate stream=0\n"
      "  launch @k(%x) -> (%y) stream=0\n}\n"
      "program outer(%x: f32[n]) -> (%z) with n = 4 {\n  slot %z: f32[n]\n"
      "  call @inner(%x) -> (%z)\n}\n";
  const std::string file = write("calls.hostir", text);
  for (const char* command : {"verify ", "dump --stage kernel ", "dump --stage schedule ",
                              "dump --stage host ", "dump "}) {
    const CliResult result = heddle(command + file);
    EXPECT_EQ(result.code, 0) << command << result.text;
  }
  EXPECT_NE(heddle("dump --stage kernel " + file).text.find("heddle_kernel"), std::string::npos);
}

TEST_F(MainExamples, CommandsVerifyFirst) {
  const std::string text =
      "heddle 1\nkernel @k {\n  fusion k(%a: f32[n], %b: f32[n]) {\n    %c = add(%a, %b)\n"
      "    return %c\n  }\n}\nprogram p(%x: f32[n]) -> (%y) with n = 4 {\n  slot %y: f32[n]\n"
      "  %y = allocate stream=0\n  launch @k(%x) -> (%y) stream=0\n}\n";
  const std::string file = write("launch.hostir", text);
  const CliResult verified = heddle("verify " + file);
  EXPECT_EQ(verified.code, 2) << verified.text;
  for (const char* command : {"dump --stage kernel ", "dump --stage schedule ",
                              "dump --stage host ", "dump ", "run --device cpu "}) {
    const CliResult result = heddle(command + file);
    EXPECT_EQ(result.code, 2) << command << result.text;
    EXPECT_EQ(result.text, verified.text) << command;
  }
}

}  // namespace
}  // namespace heddle::tools::main_examples_cpu_test
