#include "host/device/cpu/cpu_device.h"
#include "ir/base/check.h"
#include "tests/host/on_ranks.h"
#include "tests/host/sizes/random_sizes.h"
#include "tests/sanitized.h"

namespace heddle::host::random_sizes_cpu_test {
namespace {

using random_sizes::Arguments;
using random_sizes::Case;
using random_sizes::Choices;
using random_sizes::kCaseCount;

// The parameter is one of kParts parts of the sequences. All sequences of a part run the same case.
// ctest runs the parts at the same time.
class RandomSizes : public ::testing::TestWithParam<int> {
 public:
  static constexpr int kParts = 4 * kCaseCount;
};

TEST_P(RandomSizes, EveryResultEqualsThatOfANewExecutor) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  random_sizes::expectRandomSizes(*device, GetParam(), kParts, heddle::testing::casesOf(1200, 12),
                                  4);
}

// Returns this rank's block of %x, whose axis 0 is sharded.
HostTensor blockOf(const Arguments& arguments, const TensorDesc& desc, int64_t first) {
  const HostTensor all = random_sizes::valuesOf(arguments);
  HostTensor block(DType::F32, desc.sizes);
  for (int64_t i = 0; i < block.numel(); ++i) {
    block.set(i, toDouble(all.at(first * arguments.h + i)));
  }
  return block;
}

// Returns a fusion whose input is sharded over two ranks. A reshape of an axis that does not divide
// evenly is an error, so the input is gathered before a reshape.
Fusion shardedFusionOf(const Case& one) {
  const std::string statements = one.statements;
  const bool gathers = statements.find("reshape(") != std::string::npos;
  return parseFusion(
      fmt::format("heddle 1\nmesh @m = [x=2]\n"
                  "fusion f(%{}: f32[t, h] shard(@m, 0: x), %n: i64, %m: i64) {{\n{}{}\n}}\n",
                  gathers ? "s" : "x", gathers ? "  %x = set(%s) shard(@m)\n" : "", statements));
}

// Runs one sequence on this rank. All ranks choose the same arguments.
void runSharded(const Case& one, comm::World& world, uint64_t seed) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  const Fusion fusion = shardedFusionOf(one);
  FusionExecutor executor(fusion, {device.get(), &world});
  Choices choices(seed);
  std::vector<Arguments> earlier;
  for (int run = 0; run < 4; ++run) {
    Arguments next = run == 2 ? earlier.front() : Arguments();
    if (run != 2) {
      next.t = choices.between(0, 5);
      next.h = choices.between(1, 4);
      std::tie(next.n, next.m) = one.choose(choices, next.t, next.h);
      earlier.push_back(next);
    }
    const SizeBindings sizes{{"t", next.t}, {"h", next.h}, {"%n", next.n}, {"%m", next.m}};
    const std::string where = fmt::format("seed {}, run {}: x[{}, {}], n = {}, m = {}", seed, run,
                                          next.t, next.h, next.n, next.m);
    const TensorDesc desc = executor.inputDescs(sizes)[0];
    const HostTensor block = blockOf(next, desc, world.rank() * ((next.t + 1) / 2));
    const std::vector<Argument> inputs = {toDevice(*device, device->allocator(), block, desc),
                                          Scalar(next.n), Scalar(next.m)};
    const Outputs outputs = executor.run(inputs);
    outputs.wait();
    FusionExecutor fresh(fusion, {device.get(), &world});
    const Outputs expected = fresh.run(inputs);
    expected.wait();
    for (size_t i = 0; i < outputs.size(); ++i) {
      const auto& tensor = std::get<Tensor>(outputs[i]);
      EXPECT_EQ(tensor.desc.sizes, std::get<Tensor>(expected[i]).desc.sizes) << where;
      random_sizes::expectEqual(toHost(*device, tensor),
                                toHost(*device, std::get<Tensor>(expected[i])), where);
    }
  }
}

TEST_P(RandomSizes, ShardedResultsEqualThoseOfANewExecutor) {
  const Case& one = random_sizes::kCases[GetParam() % kCaseCount];
  if (one.broadcasts) GTEST_SKIP() << "a sharded axis cannot be symbolic";
  const int sequences = heddle::testing::casesOf(120, 4);
  for (int i = GetParam(); i < sequences && !HasFailure(); i += kParts) {
    const std::vector<std::string> errors = testing::onRanks(
        2, [&](comm::World& world) { runSharded(one, world, static_cast<uint64_t>(i)); });
    for (const std::string& error : errors) EXPECT_EQ(error, "") << "seed " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, RandomSizes, ::testing::Range(0, RandomSizes::kParts));

}  // namespace
}  // namespace heddle::host::random_sizes_cpu_test
