// Tests `heddle bench` on the CPU: its outputs and its messages. No test depends on a time.
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/tools/cli.h"

namespace heddle::tools::bench_cpu_test {
namespace {

constexpr const char* kSoftmax =
    "bench examples/softmax.fusion --device cpu --repeat 2 --set rows=8";
constexpr int64_t kSoftmaxBytes = 2 * 8 * 1000 * 4;  // the input and the output

class Bench : public Cli {
 protected:
  static nlohmann::json json(const std::string& arguments) {
    const CliResult result = heddle(arguments + " --json");
    EXPECT_EQ(result.code, 0) << result.text;
    return nlohmann::json::parse(result.text);
  }
  static std::vector<std::string> lines(const std::string& arguments) {
    const CliResult result = heddle(arguments);
    EXPECT_EQ(result.code, 0) << result.text;
    std::vector<std::string> found;
    std::istringstream text(result.text);
    for (std::string line; std::getline(text, line);) found.push_back(line);
    return found;
  }
  // Splits a line of CSV in which no cell is quoted.
  static std::vector<std::string> cells(const std::string& line) {
    std::vector<std::string> found = {""};
    for (char c : line) {
      if (c == ',') {
        found.emplace_back();
      } else {
        found.back() += c;
      }
    }
    return found;
  }
};

TEST_F(Bench, TextHasOneRowPerInstructionAndTheTotal) {
  const std::vector<std::string> text = lines(kSoftmax);
  ASSERT_EQ(text.size(), 5u);
  EXPECT_TRUE(text[0].starts_with("examples/softmax.fusion on cpu")) << text[0];
  EXPECT_TRUE(text[0].ends_with("medians of 2 runs")) << text[0];
  EXPECT_TRUE(text[1].starts_with("copy bandwidth ")) << text[1];
  EXPECT_TRUE(text[2].ends_with("GB/s  of_copy")) << text[2];
  EXPECT_NE(text[3].find("launch @k0   heddle_"), std::string::npos) << text[3];
  EXPECT_NE(text[4].find("total"), std::string::npos) << text[4];
  for (size_t row : {3, 4}) {
    EXPECT_NE(text[row].find("  " + std::to_string(kSoftmaxBytes) + "  "), std::string::npos);
  }
}

TEST_F(Bench, RooflineAddsTwoColumns) {
  const std::vector<std::string> text = lines(kSoftmax + std::string(" --roofline"));
  ASSERT_EQ(text.size(), 5u);
  EXPECT_TRUE(text[2].ends_with("floor_us  limit")) << text[2];
  const nlohmann::json report = json(kSoftmax + std::string(" --roofline"));
  for (const nlohmann::json& row : {report["rows"][0], report["total"]}) {
    EXPECT_GT(row["floor_us"].get<double>(), 0);
    const std::string limit = row["limit"];
    EXPECT_TRUE(limit == "memory" || limit == "not memory" || limit == "cache") << limit;
  }
}

TEST_F(Bench, JsonHasBytesTimesAndLaunches) {
  const nlohmann::json report = json(kSoftmax);
  EXPECT_EQ(report["runs"], 2);
  EXPECT_GT(report["copy_gb_per_second"].get<double>(), 0);
  ASSERT_EQ(report["rows"].size(), 1u);
  const nlohmann::json& row = report["rows"][0];
  EXPECT_EQ(row["bytes"], kSoftmaxBytes);
  EXPECT_TRUE(row["text"].get<std::string>().starts_with("launch @k0(%x) -> (%y)"));
  for (const char* number : {"us", "gb_per_second", "of_copy"}) {
    EXPECT_GT(row[number].get<double>(), 0) << number;
    EXPECT_GT(report["total"][number].get<double>(), 0) << number;
  }
  EXPECT_FALSE(row.contains("floor_us"));
  ASSERT_EQ(row["launches"].size(), 1u);
  const nlohmann::json& launch = row["launches"][0];
  EXPECT_TRUE(launch["kernel"].get<std::string>().starts_with("heddle_"));
  for (const char* gpu : {"grid", "block", "registers", "local_bytes", "occupancy"}) {
    EXPECT_TRUE(launch[gpu].is_null()) << gpu;
  }
}

// The file forces a family for the kernel. The name of the first launched function shows which one.
TEST_F(Bench, ChoicesDecideWhichCandidateIsMeasured) {
  const std::string file = (folder_ / "choices.txt").string();
  const std::string softmax = "examples/softmax.fusion --device cpu ";
  const CliResult tuned = heddle("tune " + softmax + "--export " + file);
  ASSERT_EQ(tuned.code, 0) << tuned.text;
  std::ifstream in(file);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  const size_t key = text.rfind('\n', text.size() - 2) + 1;
  for (const auto& [choice, entry] :
       {std::pair("sweeps", "heddle_kernel_p0"), std::pair("rows looped=0", "heddle_rows")}) {
    const std::string forced = write("forced.txt", text.substr(0, key + 64) + " " + choice + "\n");
    const nlohmann::json report = json("bench " + softmax + "--repeat 1 --choices " + forced);
    const std::string name = report["rows"][0]["launches"][0]["kernel"];
    EXPECT_TRUE(name.starts_with(entry)) << name;
  }
}

TEST_F(Bench, CsvLinesHaveEqualNumbersOfColumns) {
  const std::string roofline = std::string(kSoftmax) + " --roofline --csv";
  for (const std::string& arguments : {std::string(kSoftmax) + " --csv", roofline}) {
    const std::vector<std::string> text = lines(arguments);
    ASSERT_EQ(text.size(), 3u);
    const std::vector<std::string> header = cells(text[0]);
    EXPECT_EQ(header.size(), arguments == roofline ? 15u : 13u);
    EXPECT_EQ(header.front(), "index");
    EXPECT_EQ(header.back(), "occupancy");
    for (size_t row : {1, 2}) {
      const std::vector<std::string> values = cells(text[row]);
      ASSERT_EQ(values.size(), header.size()) << text[row];
      EXPECT_EQ(values[4], std::to_string(kSoftmaxBytes));
      EXPECT_EQ(values.back(), "");
    }
  }
}

TEST_F(Bench, LibraryCallsAndCollectivesHaveRowsWithoutKernels) {
  const std::string file =
      write("product.hostir",
            "heddle 1\nmesh @m = [x=ranks]\n"
            "program product(%a: f32[8, 8] shard(@m), %b: f32[8, 8] shard(@m)) -> (%y) {\n"
            "  slot %p: f32[8, 8] shard(@m) partial(sum: x)\n  slot %y: f32[8, 8] shard(@m)\n"
            "  %p = allocate\n  call_library matmul(%a, %b) -> (%p)\n  %y = allocate\n"
            "  $t = communicate allreduce %p -> %y team=@m[x] op=sum\n  wait $t\n  free %p\n}\n");
  const nlohmann::json report = json("bench " + file + " --device cpu --repeat 1");
  int64_t bytes = 0;
  int calls = 0;
  int collectives = 0;
  for (const nlohmann::json& row : report["rows"]) {
    const std::string text = row["text"];
    bytes += row["bytes"].get<int64_t>();
    calls += text.starts_with("call_library") ? 1 : 0;
    collectives += text.find("communicate") != std::string::npos ? 1 : 0;
    EXPECT_EQ(row["launches"].empty(), !text.starts_with("launch")) << text;
  }
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(collectives, 1);
  EXPECT_EQ(report["total"]["bytes"], bytes);
}

// The bytes of an instruction in a loop are those of all its executions.
TEST_F(Bench, LoopsHaveOneRowPerInstruction) {
  const std::string file = write("loop.hostir",
                                 "heddle 1\nprogram loop(%x: f32[100]) -> (%y) {\n"
                                 "  slot %y: f32[100]\n  %y = allocate\n"
                                 "  for i in 0 .. 3 {\n    copy %x -> %y\n  }\n}\n");
  const nlohmann::json report = json("bench " + file + " --device cpu --repeat 1");
  ASSERT_EQ(report["rows"].size(), 1u);
  EXPECT_EQ(report["rows"][0]["bytes"], 3 * 2 * 100 * 4);
}

TEST_F(Bench, WrongInputIsReported) {
  const std::string softmax = "bench examples/softmax.fusion ";
  const auto expectMessage = [](const std::string& arguments, const std::string& message) {
    const CliResult result = heddle(arguments);
    EXPECT_EQ(result.code, 2) << arguments;
    EXPECT_EQ(result.text, "heddle: " + message + "\n") << arguments;
  };
  expectMessage("bench no_such.fusion",
                "no_such.fusion: cannot read the file: No such file or directory");
  expectMessage("bench", "FILE is required (see heddle bench --help)");
  expectMessage(softmax + "--choices no_such",
                "no_such: cannot read the file: No such file or directory");
  expectError(softmax + "--repeat 0", "--repeat: Value 0 not in range 1 to 1000000");
  expectMessage(softmax + "--csv --json", "--csv excludes --json (see heddle bench --help)");
  expectError(softmax + "--device null", "--device: null not in {cpu,cuda}");
  expectError(softmax + "--device cpu --set nope=3", "no size or scalar input 'nope'");
  const std::string nothing =
      "the program does no work on the device, so there is nothing to measure";
  expectMessage(softmax + "--device cpu --set rows=0", "examples/softmax.fusion: " + nothing);
  const std::string view =
      write("view.fusion", "heddle 1\nfusion view(%x: f32[4]) {\n  return %x\n}\n");
  expectMessage("bench " + view + " --device cpu", view + ": " + nothing);
}

}  // namespace
}  // namespace heddle::tools::bench_cpu_test
