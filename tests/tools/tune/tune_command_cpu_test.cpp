// Tests `heddle tune` and the options that use its choices. No test depends on a time.
#include <fmt/format.h>

#include <filesystem>

#include "tests/tools/cli.h"

namespace heddle::tools::tune_command_cpu_test {
namespace {

class TuneCommand : public Cli {
 protected:
  // The environment of a command whose choices are stored in the folder of the test.
  std::string cache() const { return "HEDDLE_CACHE_DIR=" + (folder_ / "cache").string(); }
  CliResult run(const std::string& arguments) { return heddle(arguments, cache()); }
  std::string choices() const { return (folder_ / "choices.txt").string(); }
  // Returns how many lines of the text contain `part`.
  static int count(const std::string& text, const std::string& part) {
    int found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++found;
    }
    return found;
  }

  const std::string tune_ = "tune examples/softmax.fusion --device cpu --set rows=8";
  const std::string run_ = "run examples/softmax.fusion --device cpu --set rows=8 --check=full";
};

TEST_F(TuneCommand, TableListsEveryCandidateAndOneChoice) {
  const CliResult result = run(tune_);
  EXPECT_EQ(result.code, 0) << result.text;
  EXPECT_TRUE(result.text.starts_with("kernel @k0, rank 0\n")) << result.text;
  EXPECT_EQ(count(result.text, ", chosen\n"), 1) << result.text;
  EXPECT_EQ(count(result.text, " us, median of "), 3) << result.text;
  EXPECT_EQ(count(result.text, " us predicted"), 3) << result.text;
  EXPECT_EQ(count(result.text, "rank correlation of predicted and measured times: "), 1)
      << result.text;
  const CliResult csv = run(tune_ + " --again --csv");
  EXPECT_EQ(count(csv.text,
                  "file,kernel,rank,candidate,parameters,us,predicted,runs,registers,fault,chosen,"
                  "key\nexamples/softmax.fusion,k0,0,0,rows looped=0,"),
            1)
      << csv.text;
}

TEST_F(TuneCommand, SeveralFilesShareOneCorrelation) {
  const std::string sums = write("sums.fusion", R"(heddle 1
fusion sums(%x: f32[rows, m]) with rows = 4, m = 300 {
  %y = sum(%x, axes=[1])
  return %y
}
)");
  const CliResult both = run("tune examples/softmax.fusion " + sums +
                             " --device cpu --set rows=8 --export " + choices());
  EXPECT_EQ(both.code, 0) << both.text;
  EXPECT_EQ(count(both.text, "file examples/softmax.fusion\n"), 1) << both.text;
  EXPECT_EQ(count(both.text, "file " + sums + "\n"), 1) << both.text;
  EXPECT_EQ(count(both.text, "rank correlation"), 1) << both.text;
  for (const std::string& file : {std::string("examples/softmax.fusion"), sums}) {
    const CliResult used = run("run " + file + " --device cpu --set rows=8 --check=full " +
                               "--choices-only --choices " + choices());
    EXPECT_EQ(used.code, 0) << used.text;
  }
  expectError("tune examples/softmax.fusion examples/tp_mlp.fusion --device cpu --set rows=8",
              "heddle: examples/tp_mlp.fusion: --set rows=8: the file has no size or scalar input");
}

TEST_F(TuneCommand, ExportedChoicesServeRunsWithoutTiming) {
  EXPECT_EQ(run(tune_ + " --export " + choices()).code, 0);
  const CliResult used = run(run_ + " --choices-only --choices " + choices());
  EXPECT_EQ(used.code, 0) << used.text;
  const CliResult missing =
      run("run examples/softmax.fusion --device cpu --set rows=9 --choices-only --choices " +
          choices());
  EXPECT_EQ(missing.code, 2);
  EXPECT_NE(missing.text.find("kernel k0 has no choice for these sizes on this device"),
            std::string::npos)
      << missing.text;
  EXPECT_EQ(
      run("run examples/softmax.fusion --device cpu --set rows=9 --choices " + choices()).code, 0);
  // An exported choice of any candidate is used.
  std::ifstream file(choices());
  std::string header, comment, line;
  std::getline(file, header);
  std::getline(file, comment);
  std::getline(file, line);
  const std::string other = write("other.txt", header + "\n" + line.substr(0, 65) + "sweeps\n");
  EXPECT_EQ(run(run_ + " --choices-only --choices " + other).code, 0);
}

TEST_F(TuneCommand, RunsExportTheChoicesOfTheirKernels) {
  EXPECT_EQ(run(run_ + " --tune full --export " + choices()).code, 0);
  EXPECT_EQ(run(run_ + " --choices-only --choices " + choices()).code, 0);
  const CliResult off = run(run_ + " --export " + choices());
  EXPECT_EQ(off.code, 2);
  EXPECT_NE(off.text.find("--export: it needs --tune=auto or --tune=full"), std::string::npos)
      << off.text;
}

TEST_F(TuneCommand, ChoicesAreStoredUntilTheFilesAreDamaged) {
  EXPECT_EQ(count(run(tune_).text, "choice was stored"), 0);
  EXPECT_EQ(count(run(tune_).text, "choice was stored"), 1);
  EXPECT_EQ(count(run(tune_ + " --again").text, "choice was stored"), 0);
  int damaged = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cache")) {
    if (entry.path().extension() != ".algorithm") continue;
    std::ofstream(entry.path(), std::ios::app) << "rows looped=1\n";
    ++damaged;
  }
  EXPECT_EQ(damaged, 1);
  EXPECT_EQ(count(run(tune_).text, "choice was stored"), 0);
  EXPECT_EQ(count(run(tune_).text, "choice was stored"), 1);
}

