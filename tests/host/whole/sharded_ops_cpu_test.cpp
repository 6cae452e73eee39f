// Tests that ops along a sharded axis give the results of the unsharded fusion. Sizes, indices and
// random numbers are those of the unsharded tensor.
#include <gtest/gtest.h>

#include "host/compile.h"
#include "host/device/null/null_device.h"
#include "host/plan/bind_inputs.h"
#include "host/tensor.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tests/host/rank_harness.h"
#include "tests/sanitized.h"

namespace heddle::host::sharded_ops_cpu_test {
namespace {

constexpr const char* kReductions = R"(heddle 1
mesh @m = [x=ranks]
fusion reductions(%x: f32[t, c] shard(@m, 1: x), %i: i64[t, c] shard(@m, 0: x)) with t = 5, c = 11 {
  %mean = mean(%x, axes=[1])
  %var, %center = var_mean(%x, axes=[0, 1])
  %top = argmax(%x, axis=1)
  %least = argmin(%i)
  %sums = logsumexp(%x, axes=[1])
  %soft = softmax(%x, axis=1)
  %logs = log_softmax(%x, axis=0)
  %norm = rms_norm(%x, eps=1e-5)
  %any = any(%i, axes=[0])
  %product = prod(%x, axes=[1])
  return %mean, %var, %center, %top, %least, %sums, %soft, %logs, %norm, %any, %product
})";

constexpr const char* kPlaces = R"(heddle 1
mesh @m = [x=ranks]
fusion places(%x: f32[t, c] shard(@m, 1: x), %y: f32[t, c] shard(@m, 0: x), %i: i64[t],
              %j: i64[t, c] shard(@m, 0: x), %seed: i64 = 7, %offset: i64 = 3) with t = 5, c = 11 {
  %rows = index_select(%y, %i, axis=0)
  %columns = index_select(%x, %i, axis=1)
  %picked = take_along_axis(%y, %j, axis=0)
  %wide = cat(%x, %x, axis=1)
  %long = cat(%x, %x, axis=0)
  %turned = flip(%x, axes=[1])
  %lower = tril(%x)
  %sums = cumsum(%x, axis=1)
  %sorted, %order = sort(%x, axis=1)
  %kept, %mask = dropout(%x, %seed, %offset, p=0.3)
  %noise = uniform(%x, %seed, %offset)
  %noisy = add(%noise, %y)
  %part = slice(%x, starts=[1, 2], stops=[t, 9])
  return %rows, %columns, %picked, %wide, %long, %turned, %lower, %sums, %sorted, %order, %kept,
      %mask, %noisy, %part
})";

const std::vector<int> kRanks =
    heddle::testing::kSanitized ? std::vector<int>{3} : std::vector<int>{1, 2, 3, 4};

void check(const char* text, int ranks, int64_t t, int64_t c) {
  const Fusion fusion = parseFusion(text);
  testing::HarnessOptions options;
  options.ranks = ranks;
  options.sizes = {{"t", t}, {"c", c}};
  options.cpu.adversarial_seed = 11;
  const std::vector<HostTensor> got = testing::runProgram(compile(fusion, ranks), options);
  const std::vector<HostTensor> expected = testing::expectedOf(fusion, options);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_LE(testing::relativeError(got[i], expected[i]), 1e-5)
        << "%" << fusion.value(fusion.outputs()[i]).name << " on " << ranks << " ranks, t = " << t
        << ", c = " << c;
  }
}

TEST(ShardedOps, ReductionsMatchTheUnshardedFusion) {
  for (int ranks : kRanks) check(kReductions, ranks, 5, 11);
  check(kReductions, 3, 2, 2);  // fewer elements than ranks
}

TEST(ShardedOps, IndicesMatchTheUnshardedFusion) {
  for (int ranks : kRanks) check(kPlaces, ranks, 5, 11);
  check(kPlaces, 4, 2, 9);
}

// Neither the rows of the reshaped tensor nor the groups divide evenly over three ranks. Of all
// tensors only %x and %y are sharded over three ranks.
TEST(ShardedOps, UnevenReshapesMatchTheUnshardedFusion) {
  constexpr const char* kText = R"(heddle 1
mesh @m = [x=ranks]
fusion splits(%x: f32[t, c] shard(@m, 0: x), %b: f32[t*c], %y: f32[c, 6, t] shard(@m, 1: x),
              %w: f32[6], %z: f32[t, 6] shard(@m, 1: x)) with t = 6, c = 11 {
  %more = add(%b, 1)
  %rows = reshape(%more, sizes=[t, c])
  %places = iota(sizes=[t*c], axis=0)
  %numbers = reshape(%places, sizes=[t, c])
  %twice = mul(%x, %rows)
  %sum = add(%twice, %numbers)
  %grouped = group_norm(%y, %w, groups=2)
  %flat = group_norm(%z, groups=2)
  return %sum, %grouped, %flat
})";
  for (int ranks : kRanks) check(kText, ranks, 4, 11);
  check(kText, 3, 2, 3);
}

