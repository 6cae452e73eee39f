// Runs CUDA kernels with bundles of rows that are shared by clusters of blocks
// (codegen/families/rows/bundles.h) on the host, and compares them with the reference evaluator.
#include "tests/codegen/simt/simt_cases.h"

namespace heddle::codegen::bundles_cluster_simt_test {
namespace {

using testing::Cases;
using testing::expectRight;
using testing::Layout;

constexpr double kRoundings = 64;

KernelChoice clusters(int64_t blocks,
                      const std::vector<std::pair<std::string, int64_t>>& others = {}) {
  KernelChoice choice{"rows", {{"cluster", blocks}}};
  for (const auto& [name, value] : others) choice.set(name, value);
  return choice;
}

void add(Cases& cases, const std::string& text, const std::vector<Layout>& layouts,
         const SizeBindings& sizes, const KernelChoice& choice) {
  cases.add(text, layouts, sizes, {}, 0, &choice);
  EXPECT_EQ(cases.candidate(cases.size() - 1).find("cluster"), choice.find("cluster")) << text;
}

std::string softmax(const std::string& dtype) {
  return fmt::format("%x: {}[n, m, k]) {{ %y = softmax(%x, axis=1) return %y", dtype);
}

void addSoftmax(Cases& cases, const char* dtype, int64_t m, int64_t k, const KernelChoice& choice) {
  add(cases, softmax(dtype), {{{2, m, k}}}, {{"n", 2}, {"m", m}, {"k", k}}, choice);
}

// A norm with one weight per element of a row. The sums of squares are an output.
const char* const kNorm =
    "%x: f32[m, k], %w: f32[m]) { %s = sum(%x, axes=[0], keepdim=true) %c = mul(%s, 0.001) %d = "
    "sub(%x, %c) %q = mul(%d, %d) %v = sum(%q, axes=[0], keepdim=true) %r = rsqrt(%v) %b = "
    "broadcast(%w, axes=[1]) %p = mul(%d, %r) %y = mul(%p, %b) return %y, %v";

TEST(BundlesClusterSimt, SoftmaxIsRightAtTheEdgesOfBundles) {
  Cases cases;
  for (const int64_t blocks : {2, 4, 8}) {
    for (const int64_t k : {16, 33, 40}) {
      addSoftmax(cases, "bf16", 1100, k, clusters(blocks));
      addSoftmax(cases, "f32", 1031, k, clusters(blocks));
    }
  }
  expectRight(cases, kRoundings);
}

TEST(BundlesClusterSimt, WideAndNarrowBlocksAreRight) {
  Cases cases;
  for (const int64_t rows : {8, 32, 64}) {
    addSoftmax(cases, "bf16", 400, 131, clusters(4, {{"rows", rows}}));
    EXPECT_EQ(cases.candidate(cases.size() - 1).find("rows"), rows);
  }
  addSoftmax(cases, "bf16", 400, 72, clusters(2, {{"vector", 4}}));
  expectRight(cases, kRoundings);
}

TEST(BundlesClusterSimt, NormsAreRightAndStoreStatistics) {
  Cases cases;
  for (const int64_t blocks : {2, 8}) {
    for (const int64_t m : {300, 1000}) {
      add(cases, kNorm, {{{m, 21}}, {{m}}}, {{"m", m}, {"k", 21}}, clusters(blocks));
    }
  }
  expectRight(cases, 256);
}

// Each block of a cluster needs two elements of each row.
TEST(BundlesClusterSimt, ShortRowsHaveNoClusters) {
  Cases cases;
  const KernelChoice eight = clusters(8);
  cases.add(softmax("f32"), {{{2, 15, 40}}}, {{"n", 2}, {"m", 15}, {"k", 40}}, {}, 0, &eight);
  EXPECT_FALSE(cases.candidate(0).find("cluster"));
  expectRight(cases, kRoundings);
}

// Without one of its barriers, a kernel reads a state before it has arrived, or the state of
// another sweep.
TEST(BundlesClusterSimt, EachBarrierIsNeeded) {
  Cases cases;
  add(cases, kNorm, {{{800, 19}}, {{800}}}, {{"m", 800}, {"k", 19}}, clusters(4));
  cases.compile();
  const auto [first, end] = cases.barriers(0);
  EXPECT_GE(end - first, 4);
  for (int barrier = first; barrier < end; ++barrier) {
    testing::expectNeeded(cases, 0, barrier, kRoundings);
  }
}

}  // namespace
}  // namespace heddle::codegen::bundles_cluster_simt_test
