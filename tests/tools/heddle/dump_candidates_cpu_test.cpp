// Tests `heddle dump --stage candidates` and --force.
#include <fmt/format.h>

#include <sstream>
#include <vector>

#include "tests/sanitized.h"
#include "tests/tools/cli.h"

namespace heddle::tools::dump_candidates_cpu_test {
namespace {

class DumpCandidates : public Cli {
 protected:
  // Returns the lines of `heddle dump FILE --stage candidates`.
  static std::vector<std::string> list(const std::string& arguments) {
    const CliResult result = heddle("dump " + arguments + " --stage candidates");
    EXPECT_EQ(result.code, 0) << result.text;
    std::vector<std::string> lines;
    std::istringstream text(result.text);
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }
};

// Every candidate of every kernel of the example gives the right numbers, on several ranks. Kernels
// are compiled without sanitizers, so a sanitizer would find nothing more in the other candidates.
TEST_F(DumpCandidates, EveryCandidateOfAnExamplePassesTheCheck) {
  for (const std::string file :
       {"examples/softmax.fusion --set rows=8", "examples/layer_norm_sharded.fusion"}) {
    std::string kernel;
    int forced = 0;
    for (const std::string& line : list(file + " --ranks 2")) {
      if (line.starts_with("kernel @")) {
        kernel = line.substr(8);
        continue;
      }
      if (heddle::testing::kSanitized && forced == 3) continue;
      const std::string index = line.substr(2, line.find(':') - 2);
      const std::string parameters =
          line.substr(line.find(": ") + 2, line.find(';') - line.find(": ") - 2);
      for (const std::string& candidate : {index, parameters}) {
        const std::string force = fmt::format(" --force \"{}={}\"", kernel, candidate);
        const CliResult result =
            heddle("run " + file + " --device cpu --ranks 2 --check=full" + force);
        EXPECT_EQ(result.code, 0) << file << force << "\n" << result.text;
      }
      ++forced;
    }
    EXPECT_GE(forced, 3) << file;
  }
}

TEST_F(DumpCandidates, DumpShowsTheForcedCandidate) {
  const std::vector<std::string> lines = list("examples/softmax.fusion --force k0=1");
  ASSERT_GE(lines.size(), 3u);
  EXPECT_EQ(lines[0], "kernel @k0");
  EXPECT_FALSE(lines[1].ends_with(", used")) << lines[1];
  EXPECT_TRUE(lines[2].ends_with(", used")) << lines[2];
  const std::string softmax = "dump examples/softmax.fusion ";
  const CliResult host = heddle(softmax + "--stage host --force \"k0=rows looped=1\"");
  EXPECT_NE(host.text.find("kernel @k0 candidate=\"rows looped=1\" {"), std::string::npos)
      << host.text;
  EXPECT_NE(heddle(softmax + "--stage kernel --force k0=sweeps").text,
            heddle(softmax + "--stage kernel").text);
  EXPECT_NE(heddle(softmax + "--stage schedule --force k0=sweeps").text,
            heddle(softmax + "--stage schedule").text);
  EXPECT_EQ(heddle(softmax + "--stage all").text.find("candidates"), std::string::npos);
}

TEST_F(DumpCandidates, DumpForCudaListsOtherParameters) {
  const std::vector<std::string> lines = list("examples/softmax.fusion --device cuda");
  ASSERT_GE(lines.size(), 4u);
  EXPECT_NE(lines[1].find("rows vector="), std::string::npos) << lines[1];
  EXPECT_NE(lines[1].find(" threads="), std::string::npos) << lines[1];
}

TEST_F(DumpCandidates, WrongForcesAreReported) {
  const std::string run = "run examples/softmax.fusion --device cpu --force ";
  expectError(run + "k9=1", "--force k9=1: the program has no kernel @k9; its kernels are @k0");
  expectError(run + "k0", "--force k0: expected the name of a kernel and a candidate, as in k3=2");
  expectError(run + "k0=", "--force k0=: candidate=\"\": expected an index, or parameters such as");
  expectError(run + "k0=99",
              "kernel k0 has no candidate '99' for these sizes; the candidates are\n  0: rows "
              "looped=0\n  1: ");
  expectError("dump examples/softmax.fusion --stage kernel --force k0=squares",
              "kernel k0 has no candidate 'squares'");
  expectError("bench examples/softmax.fusion --device cpu --force k0=squares",
              "kernel k0 has no candidate 'squares'");
  expectError(run + "k0=1 --force @k0=2",
              "--force @k0=2: the candidate of @k0 is set twice, first with --force k0=1");
  expectError(run + "k0=1", "without a compiler there are no candidates",
              "HEDDLE_CXX=/no/compiler");
}

}  // namespace
}  // namespace heddle::tools::dump_candidates_cpu_test