// Tests blocks with padding:
// - a view of a tensor that was gathered into uneven blocks
// - an input in a given memory order whose last block has one element
// - a table of zeros that is also needed with another sharding
TEST(ShardedOps, PaddedBlocksMatchTheUnshardedFusion) {
  constexpr const char* kText = R"(heddle 1
mesh @m = [y=2, x=2]
fusion padded(%x: f32[t] shard(@m, 0: [y, x]), %y: f32[c, t] order=[0, 1],
              %w: f32[c, t] shard(@m, 1: [x, y])) with t = 4, c = 11 {
  %more = add(%x, 2.0) shard(@m, 0: y)
  %dot = matmul(%more, %x)
  %long = cat(%y, %y, axis=0) shard(@m, 1: x) order=[0, 1]
  %zeros = zeros(sizes=[t, c]) shard(@m, 1: y)
  %product = matmul(%zeros, %w)
  return %dot, %long, %product
})";
  for (int64_t t : {0, 1, 2, 3, 5, 8}) check(kText, 4, t, 3);
}

// A random op gives the same bits on every mesh.
TEST(ShardedOps, RandomNumbersDoNotDependOnTheMesh) {
  constexpr const char* kText = R"(heddle 1
mesh @m = [x=ranks]
fusion noise(%x: f32[t, c] shard(@m, 0: x), %seed: i64 = 7, %offset: i64 = 3) with t = 6, c = 4 {
  %a = normal(%x, %seed, %offset)
  %b = set(%a) shard(@m, 1: x)
  %kept, %mask = dropout(%b, %seed, %offset, p=0.5)
  return %a, %kept, %mask
})";
  std::vector<HostTensor> first;
  for (int ranks : {1, 2, 3}) {
    const Fusion fusion = parseFusion(kText);
    testing::HarnessOptions options;
    options.ranks = ranks;
    options.sizes = testing::defaultSizes(fusion.size_defaults);
    const auto got = testing::runProgram(compile(fusion, ranks), options);
    if (first.empty()) first = got;
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(testing::relativeError(got[i], first[i]), 0);
  }
}

TEST(ShardedOps, WrongLocalShapeIsReportedWithTheUnshardedShape) {
  const Program program = compile(parseFusion(R"(heddle 1
mesh @m = [x=2]
fusion f(%x: f32[9, 3] shard(@m, 0: x)) {
  %y = neg(%x)
  return %y
})"),
                                  2);
  std::vector<float> data(27);
  Tensor tensor{data.data(), denseDesc(DType::F32, {5, 3}), nullptr};
  tensor.desc.global = {9, 3};
  EXPECT_NO_THROW(bindInputs(program, InputFacts(program), {tensor}, 0, 2));
  try {
    bindInputs(program, InputFacts(program), {tensor}, 1, 2);
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "input %x of global sizes [9, 3]: rank 1 holds the block [4, 3], got [5, 3]");
  }
}

TEST(ShardedOps, InputOfAnotherBlockIsRefused) {
  const Program program = compile(parseFusion(R"(heddle 1
mesh @m = [x=2]
fusion f(%x: f32[8, 3] shard(@m, 0: x)) {
  %y = neg(%x)
  return %y
})"),
                                  2);
  std::vector<float> data(12);
  Tensor tensor{data.data(), denseDesc(DType::F32, {4, 3}), nullptr};
  tensor.desc.global = {8, 3};
  EXPECT_NO_THROW(bindInputs(program, InputFacts(program), {tensor}, 1,
                             2));  // an offset of zeros means: not given
  tensor.desc.offset = {4, 0};
  EXPECT_NO_THROW(bindInputs(program, InputFacts(program), {tensor}, 1, 2));
  try {
    bindInputs(program, InputFacts(program), {tensor}, 0, 2);
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_STREQ(
        error.what(),
        "input %x of global sizes [8, 3]: rank 0 holds the block at [0, 0], got the one at "
        "[4, 0]");
  }
}

// Without the error, elements would arrive with exchanged axes. The cases are a tensor that is sent
// in parts, and another mesh.
TEST(ShardedOps, InputSentInAnotherMemoryOrderIsRefused) {
  struct Way {
    int ranks;
    const char *meshes, *from, *to, *message;
  };
  for (const Way& way :
       {Way{2, "mesh @m = [x=2]", "@m, 2: x", "@m, 0: x", "inputDesc()"},
        Way{2, "mesh @m = [x=1] ranks=[0] mesh @n = [x=1] ranks=[1]", "@m", "@n", "inputDesc()"}}) {
    const Program program =
        compile(parseFusion(fmt::format("heddle 1 {}\nfusion f(%x: f32[4, 4, 6] shard({})) {{\n"
                                        "  %y = set(%x) shard({})\n  return %y\n}}",
                                        way.meshes, way.from, way.to)),
                way.ranks);
    auto worlds = makeInProcessWorldsFor(DeviceKind::Null, way.ranks);
    const auto run = [&](int rank, std::unique_ptr<comm::World>& world) {
      const std::unique_ptr<Device> device = makeNullDevice();
      Executable executable(program, {device.get(), world.get(), nullptr});
      std::vector<float> data(96);
      Tensor tensor{data.data(), inputDesc(program, 0, {}, rank, world->size()), nullptr};
      tensor.desc.strides = stridesFor(tensor.desc.alloc, {2, 1, 0});
      executable.run({tensor}).wait();
    };
    try {
      testing::onEachWorld(worlds, run);
      ADD_FAILURE() << "no error from " << way.from << " to " << way.to;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(way.message), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace heddle::host::sharded_ops_cpu_test
