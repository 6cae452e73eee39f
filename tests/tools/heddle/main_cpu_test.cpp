// Tests the heddle command: exit codes, messages and files.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/tools/cli.h"

namespace heddle::tools::main_cpu_test {
namespace {

namespace fs = std::filesystem;

using Main = Cli;

TEST_F(Main, DonatedInputsSaveMemory) {
  const std::string file = write("donate.fusion", R"(heddle 1
fusion f(%x: f32[n, n], %y: f32[n, n]) with n = 16 {
  %a = matmul(%x, %y)
  %b = tanh(%a)
  return %b
})");
  const auto report = [&](const std::string& options) {
    return nlohmann::json::parse(
        heddle("run " + file + " --device cpu --check=full --json " + options).text);
  };
  const auto plain = report(""), donating = report("--donate x,y --repeat 3");
  EXPECT_EQ(plain["passed"], true);
  EXPECT_EQ(plain["peak_bytes"], 4 * 16 * 16);
  EXPECT_EQ(plain["peak_bytes_without_reuse"], 2 * 4 * 16 * 16);
  EXPECT_EQ(donating["passed"], true);
  EXPECT_EQ(donating["outputs"][0]["aliases"], "input %x");
  EXPECT_EQ(donating["peak_bytes_without_reuse"], 2 * 4 * 16 * 16);
  expectError("run " + file + " --device cpu --donate z",
              "--donate z: the program has no input %z, its inputs are %x, %y");
  expectError("run " + file + " --device cpu --donate x,x", "input 0 (%x) is donated twice");
}

TEST_F(Main, JsonCountsSegmentations) {
  const auto report = [](const std::string& file) {
    return nlohmann::json::parse(heddle("run " + file + " --device cpu --json").text);
  };
  const auto fusion = report("examples/softmax.fusion");
  EXPECT_EQ(fusion["segmentations"], 1);
  EXPECT_EQ(fusion["split_calls"], 0);
  const auto program = report(write("copy.hostir", R"(heddle 1
program copy(%x: f32[n]) -> (%y) with n = 4 {
  slot %y: f32[n]
  %y = allocate stream=0
  copy %x -> %y stream=0
})"));
  EXPECT_EQ(program["segmentations"], 0);
  EXPECT_EQ(program["split_calls"], 0);
}

TEST_F(Main, RunChecksExamples) {
  const CliResult result =
      heddle("run examples/softmax.fusion --device cpu --check=full --repeat 2");
  EXPECT_EQ(result.code, 0) << result.text;
  EXPECT_NE(result.text.find("right in"), std::string::npos) << result.text;
  EXPECT_EQ(heddle("run examples/tp_mlp.fusion --device cpu --ranks 3 --check").code, 0);
}

// Some ranks hold an empty block of %x, and the result has no axes.
TEST_F(Main, ResultWithoutAxesOfManyRanksIsChecked) {
  const std::string file = write("scalar.fusion",
                                 "heddle 1\nmesh @m = [x=ranks]\n"
                                 "fusion scalar(%x: f32[2, n] shard(@m, 0: x)) with n = 0 {\n"
                                 "  %s = sum(%x)\n  %m = amax(%x)\n  return %s, %m\n}\n");
  for (const std::string n : {"0", "1"}) {
    const CliResult result =
        heddle("run " + file + " --device cpu --ranks 4 --check=full --set n=" + n);
    EXPECT_EQ(result.code, 0) << result.text;
  }
}

// The operands of all batches are empty, or the block of a rank is.
TEST_F(Main, MatmulsOfEmptyBatchesAreChecked) {
  const std::string file =
      write("batches.fusion",
            "heddle 1\nmesh @m = [x=ranks]\n"
            "fusion batches(%q: f32[3, 3, n] shard(@m, 2: x), %k: f32[3, 3, n] shard(@m, 1: x),\n"
            "    %v: f32[3, 3, n] shard(@m, 1: x), %d: f32[3, 3, n]) with n = 0 {\n"
            "  %a, %b, %c = scaled_dot_product_attention_backward(%d, %q, %k, %v)\n"
            "  %t = permute(%k, axes=[0, 2, 1])\n  %e = matmul(%q, %t)\n  %f = matmul(%t, %q)\n"
            "  return %a, %b, %c, %e, %f\n}\n");
  for (const std::string n : {"0", "1"}) {
    const CliResult result =
        heddle("run " + file + " --device cpu --ranks 4 --check=full --set n=" + n);
    EXPECT_EQ(result.code, 0) << result.text;
  }
}

TEST_F(Main, JsonOutputIsOneObject) {
  const CliResult result = heddle("run examples/swiglu.fusion --device cpu --check --json");
  const auto json = nlohmann::json::parse(result.text);
  EXPECT_EQ(json["passed"], true);
  EXPECT_EQ(json["ranks"], 1);
}

// %t is a view of %x, and %y has columns of %x as its rows in memory.
TEST_F(Main, JsonDescribesTheMemoryOfOutputs) {
  const std::string file = write("views.fusion",
                                 "heddle 1\nfusion views(%x: f32[t, h]) with t = 2, h = 3 {\n"
                                 "  %t = permute(%x, axes=[1, 0])\n  %y = neg(%x)\n"
                                 "  return %t, %y order=[1, 0]\n}\n");
  const auto outputs =
      nlohmann::json::parse(heddle("run " + file + " --device cpu --json").text)["outputs"];
  EXPECT_EQ(outputs[0]["shape"], (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(outputs[0]["strides"], (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(outputs[0]["aliases"], "input %x");
  EXPECT_EQ(outputs[1]["shape"], (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(outputs[1]["strides"], (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(outputs[1]["aliases"], "");
}

// Rank 0 holds two of four rows.
TEST_F(Main, JsonDescribesTheBlockOfRankZero) {
  const std::string file = write("rows.fusion",
                                 "heddle 1\nmesh @m = [x=2]\n"
                                 "fusion rows(%x: f32[t, h] shard(@m, 0: x)) with t = 4, h = 3 {\n"
                                 "  %y = neg(%x)\n  return %y\n}\n");
  const auto json =
      nlohmann::json::parse(heddle("run " + file + " --device cpu --ranks 2 --json").text);
  const auto& output = json["outputs"][0];
  EXPECT_EQ(output["shape"], (std::vector<int64_t>{4, 3}));
  EXPECT_EQ(output["block"], (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(output["strides"], (std::vector<int64_t>{3, 1}));
}

TEST_F(Main, JsonOfAFusionSaysWhereOrdersComeFrom) {
  const std::string file =
      write("orders.fusion",
            "heddle 1\nfusion orders(%x: f32[t, h] order=[1, 0]) with t = 2, h = 3 {\n"
            "  %y = neg(%x)\n  %z = exp(%y) order=[0, 1]\n  return %y, %z\n}\n");
  const auto orders = nlohmann::json::parse(
      heddle("dump " + file + " --stage fusion --format json").text)["orders"];
  ASSERT_EQ(orders.size(), 2);
  EXPECT_EQ(orders[0]["value"], "y");
  EXPECT_EQ(orders[0]["order"], (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(orders[0]["kind"], "hinted");
  EXPECT_EQ(orders[0]["from"], "input %x");
  EXPECT_EQ(orders[1]["kind"], "required");
  EXPECT_EQ(orders[1]["from"], "the user");
}

TEST_F(Main, OutputFilesServeAsInputs) {
  const std::string file = write("double.fusion",
                                 "heddle 1\nfusion double(%x: f32[t]) with t = 3 {\n"
                                 "  %y = add(%x, %x)\n  return %y\n}\n");
  const std::string out = (folder_ / "out").string();
  EXPECT_EQ(heddle("run " + file + " --device cpu --output-dir " + out).code, 0);
  const CliResult again =
      heddle("run " + file + " --device cpu --check=full --input x=" + out + "/y.npy --set t=3");
  EXPECT_EQ(again.code, 0) << again.text;
  expectError("run " + file + " --device cpu --set t=4 --input x=" + out + "/y.npy", "t=4");
  expectError("run " + file + " --device cpu --input z=" + out + "/y.npy", "no tensor input %z");
}

TEST_F(Main, DumpedProgramsRun) {
  for (const char* example : {"softmax", "tp_mlp", "gelu_backward_bias_grad"}) {
    const std::string fusion = std::string("examples/") + example + ".fusion";
    const CliResult dump = heddle("dump " + fusion + " --stage host");
    ASSERT_EQ(dump.code, 0) << dump.text;
    const std::string file = write(std::string(example) + ".hostir", dump.text);
    EXPECT_EQ(heddle("verify " + file).code, 0);
    const bool large = std::string(example)[0] == 'g';
    const std::string sizes = large ? " --set b=2 --set s=3 --set h=5" : "";
    EXPECT_EQ(heddle("run " + file + " --device cpu" + sizes).code, 0) << example;
  }
}

TEST_F(Main, DumpDirHasOneFilePerStageKernelAndRank) {
  const std::string out = (folder_ / "dump").string();
  const CliResult result =
      heddle("dump examples/tp_mlp.fusion --ranks 2 --stage all --dump-dir " + out);
  ASSERT_EQ(result.code, 0) << result.text;
  EXPECT_TRUE(result.text.empty()) << result.text;
  for (const char* name : {"01_fusion.txt", "02_segments.txt", "03_schedule_k0_rank0.txt",
                           "04_kernel_k0_rank1.cpp", "05_host.hostir", "06_late_rank1.txt"}) {
    EXPECT_TRUE(fs::exists(folder_ / "dump" / name)) << name;
  }
}

TEST_F(Main, SegmentsAreDumpedInEveryFormat) {
  const std::string base = "dump examples/gelu_backward_bias_grad.fusion --stage segments";
  EXPECT_NE(heddle(base).text.find("T19"), std::string::npos);
  EXPECT_NE(heddle(base + " --format dot").text.find("digraph"), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(heddle(base + " --format json").text).is_object());
  expectError("dump examples/softmax.fusion --stage host --format dot", "shows only segments");
}

// dump prints the table to standard error, so its standard output can still be piped into a file.
TEST_F(Main, TimePassesListsEveryPass) {
  for (const char* command : {"run examples/tp_mlp.fusion --device cpu --ranks 2",
                              "dump examples/tp_mlp.fusion --ranks 2 --stage host"}) {
    const CliResult result = heddle(std::string(command) + " --time-passes");
    EXPECT_EQ(result.code, 0) << result.text;
    for (const char* pass : {"concretizeMeshes", "propagateSharding", "segment", "lower",
                             "chunk_collectives", "insert_sync", "insert_frees", "all passes"}) {
      EXPECT_NE(result.text.find(std::string("  ") + pass + "\n"), std::string::npos)
          << pass << "\n"
          << result.text;
    }
  }
  const std::string segments = "dump examples/tp_mlp.fusion --stage segments";
  const CliResult result = heddle(segments + " --time-passes");
  EXPECT_NE(result.text.find("  segment\n"), std::string::npos) << result.text;
  EXPECT_EQ(result.text.find("  lower\n"), std::string::npos) << result.text;
  EXPECT_NE(heddle("run examples/ring_allgather.hostir --device cpu --ranks 2 --time-passes")
                .text.find("no pass runs on a host program"),
            std::string::npos);
}

TEST_F(Main, VerifyEachAcceptsEveryPass) {
  for (const char* environment : {"HEDDLE_VERIFY_EACH=", "HEDDLE_VERIFY_EACH=1"}) {
    const CliResult run = heddle(
        "run examples/sp_mlp.fusion --device cpu --ranks 2 --overlap 2 --check --verify-each",
        environment);
    EXPECT_EQ(run.code, 0) << run.text;
  }
  EXPECT_EQ(heddle("dump examples/tp_mlp.fusion --ranks 2 --stage all --verify-each").code, 0);
}

// Without insert_sync the program has races. --verify-each must not report another pass as their
// cause.
TEST_F(Main, VerifyEachBlamesNoPassForASkippedOne) {
  const CliResult result =
      heddle("dump examples/tp_mlp.fusion --ranks 2 --stage host --verify-each --skip insert_sync");
  EXPECT_EQ(result.code, 2) << result.text;
  EXPECT_EQ(result.text.find("broke the program"), std::string::npos) << result.text;
}

TEST_F(Main, SkippedPassesMustExist) {
  for (const char* stage : {"segments", "host"}) {
    const std::string dump = std::string("dump examples/tp_mlp.fusion --stage ") + stage;
    expectError(dump + " --skip no_such_pass", "there is no pass 'no_such_pass'");
    EXPECT_EQ(heddle(dump + " --skip lift_posts --skip removeDead").code, 0);
  }
}

TEST_F(Main, NanMatchesNan) {
  const std::string file = write("nan.fusion",
                                 "heddle 1\nfusion f(%x: f32[t], %s: f64 = inf) with t = 4 {\n"
                                 "  %y = mul(%x, %s)\n  %z = sub(%y, %y)\n  return %z\n}\n");
  const CliResult result = heddle("run " + file + " --device cpu --check=full");
  EXPECT_EQ(result.code, 0) << result.text;
}

// heddle must reduce partial values before it computes mul, exp or neg, because these ops do not
// commute with the reductions.
TEST_F(Main, PartialInputsAndOutputsAreChecked) {
  const std::string parts = write("parts.fusion", R"(heddle 1
mesh @m = [y=2, x=ranks]
fusion f(%a: i8[5, 3] shard(@m, 0: y) partial(sum: x), %b: f16[5, 3] partial(max: x),
         %c: f32[5, 3] partial(avg: x), %d: i32[7] partial(prod: x), %e: bool[7] partial(max: y),
         %f: bf16[7] partial(sum: y, sum: x), %g: u8[4] partial(min: x),
         %w: f32[5, 3] shard(@m, 0: x)) {
  %aa = mul(%a, %a)
  %bb = neg(%b)
  %cc = exp(%c)
  %dd = add(%d, %d)
  %ee = logical_not(%e)
  %ff = mul(%f, %f)
  %gg = add(%g, 1)
  %s = sum(%cc, axes=[0])
  %t = sum(%w, axes=[0]) shard(@m) partial(sum: x)
  return %aa, %bb, %cc, %dd, %ee, %ff, %gg, %s, %t
})");
  const CliResult result = heddle("run " + parts + " --device cpu --ranks 6 --check=full --json");
  ASSERT_EQ(result.code, 0) << result.text;
  const auto json = nlohmann::json::parse(result.text);
  EXPECT_EQ(json["inputs"][5], "%f: bf16[7], given as parts; it is their sum over y, sum over x");
  EXPECT_EQ(json["outputs"][8]["reduced"], "sum over x");
  EXPECT_EQ(json["outputs"][7]["reduced"], "");
}

TEST_F(Main, PartialInputTakenAsCompleteFailsTheCheck) {
  const std::string head = "heddle 1\nmesh @m = [x=ranks]\n";
  const std::string given = "(%x: i32[8] shard(@m) partial(sum: x)";
  const std::string program =
      write("part.hostir", head + "program part" + given +
                               ") -> (%y) {\n  slot %y: i32[8] shard(@m)\n"
                               "  %y = allocate stream=0\n  copy %x -> %y stream=0\n}\n");
  write("part.fusion", "heddle 1\nfusion part(%x: i32[8]) {\n  %y = set(%x)\n  return %y\n}\n");
  const CliResult result = heddle("run " + program + " --device cpu --ranks 2 --check=full");
  EXPECT_EQ(result.code, 1) << result.text;
  EXPECT_NE(result.text.find("WRONG"), std::string::npos) << result.text;
}

// A reshape that merges a sharded axis needs even blocks. If the sizes are known to be uneven, the
// axis must be gathered.
TEST_F(Main, GivenSizesDecideTheLowering) {
  const std::string file = write("merge.fusion",
                                 "heddle 1\nmesh @m = [x=ranks]\n"
                                 "fusion f(%x: f32[n, h] shard(@m, 0: x)) with n = 6, h = 4 {\n"
                                 "  %y = reshape(%x, sizes=[n*h])\n  return %y\n}\n");
  const std::string three = " " + file + " --device cpu --ranks 3";
  EXPECT_EQ(heddle("run" + three + " --check=full").code, 0);
  const CliResult uneven = heddle("run" + three + " --set n=7 --check=full");
  EXPECT_EQ(uneven.code, 0) << uneven.text;
  const std::string dump = heddle("dump" + three + " --set n=7 --stage host").text;
  EXPECT_NE(dump.find("allgather"), std::string::npos) << dump;
  EXPECT_NE(dump.find("n = 7"), std::string::npos) << dump;
}

TEST_F(Main, DefaultOfATensorThatDecidesAnOffsetIsPassed) {
  const std::string text =
      "heddle 1\nfusion f(%i: i8[]){} {{\n  %a = iota(sizes=[6], axis=0)\n"
      "  %s = slice(%a, starts=[%i], stops=[%i + 1])\n  return %s\n}}\n";
  const std::string file = write("with.fusion", fmt::format(fmt::runtime(text), " with %i = 2"));
  const CliResult with = heddle("run " + file + " --device cpu --check=full");
  EXPECT_EQ(with.code, 0) << with.text;
  EXPECT_NE(with.text.find("%s: i64[1] = 2\n"), std::string::npos) << with.text;
  const CliResult set = heddle("run " + file + " --device cpu --set i=4");
  EXPECT_NE(set.text.find("%s: i64[1] = 4\n"), std::string::npos) << set.text;
  expectError("run " + write("large.fusion", fmt::format(fmt::runtime(text), " with %i = 300")),
              "input %i: the default 300 is outside the range of i8");
  expectError("run " + write("without.fusion", fmt::format(fmt::runtime(text), "")),
              "input %i decides sizes or offsets and has no default; give it with --set i=VALUE or "
              "--input i=FILE");
}

TEST_F(Main, FailedCheckExitsWithOne) {
  const auto file = [&](const std::string& name, const std::string& result) {
    return write(name, "heddle 1\nfusion f(%x: f32[t]) with t = 4 {\n  %s = sum(%x, axes=[0])\n  " +
                           result + "\n  return %y\n}\n");
  };
  const std::string fusion = file("sum.fusion", "%y = neg(%s)");
  const std::string reference = file("reference.fusion", "%y = add(%s, 1.0)");
  const CliResult result =
      heddle("run " + fusion + " --device cpu --check=full --reference " + reference);
  EXPECT_EQ(result.code, 1) << result.text;
  EXPECT_NE(result.text.find("WRONG"), std::string::npos) << result.text;
}

TEST_F(Main, HelpHasAnExample) {
  for (const char* command : {"run", "bench", "dump", "verify", "devices"}) {
    const CliResult result = heddle(std::string(command) + " --help");
    EXPECT_EQ(result.code, 0);
    EXPECT_NE(result.text.find("Example:"), std::string::npos) << command;
  }
}

}  // namespace
}  // namespace heddle::tools::main_cpu_test
