// Runs CUDA kernels of the family of rows whose rows are shared by clusters of blocks on the host,
// and compares them with the reference evaluator.
#include "tests/codegen/simt/simt_cases.h"

namespace heddle::codegen::rows_cluster_simt_test {
namespace {

using testing::Cases;
using testing::expectRight;
using testing::Layout;

constexpr double kRoundings = 64;

KernelChoice clusters(int64_t blocks, int64_t threads, std::optional<int64_t> hold = {}) {
  KernelChoice choice{"rows", {{"cluster", blocks}, {"threads", threads}}};
  if (hold) choice.set("hold", *hold);
  return choice;
}

void add(Cases& cases, const std::string& text, const std::vector<Layout>& layouts,
         const SizeBindings& sizes, const KernelChoice& choice) {
  cases.add(text, layouts, sizes, {}, 0, &choice);
  EXPECT_EQ(cases.candidate(cases.size() - 1).find("cluster"), choice.find("cluster")) << text;
}

std::string softmax(const std::string& dtype) {
  return fmt::format("%x: {}[n, m]) {{ %y = softmax(%x, axis=-1) return %y", dtype);
}

const char* const kNorm =
    "%x: f32[n, m], %w: f32[m]) { %s = sum(%x, axes=[1], keepdim=true) %c = mul(%s, 0.001) %d = "
    "sub(%x, %c) %q = mul(%d, %d) %v = sum(%q, axes=[1], keepdim=true) %r = rsqrt(%v) %b = "
    "broadcast(%w, axes=[0]) %p = mul(%d, %r) %y = mul(%p, %b) return %y, %v";

TEST(RowsClusterSimt, SoftmaxIsRightAtTheEdgesOfBlocks) {
  Cases cases;
  for (const int64_t blocks : {2, 4, 8}) {
    for (const int64_t m : {8192, 8193, 8200, 10007}) {
      add(cases, softmax("bf16"), {{{3, m}}}, {{"n", 3}, {"m", m}}, clusters(blocks, 128 * blocks));
    }
  }
  expectRight(cases, kRoundings);
}

// Values in registers, rows in registers, rows in shared memory.
TEST(RowsClusterSimt, AllWaysToHoldARowAreRight) {
  Cases cases;
  const SizeBindings sizes = {{"n", 2}, {"m", 6007}};
  for (const int64_t hold : {0, 1, 2}) {
    const KernelChoice choice = clusters(4, 512, hold);
    add(cases, softmax("f32"), {{{2, 6007}}}, sizes, choice);
    add(cases, kNorm, {{{2, 6007}}, {{6007}}}, sizes, choice);
    EXPECT_EQ(cases.sharedBytes(cases.size() - 1) > 0, hold == 2);
  }
  expectRight(cases, kRoundings);
}

// A kernel that loops over the parts of a row has no cluster, and neither has a row that is too
// long for a cluster.
TEST(RowsClusterSimt, LoopedRowsHaveNoClusters) {
  Cases cases;
  KernelChoice looped = clusters(2, 256);
  looped.set("looped", 1);
  cases.add(softmax("bf16"), {{{3, 20001}}}, {{"n", 3}, {"m", 20001}}, {}, 0, &looped);
  const KernelChoice eight = clusters(8, 1024);
  cases.add(softmax("f32"), {{{1, 400000}}}, {{"n", 1}, {"m", 400000}}, {}, 0, &eight);
  cases.add("%x: f32[n, m]) { %y = sum(%x, axes=[1]) return %y", {{{2, 400000}}},
            {{"n", 2}, {"m", 400000}}, {}, 0, &eight);
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(cases.candidate(i).find("looped"), 1) << cases.name(i);
    EXPECT_FALSE(cases.candidate(i).find("cluster")) << cases.name(i);
  }
}

TEST(RowsClusterSimt, ARowThatIsTooShortHasASmallerCluster) {
  Cases cases;
  const KernelChoice eight = clusters(8, 1024);
  cases.add(softmax("f32"), {{{3, 2000}}}, {{"n", 3}, {"m", 2000}}, {}, 0, &eight);
  EXPECT_EQ(cases.candidate(0).find("cluster"), 2);
  cases.add(softmax("f32"), {{{3, 500}}}, {{"n", 3}, {"m", 500}}, {}, 0, &eight);
  EXPECT_FALSE(cases.candidate(1).find("cluster"));
  expectRight(cases, kRoundings);
}

// Without one of its barriers, a kernel reads a state before it has arrived, or the state of
// another sweep.
TEST(RowsClusterSimt, EachBarrierIsNeeded) {
  Cases cases;
  add(cases, kNorm, {{{2, 8001}}, {{8001}}}, {{"n", 2}, {"m", 8001}}, clusters(4, 512));
  cases.compile();
  const auto [first, end] = cases.barriers(0);
  EXPECT_GE(end - first, 4);
  for (int barrier = first; barrier < end; ++barrier) {
    testing::expectNeeded(cases, 0, barrier, kRoundings);
  }
}

}  // namespace
}  // namespace heddle::codegen::rows_cluster_simt_test