TEST_F(TuneCommand, RunsTuneOnOneAndSeveralRanks) {
  for (const char* mode : {"full", "auto", "auto"}) {
    for (const std::string file : {"softmax.fusion --set rows=8", "tp_mlp.fusion --ranks 2"}) {
      const CliResult result =
          run(fmt::format("run examples/{} --device cpu --check=full --tune {}", file, mode));
      EXPECT_EQ(result.code, 0) << mode << result.text;
    }
  }
  EXPECT_EQ(run("tune examples/tp_mlp.fusion --device cpu --ranks 2").code, 0);
  EXPECT_EQ(count(run("tune examples/tp_mlp.fusion --device cpu --ranks 2").text, "was stored"), 2);
}

// Rank 0 measures, and rank 1 waits for its choices.
TEST_F(TuneCommand, RankThatIsLostDuringTuningEndsTheJob) {
  const CliResult result =
      run("run examples/tp_mlp.fusion --device cpu --ranks 2 --tune auto --inject "
          "rank=0,task=tune,throw");
  EXPECT_EQ(result.code, 2);
  EXPECT_NE(result.text.find("heddle: rank 0: injected: throw"), std::string::npos) << result.text;
}

// Rank 0 tunes for longer than the patience.
TEST_F(TuneCommand, RanksWaitLongForTheRankThatTunes) {
  const CliResult result =
      run("run examples/tp_mlp.fusion --device cpu --ranks 2 --tune auto --check=full --patience 4 "
          "--inject rank=0,task=tune,delay=6s");
  EXPECT_EQ(result.code, 0) << result.text;
}

// A run passes the element of a tensor in host memory to kernels by value.
TEST_F(TuneCommand, ChoicesHoldForKernelsThatTakeATensorByValue) {
  const std::string file = write("by_value.fusion", R"(heddle 1
fusion by_value(%x: f32[tokens, hidden], %count: i64[]) with tokens = 8, hidden = 512 {
  %r = slice(%x, starts=[0, 0], stops=[%count, hidden])
  %e = mul(%r, %count)
  %s = softmax(%e, axis=-1)
  return %s
}
)");
  const std::string options = file + " --device cpu --set count=5 ";
  const CliResult tuned = run("tune " + options + "--export " + choices());
  EXPECT_EQ(tuned.code, 0) << tuned.text;
  EXPECT_EQ(count(tuned.text, "wrong results"), 0) << tuned.text;
  const CliResult used =
      run("run " + options + "--check=full --choices-only --choices " + choices());
  EXPECT_EQ(used.code, 0) << used.text;
}

TEST_F(TuneCommand, ProcessesMayTuneAtOnceAndBeKilled) {
  const std::string line = tune_ + " > /dev/null & ";
  const CliResult both = run(line + "wait; true");
  EXPECT_EQ(both.code, 0) << both.text;
  heddle(
      "tune examples/transformer_block_tp.fusion --device cpu & p=$!; sleep 0.5; kill -9 $p; "
      "wait $p; true",
      cache());
  const CliResult again = run(tune_ + " --again");
  EXPECT_EQ(again.code, 0) << again.text;
  EXPECT_EQ(count(again.text, ", chosen\n"), 1) << again.text;
}

TEST_F(TuneCommand, WrongInputIsReported) {
  expectError(run_ + " --choices no_such.txt", "no_such.txt: cannot read the file: No such file");
  const std::string bad = write("bad.txt", "heddle choices 1\nabc\n");
  expectError(run_ + " --choices " + bad, "bad.txt:2: expected a key of 64 hexadecimal digits");
  expectError(run_ + " --choices-only", "--choices-only: it has no effect without --choices");
  expectError(run_ + " --tune sometimes", "--tune: sometimes not in {off,auto,full}");
  expectError("run examples/softmax.fusion --device null --tune auto",
              "--tune: the null device runs no kernels");
  const std::string empty = write("empty.txt", "heddle choices 1\n");
  expectError(run_ + " --tune auto --choices-only --choices " + empty,
              "--choices-only: it contradicts --tune auto");
  expectError(tune_, "tuning needs a compiler", "HEDDLE_CXX=/no/compiler");
  expectError(tune_ + " --export /no_such_folder/x", "cannot open /no_such_folder/x for writing");
  expectError(tune_ + " --force k0=99",
              "kernel k0 has no candidate '99' for these sizes; the candidates are\n  0: rows "
              "looped=0\n  1: ");
  expectError("tune examples/softmax.fusion --device null", "--device: null not in {cpu,cuda}");
}

}  // namespace
}  // namespace heddle::tools::tune_command_cpu_test
