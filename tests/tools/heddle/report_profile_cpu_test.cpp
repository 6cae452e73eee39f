// Tests `heddle run` with --profile and --check-numerics. No test depends on how long something
// takes.
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

#include "tests/tools/cli.h"

namespace heddle::tools::report_profile_cpu_test {
namespace {

using Json = nlohmann::json;
using Row = std::map<std::string, std::string>;  // by column

class ReportProfile : public Cli {
 protected:
  // Splits a line of CSV, in which a quoted cell may contain commas.
  static std::vector<std::string> cells(const std::string& line) {
    std::vector<std::string> found = {""};
    bool quoted = false;
    for (char c : line) {
      if (c == '"') {
        quoted = !quoted;
      } else if (c == ',' && !quoted) {
        found.emplace_back();
      } else {
        found.back() += c;
      }
    }
    return found;
  }
  // Runs the command with --profile, and returns the rows of the file.
  std::vector<Row> profile(const std::string& command) {
    const std::string path = (folder_ / "profile.csv").string();
    const CliResult result = heddle(command + " --profile " + path);
    EXPECT_EQ(result.code, 0) << result.text;
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    const std::vector<std::string> header = cells(line);
    std::vector<Row> rows;
    while (std::getline(file, line)) {
      const std::vector<std::string> values = cells(line);
      EXPECT_EQ(values.size(), header.size()) << line;
      Row row;
      for (size_t i = 0; i < values.size(); ++i) row[header.at(i)] = values[i];
      rows.push_back(row);
    }
    return rows;
  }
};

// The sums of a timeline over the executions of one instruction on one rank.
struct Traced {
  std::string text;
  int64_t issued = 0;
  int64_t count = 0;
  double total = 0;
  std::vector<double> each;
  int64_t bytes = 0;
};

// Both files come from the same run, because only the last run is timed.
TEST_F(ReportProfile, ProfileAgreesWithTheTimeline) {
  const std::string program =
      write("sum.hostir",
            "heddle 1\nmesh @m = [x=ranks]\n"
            "program product(%a: f32[32, 32] shard(@m), %b: f32[32, 32] shard(@m)) -> (%y, %z) {\n"
            "  slot %p: f32[32, 32] shard(@m) partial(sum: x)\n"
            "  slot %y: f32[32, 32] shard(@m)\n  slot %z: f32[32, 32] shard(@m)\n"
            "  %p = allocate\n  call_library matmul(%a, %b) -> (%p)\n  %y = allocate\n"
            "  $t = communicate allreduce %p -> %y team=@m[x] op=sum\n"
            "  wait $t\n  free %p\n  %z = allocate\n"
            "  for i in 0 .. 3 {\n    copy %y -> %z\n  }\n}\n");
  const std::string trace = (folder_ / "trace.json").string();
  const std::vector<Row> rows =
      profile("run " + program + " --device cpu --ranks 2 --trace " + trace);
  std::map<std::tuple<int, int>, Traced> traced;  // by rank and instruction
  std::ifstream file(trace);
  const Json timeline = Json::parse(file);
  for (const Json& event : timeline.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const int rank = event.at("pid");
    const int instruction = event.at("args").at("instruction");
    Traced& one = traced[{rank, instruction}];
    one.text = event.at("name");
    if (event.at("cat") == "issue") {
      ++one.issued;
      continue;
    }
    ++one.count;
    one.total += event.at("dur").get<double>();
    one.each.push_back(event.at("dur"));
    one.bytes += event.at("args").at("bytes").get<int64_t>();
  }
  std::map<std::string, int> kinds;
  for (const Row& row : rows) {
    Traced& one = traced.at({std::stoi(row.at("rank")), std::stoi(row.at("index"))});
    EXPECT_EQ(row.at("instruction"), one.text);
    EXPECT_EQ(row.at("count"), std::to_string(one.count)) << one.text;
    EXPECT_EQ(one.issued, one.count) << one.text;
    EXPECT_NEAR(std::stod(row.at("total_us")), one.total, 0.01) << one.text;
    std::sort(one.each.begin(), one.each.end());
    EXPECT_NEAR(std::stod(row.at("median_us")), one.each[one.each.size() / 2], 0.01) << one.text;
    EXPECT_EQ(row.at("bytes"), std::to_string(one.bytes)) << one.text;
    const double copy_rate = std::stod(row.at("copy_gb_per_s"));  // rounded to three digits
    const double fraction = 1e-3 * static_cast<double>(one.bytes) / one.total / copy_rate;
    EXPECT_NEAR(std::stod("0" + row.at("of_copy")), fraction, 0.001 + 0.01 * fraction) << one.text;
    const bool is_product = one.text.find("matmul") != std::string::npos;
    EXPECT_EQ(row.at("of_peak").empty(), !is_product) << one.text;
    if (is_product) {
      const double rate = 1e-3 * 2 * 32 * 32 * 32 / one.total / std::stod(row.at("peak_gop_per_s"));
      EXPECT_NEAR(std::stod(row.at("of_peak")), rate, 0.001 + 0.01 * rate);
    }
    ++kinds[one.text.substr(0, 4)];
    one.each.clear();
  }
  // Each rank has a product, a collective and a copy. No other instruction of the timeline has
  // work on a stream that moves data.
  EXPECT_EQ(rows.size(), 6u);
  EXPECT_EQ(kinds, (std::map<std::string, int>{{"call", 2}, {"$t =", 2}, {"copy", 2}}));
}

TEST_F(ReportProfile, AllTimedRunsCount) {
  const std::vector<Row> rows =
      profile("run examples/softmax.fusion --device cpu --set rows=8 --repeat 3");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].at("count"), "3");
  EXPECT_EQ(rows[0].at("bytes"), std::to_string(3 * 2 * 8 * 1000 * 4));
  EXPECT_LE(std::stod(rows[0].at("median_us")), std::stod(rows[0].at("total_us")));
}

