#include <limits>

#include "host/device/cpu/cpu_device.h"
#include "tests/host/on_ranks.h"
#include "tests/host/rank_harness.h"
#include "tests/host/sizes/scalar_attributes.h"
#include "tests/sanitized.h"

namespace heddle::host::scalar_attributes_cpu_test {
namespace {

using namespace scalar_attributes;

std::unique_ptr<Device> cpu() { return makeCpuDevice({.threads = 1, .adversarial_seed = {}}); }

TEST(ScalarAttributes, SelectTakesTheIndexFromTheRun) { expectSelect(*cpu()); }
TEST(ScalarAttributes, TriangleTakesTheDiagonalFromTheRun) { expectTriangles(*cpu()); }
TEST(ScalarAttributes, DiagonalTakesTheOffsetFromTheRun) { expectDiagonals(*cpu()); }
TEST(ScalarAttributes, TopkTakesTheCountFromTheRun) { expectTopk(*cpu()); }
TEST(ScalarAttributes, RangesTakeBoundsFromTheRun) { expectRanges(*cpu()); }
TEST(ScalarAttributes, DropoutAndClampTakeNumbersFromTheRun) { expectDropout(*cpu()); }

// A fusion of %x: f32[t, h], and the scalars of its runs.
struct ShardedCase {
  const char* scalars;  // with default values, so that inputDescs() needs no others
  const char* statements;
  std::vector<std::vector<Scalar>> runs;
};

// The results of a case on several ranks.
struct CaseResults {
  std::vector<std::vector<testing::RankOutputs>> runs;  // runs[i][rank]
  std::vector<std::string> errors;                      // the error of each rank, or an empty text
};

// Runs the case on each rank, with one executor for all runs. Axis `axis` of %x[t, h] is sharded.
CaseResults runCase(const ShardedCase& one, int ranks, int axis, int64_t t, int64_t h) {
  const Fusion fusion =
      parseFusion(fmt::format("heddle 1\nmesh @m = [x=ranks]\n"
                              "fusion f(%x: f32[t, h] shard(@m, {}: x), {}) {{\n{}}}\n",
                              axis, one.scalars, one.statements));
  HostTensor x(DType::F32, {t, h});
  for (int64_t i = 0; i < t * h; ++i) x.set(i, static_cast<double>(i * 11 % (t * h)));
  CaseResults results;
  results.runs.assign(one.runs.size(),
                      std::vector<testing::RankOutputs>(static_cast<size_t>(ranks)));
  results.errors = testing::onRanks(ranks, [&](comm::World& world) {
    const auto device = cpu();
    FusionExecutor executor(fusion, {device.get(), &world});
    const TensorDesc desc = executor.inputDescs({{"t", t}, {"h", h}})[0];
    const Tensor block = toDevice(*device, device->allocator(), localBlock(x, desc), desc);
    for (size_t run = 0; run < one.runs.size(); ++run) {
      std::vector<Argument> inputs = {block};
      inputs.insert(inputs.end(), one.runs[run].begin(), one.runs[run].end());
      const Outputs outputs = executor.run(inputs);
      outputs.wait();
      testing::RankOutputs& values = results.runs[run][static_cast<size_t>(world.rank())];
      for (size_t i = 0; i < outputs.size(); ++i) {
        const auto& tensor = std::get<Tensor>(outputs[i]);
        values.locals.push_back(toHost(*device, tensor));
        values.descs.push_back(tensor.desc);
      }
    }
    world.barrier();  // the device must outlive the work of the other ranks
  });
  return results;
}

std::vector<double> elementsOf(const HostTensor& tensor) {
  std::vector<double> elements;
  for (int64_t i = 0; i < tensor.numel(); ++i) elements.push_back(toDouble(tensor.at(i)));
  return elements;
}

// Compares the outputs of a run on two ranks with those of one rank: the block of each rank, and
// the tensors that are assembled from the blocks.
void expectEqualRuns(const std::vector<testing::RankOutputs>& got,
                     const std::vector<HostTensor>& expected) {
  for (const testing::RankOutputs& rank : got) {
    ASSERT_EQ(rank.locals.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(rank.descs[i].global, expected[i].sizes) << "output " << i;
      EXPECT_EQ(elementsOf(rank.locals[i]), elementsOf(localBlock(expected[i], rank.descs[i])))
          << "output " << i;
    }
  }
  const std::vector<HostTensor> unsharded = testing::assemble(got);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(elementsOf(unsharded[i]), elementsOf(expected[i])) << "output " << i;
  }
}

// Returns whether an output of the run is sharded.
bool hasShardedOutput(const std::vector<testing::RankOutputs>& ranks) {
  const std::vector<TensorDesc>& descs = ranks[0].descs;
  return std::any_of(descs.begin(), descs.end(),
                     [](const TensorDesc& desc) { return desc.sizes != desc.global; });
}

// Runs the case on one rank and on two ranks. Two ranks divide the sizes 5 and 7 unevenly.
void expectResultOfOneRank(const ShardedCase& one) {
  for (const int axis : {0, 1}) {
    for (const auto& [t, h] : {std::pair<int64_t, int64_t>{4, 6}, {5, 7}}) {
      if (heddle::testing::kSanitized && t == 4) continue;
      SCOPED_TRACE(fmt::format("axis {} of [{}, {}]\n{}", axis, t, h, one.statements));
      const CaseResults expected = runCase(one, 1, axis, t, h);
      const CaseResults got = runCase(one, 2, axis, t, h);
      ASSERT_EQ(expected.errors, std::vector<std::string>(1));
      ASSERT_EQ(got.errors, std::vector<std::string>(2));
      for (size_t run = 0; run < one.runs.size(); ++run) {
        SCOPED_TRACE(fmt::format("run {}", run));
        expectEqualRuns(got.runs[run], expected.runs[run][0].locals);
      }
      EXPECT_TRUE(std::any_of(got.runs.begin(), got.runs.end(), hasShardedOutput));
    }
  }
}

// Expects that every rank reports an error with this text. The error ends the job.
void expectErrorOnTwoRanks(const ShardedCase& one, const std::string& text) {
  for (const int axis : {0, 1}) {
    const std::vector<std::string> errors = runCase(one, 2, axis, 4, 6).errors;
    for (const std::string& error : errors) {
      EXPECT_NE(error.find(text), std::string::npos) << error;
    }
  }
}

// Returns one run for each value.
template <class T>
std::vector<std::vector<Scalar>> runsOf(std::initializer_list<T> values) {
  std::vector<std::vector<Scalar>> runs;
  for (const T value : values) runs.push_back({Scalar(value)});
  return runs;
}

TEST(ScalarAttributes, TwoRanksSelectAsOneRank) {
  ShardedCase one{"%i: i64 = 0",
                  "  %r = select(%x, axis=0, index=%i)\n"
                  "  %c = select(%x, axis=1, index=%i)\n"
                  "  %y = neg(%r)\n  return %y, %r, %c\n",
                  runsOf<int64_t>({0, 3, 1, 2, 0})};
  expectResultOfOneRank(one);
  for (const int64_t wrong : {-1, 4}) {
    one.runs = runsOf<int64_t>({3, wrong});
    expectErrorOnTwoRanks(one, fmt::format("%i = {} is input", wrong));
  }
}

TEST(ScalarAttributes, TwoRanksPadAsOneRank) {
  expectResultOfOneRank({"%a: i64 = 0, %b: i64 = 0",
                         "  %p = pad(%x, 9.0, lows=[%a, %b], highs=[%b, 1])\n"
                         "  %y = neg(%p) shard(@m, 0: x)\n"
                         "  %q = pad(%x, 9.0, lows=[0, %a], highs=[0, %b])\n"
                         "  return %p, %y, %q\n",
                         {{integer(0), integer(0)},
                          {integer(2), integer(1)},
                          {integer(1), integer(3)},
                          {integer(-1), integer(2)},
                          {integer(2), integer(-2)},
                          {integer(-2), integer(-2)},
                          {integer(2), integer(1)}}});
}

// The reciprocal distinguishes -0.0 from 0.0. %x has the element 0.
TEST(ScalarAttributes, TwoRanksShiftAsOneRank) {
  ShardedCase one{"%i: i64 = 0, %j: i64 = 0",
                  "  %n = neg(%x)\n"
                  "  %p = pad(%n, -0.0, lows=[%i, 0], highs=[1 - %i, 0])\n"
                  "  %q = pad(%n, 9.0, lows=[%i, -%i], highs=[-%i, %i])\n"
                  "  %d = pad(%x, 9.0, lows=[%i - %j, 0], highs=[%j - %i, 0])\n"
                  "  %r = reciprocal(%p)\n  %s = reciprocal(%q)\n"
                  "  return %n, %p, %q, %d, %r, %s\n",
                  {}};
  for (const int64_t i : {0, 2, -1, 9}) one.runs.push_back({integer(i), integer(1)});
  expectResultOfOneRank(one);
}

TEST(ScalarAttributes, OverflowOfAShiftIsAnError) {
  expectErrorOnTwoRanks({"%i: i64 = 0, %j: i64 = 0",
                         "  %c = set(%x) shard(@m)\n"
                         "  %d = pad(%c, 9.0, lows=[%i - %j, 0], highs=[%j - %i, 0])\n"
                         "  return %d\n",
                         {{integer(std::numeric_limits<int64_t>::max()), integer(-1)}}},
                        "overflows 64 bits");
}

TEST(ScalarAttributes, TwoRanksComputeRangesAsOneRank) {
  expectResultOfOneRank({"%a: i64 = 0, %b: i64 = 1",
                         "  %r = arange(start=%a, stop=%b, step=3) shard(@m, 0: x)\n"
                         "  %f = arange(start=%b, stop=%a, step=-2, dtype=f32)\n"
                         "  %s = slice_axis(%x, axis=0, start=%a, stop=%b)\n"
                         "  %c = slice_axis(%x, axis=1, start=%a, stop=%b)\n"
                         "  return %r, %f, %s, %c\n",
                         {{integer(-4), integer(9)},
                          {integer(0), integer(3)},
                          {integer(1), integer(4)},
                          {integer(5), integer(2)},
                          {integer(2), integer(2)},
                          {integer(0), integer(40)}}});
}

TEST(ScalarAttributes, TwoRanksComputeTrianglesAsOneRank) {
  expectResultOfOneRank({"%d: i64 = 0",
                         "  %l = tril(%x, diagonal=%d)\n  %u = triu(%x, diagonal=2*%d)\n"
                         "  return %l, %u\n",
                         runsOf<int64_t>({0, 1, -1, 3, -3, 10, -10})});
}

TEST(ScalarAttributes, TwoRanksComputeTopkAsOneRank) {
  ShardedCase one{"%k: i64 = 1",
                  "  %v, %i = topk(%x, k=%k, axis=1, most=3)\n"
                  "  %w, %j = topk(%x, k=%k, axis=0, largest=false, most=4)\n"
                  "  return %v, %i, %w, %j\n",
                  runsOf<int64_t>({1, 3, 0, 2, 3})};
  expectResultOfOneRank(one);
  for (const int64_t wrong : {-1, 4}) {
    one.runs = runsOf<int64_t>({3, wrong});
    expectErrorOnTwoRanks(one, "topk at line");
  }
}

// The ranks draw the random bits of the unsharded tensor.
TEST(ScalarAttributes, TwoRanksDropAndClampAsOneRank) {
  expectResultOfOneRank({"%p: f64 = 0.5",
                         "  %y, %m = dropout(%x, 5, 9, %p)\n"
                         "  %g = dropout_backward(%x, %m, %p)\n"
                         "  %l = clamp(%x, %p, 3.0)\n  %n = clamp(%x, -1.0, %p)\n"
                         "  return %y, %m, %g, %l, %n\n",
                         runsOf<double>({0.5, 0.0, 0.25, 1.0, -1.0, 2.0})});
}

}  // namespace
}  // namespace heddle::host::scalar_attributes_cpu_test
