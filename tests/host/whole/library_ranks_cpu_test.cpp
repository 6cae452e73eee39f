// Tests library functions in compiled fusions. The tensors are sharded along the axis of the
// function, or along the other axis.
#include <gtest/gtest.h>

#include <tuple>

#include "host/compile.h"
#include "host/text/program_text.h"
#include "ir/text/fusion_text.h"
#include "tests/host/rank_harness.h"
#include "tests/sanitized.h"

namespace heddle::host::library_ranks_cpu_test {
namespace {

using testing::HarnessOptions;

// argsort computes the index, so the index is in range.
constexpr const char* kBody = R"(
    with t = 6, h = 5 {
  %c = cumsum(%x, axis=AXIS)
  %o = argsort(%x, axis=AXIS, descending=true)
  %a = scatter_add(%x, %o, %c, axis=AXIS)
  %s = scatter(%a, %o, %x, axis=AXIS)
  %y = mul(%s, 2.0)
  return %c, %o, %a, %y
}
)";

std::string fusionText(int ranks, const std::string& sharding, int axis) {
  std::string text = "heddle 1\nmesh @m = [x=" + std::to_string(ranks) +
                     "]\nfusion f(%x: f32[t, h] " + sharding + ")" + kBody;
  for (size_t at; (at = text.find("AXIS")) != std::string::npos;) {
    text.replace(at, 4, std::to_string(axis));
  }
  return text;
}

size_t count(const std::string& text, const std::string& word) {
  size_t found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(LibraryRanks, EveryShardingMatchesTheUnshardedFusion) {
  for (int ranks : {1, 2, 3}) {
    for (const char* sharding : {"shard(@m)", "shard(@m, 0: x)", "shard(@m, 1: x)"}) {
      for (int axis : {0, 1}) {
        const std::string text = fusionText(ranks, sharding, axis);
        SCOPED_TRACE(text);
        const Fusion fusion = parseFusion(text);
        const Program program = compile(fusion, ranks);
        HarnessOptions options;
        options.ranks = ranks;
        options.sizes = testing::defaultSizes(fusion.size_defaults);
        const auto got = testing::runProgram(program, options);
        const auto expected = testing::expectedOf(fusion, options);
        ASSERT_EQ(got.size(), expected.size());
        for (size_t i = 0; i < got.size(); ++i) {
          EXPECT_EQ(testing::relativeError(got[i], expected[i]), 0) << i;
        }
        // If only the other axis is sharded, each rank has complete lines and needs no
        // communication.
        const bool other =
            std::string(sharding) == (axis == 0 ? "shard(@m, 1: x)" : "shard(@m, 0: x)");
        if (other) {
          EXPECT_EQ(count(print(program), "communicate"), 0u);
        }
        EXPECT_EQ(count(print(program), "call_library"), 4u);
      }
    }
  }
}

TEST(LibraryRanks, AdversarialOrderGivesTheSameResult) {
  const Fusion fusion = parseFusion(fusionText(2, "shard(@m, 0: x)", 0));
  const Program program = compile(fusion, 2);
  for (uint64_t seed = 0; seed < heddle::testing::casesOf(10U, 2U); ++seed) {
    HarnessOptions options;
    options.ranks = 2;
    options.cpu.adversarial_seed = seed;
    options.sizes = testing::defaultSizes(fusion.size_defaults);
    options.runs = 2;
    const auto got = testing::runProgram(program, options);
    const auto expected = testing::expectedOf(fusion, options);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(testing::relativeError(got[i], expected[i]), 0) << seed << " " << i;
    }
  }
}

// Tests the gradient of a lookup in a table that is sharded along the other axis.
TEST(LibraryRanks, LookupGradientShardedByColumnsIsRight) {
  for (int ranks : {2, 3}) {
    const Fusion fusion =
        parseFusion("heddle 1\nmesh @m = [x=" + std::to_string(ranks) +
                    "]\nfusion f(%w: f32[v, h] shard(@m, 1: x), %i: i64[n, 1] shard(@m), "
                    "%g: f32[n, h] shard(@m, 1: x))\n"
                    "    with v = 7, h = 5, n = 11 {\n"
                    "  %y = scatter_add(%w, %i, %g, axis=0, stretch=true)\n  return %y\n}\n");
    HarnessOptions options;
    options.ranks = ranks;
    options.sizes = testing::defaultSizes(fusion.size_defaults);
    const Program program = compile(fusion, ranks);
    EXPECT_EQ(count(print(program), "communicate"), 0u);
    EXPECT_EQ(testing::relativeError(testing::runProgram(program, options)[0],
                                     testing::expectedOf(fusion, options)[0]),
              0);
  }
}

// Tests the gradient of a lookup in a table that is sharded by rows: evenly, unevenly, and with
// ranks without rows. Each rank adds to its own rows, and no data of the size of the table is
// communicated. Indices outside of the table, also those just after the end of a block, write
// nothing.
TEST(LibraryRanks, LookupGradientShardedByRowsIsRight) {
  int number = 0;
  for (const char* op : {"scatter_add", "scatter"}) {
    for (const auto& [ranks, mesh, rows] : {std::tuple{2, "[x=2]", "x"},
                                            {3, "[x=3]", "x"},
                                            {4, "[x=4]", "x"},
                                            {4, "[y=2, x=2]", "[y, x]"},
                                            {4, "[y=2, x=2]", "[x, y]"},
                                            {4, "[y=2, x=2]", "y"}}) {
      const std::string at = std::string(" shard(@m, 0: ") + rows + ")";
      const Fusion fusion =
          parseFusion("heddle 1\nmesh @m = " + std::string(mesh) + "\nfusion f(%w: f32[v, h]" + at +
                      ", %i: i64[n, 1] shard(@m), %g: f32[n, h] shard(@m))\n"
                      "    with v = 7, h = 5, n = 23 {\n  %two = constant(2)\n"
                      "  %all = sub(%i, %two)\n  %y = " +
                      op +
                      "(%w, %all, %g, axis=0, stretch=true)\n"
                      "  return %y" +
                      at + "\n}\n");
      for (int64_t v : {1, 5, 7, 8}) {
        if (number++ % heddle::testing::kOneIn != 0) continue;
        HarnessOptions options;
        options.ranks = ranks;
        options.sizes = testing::defaultSizes(fusion.size_defaults);
        options.sizes["v"] = v;
        const Program program = compile(fusion, ranks);
        EXPECT_EQ(count(print(program), "communicate"), 0u) << print(program);
        EXPECT_EQ(testing::relativeError(testing::runProgram(program, options)[0],
                                         testing::expectedOf(fusion, options)[0]),
                  0)
            << op << " on " << mesh << " " << rows << ", v = " << v;
      }
    }
  }
}

TEST(LibraryRanks, EmptyAxesGiveEmptyResults) {
  for (const auto& [t, h] : {std::pair<int64_t, int64_t>{0, 5}, {6, 0}, {1, 1}}) {
    const Fusion fusion = parseFusion(fusionText(1, "shard(@m)", 0));
    HarnessOptions options;
    options.sizes = {{"t", t}, {"h", h}};
    const auto got = testing::runProgram(compile(fusion, 1), options);
    EXPECT_EQ(got[0].sizes, (std::vector<int64_t>{t, h}));
  }
}

}  // namespace
}  // namespace heddle::host::library_ranks_cpu_test