TEST_F(ReportProfile, NullDeviceHasCountsWithoutTimes) {
  const std::vector<Row> rows =
      profile("run examples/tp_mlp.fusion --device null --ranks 2 --repeat 2");
  ASSERT_EQ(rows.size(), 10u);
  for (const Row& row : rows) {
    EXPECT_EQ(row.at("count"), "2");
    EXPECT_GT(std::stoll(row.at("bytes")), 0);
    for (const char* time : {"total_us", "median_us", "of_copy", "of_peak", "copy_gb_per_s"}) {
      EXPECT_EQ(row.at(time), "") << time;
    }
  }
}

// The memory limit leaves no room for the copy, but enough for the program.
TEST_F(ReportProfile, RateThatDoesNotFitInMemoryIsUnknown) {
  const std::string path = (folder_ / "small.csv").string();
  const CliResult result = heddle(
      "run examples/softmax.fusion --device cpu --set rows=8 --memory-limit 1000000 --profile " +
      path);
  EXPECT_EQ(result.code, 0) << result.text;
  EXPECT_NE(result.text.find("heddle: --profile " + path +
                             ", rank 0: the device has too little memory left to measure the copy "
                             "bandwidth, so of_copy is empty\n"),
            std::string::npos)
      << result.text;
}

TEST_F(ReportProfile, PathThatCannotBeWrittenIsAnError) {
  const std::string softmax = "run examples/softmax.fusion --device cpu --set rows=8 --profile ";
  expectError(softmax + "/no_such_folder/x.csv",
              "cannot open /no_such_folder/x.csv for writing: No such file");
  expectError(softmax + folder_.string(), "Is a directory");
  expectError("run examples/tp_mlp.fusion --device cpu --ranks 2 --profile /no_such_folder/x.csv",
              "cannot open /no_such_folder/x.csv for writing: No such file");
  expectError("run examples/softmax.fusion --profile", "--profile");
}

class ReportProfileNumerics : public ReportProfile {
 protected:
  std::string logFusion() {
    return write("log.fusion",
                 "heddle 1\nmesh @m = [x=ranks]\nfusion f(%x: f32[8, 4] shard(@m, 0: x)) {\n"
                 "  %y = log(%x)\n  %s = sum(%y, axes=[0])\n  return %s\n}\n");
  }
};

TEST_F(ReportProfileNumerics, NanEndsTheCommandWithOne) {
  for (const int ranks : {1, 2}) {
    const CliResult result = heddle(
        "run " + logFusion() + " --device cpu --check-numerics --ranks " + std::to_string(ranks));
    EXPECT_EQ(result.code, 1) << result.text;
    EXPECT_NE(result.text.find("heddle: numerics: rank 0: instruction "), std::string::npos)
        << result.text;
    EXPECT_NE(result.text.find("everything that it read was finite\n"), std::string::npos)
        << result.text;
    EXPECT_NE(result.text.find("\nnumerics NaN or infinity on rank 0"), std::string::npos)
        << result.text;
  }
}

TEST_F(ReportProfileNumerics, FiniteRunsSucceed) {
  for (const std::string file : {"transformer_block_tp.fusion", "ring_allgather.hostir"}) {
    const CliResult result =
        heddle("run examples/" + file + " --device cpu --ranks 2 --adversarial 3 --check-numerics");
    EXPECT_EQ(result.code, 0) << result.text;
    EXPECT_NE(result.text.find("numerics no instruction wrote NaN or infinity\n"),
              std::string::npos)
        << result.text;
  }
}

TEST_F(ReportProfileNumerics, JsonListsTheReportOfEachRank) {
  const CliResult result = heddle(
      "run examples/softmax.fusion --device cpu --set rows=8 "
      "--check-numerics --json");
  EXPECT_EQ(result.code, 0) << result.text;
  EXPECT_EQ(Json::parse(result.text).at("numerics"), Json({""}));
}

TEST_F(ReportProfileNumerics, NullDeviceIsRefused) {
  expectError("run examples/softmax.fusion --device null --check-numerics",
              "--check-numerics: the null device computes nothing");
}

}  // namespace
}  // namespace heddle::tools::report_profile_cpu_test
