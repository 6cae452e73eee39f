#pragma once

#include <gtest/gtest.h>

#include <random>

#include "host/fusion_executor.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"
#include "tests/host/rank_harness.h"

// Tests reshapes whose sizes are scalars of a run: splits, merges and both. The expected values
// follow from NumPy: x.reshape(sizes).sum(axis), computed by loops over flat indices.
namespace heddle::host::reshapes {

using testing::deviceFloats;
using testing::floatsOf;
using testing::ramp;
using testing::userErrorOf;
using Sizes = std::vector<int64_t>;

inline Fusion fusionOf(const std::string& text) { return parseFusion("heddle 1\n" + text); }

inline Scalar integer(int64_t value) { return Scalar(value); }

inline int64_t product(const Sizes& sizes) {
  int64_t n = 1;
  for (int64_t size : sizes) n *= size;
  return n;
}

// Returns x.reshape(sizes).sum(axis=1) of x = 0, 1, 2, ...
inline std::vector<float> sumsOverAxis1(const Sizes& sizes) {
  const int64_t inner = product(Sizes(sizes.begin() + 2, sizes.end()));
  std::vector<float> sums(static_cast<size_t>(sizes[0] * inner), 0.0F);
  for (int64_t flat = 0; flat < product(sizes); ++flat) {
    const int64_t row = flat / inner / sizes[1];
    sums[static_cast<size_t>(row * inner + flat % inner)] += static_cast<float>(flat);
  }
  return sums;
}

inline std::vector<Argument> argumentsOf(Device& device, const Sizes& shape, const Sizes& scalars) {
  std::vector<Argument> arguments = {
      deviceFloats(device, ramp(static_cast<size_t>(product(shape)), 0, 1), shape)};
  for (int64_t scalar : scalars) arguments.emplace_back(integer(scalar));
  return arguments;
}

// Runs %y = reshape(%x, sizes=[...]), %s = sum(%y, axes=[1]), and compares the sizes of %y and the
// elements of %s.
inline void expectReshape(FusionExecutor& executor, Device& device, const Sizes& shape,
                          const Sizes& scalars, const Sizes& expected) {
  const Outputs outputs = executor.run(argumentsOf(device, shape, scalars));
  outputs.wait();
  EXPECT_EQ(std::get<Tensor>(outputs[0]).desc.sizes, expected);
  EXPECT_EQ(floatsOf(device, outputs[0]), ramp(static_cast<size_t>(product(shape)), 0, 1));
  EXPECT_EQ(floatsOf(device, outputs[1]), sumsOverAxis1(expected));
}

inline Fusion reshapeOf(const std::string& shape, const std::string& sizes) {
  return fusionOf("fusion f(%x: f32[" + shape + "], %n: i64, %m: i64) {\n  %r = relu(%x)\n" +
                  "  %y = reshape(%r, sizes=[" + sizes + "])\n  %s = sum(%y, axes=[1])\n" +
                  "  return %y, %s\n}\n");
}

inline void expectSplitsAndMerges(Device& device) {
  FusionExecutor split(reshapeOf("a, b", "a, %n, %m"), {&device});
  expectReshape(split, device, {8, 15}, {3, 5}, {8, 3, 5});
  expectReshape(split, device, {8, 15}, {5, -1}, {8, 5, 3});
  FusionExecutor merge(reshapeOf("a, b, c", "a, %n"), {&device});
  expectReshape(merge, device, {8, 3, 5}, {15, 0}, {8, 15});
  expectReshape(merge, device, {2, 1, 5}, {-1, 0}, {2, 5});
  FusionExecutor both(reshapeOf("a, b, c, d", "a, %n, %m, d"), {&device});
  expectReshape(both, device, {8, 15, 7, 9}, {3, 35}, {8, 3, 35, 9});
  expectReshape(both, device, {8, 15, 7, 9}, {3, -1}, {8, 3, 35, 9});
  expectReshape(both, device, {8, 15, 7, 9}, {-1, 5}, {8, 21, 5, 9});
  expectReshape(both, device, {2, 4, 6, 3}, {6, 4}, {2, 6, 4, 3});
}

// Tests that scalars share a program if they give the same splits and merges.
inline void expectProgramsByStructure(Device& device) {
  FusionExecutor executor(reshapeOf("a, b, c, d", "a, %n, %m, d"), {&device});
  const Sizes shape = {2, 15, 7, 3};
  for (int repeat = 0; repeat < 2; ++repeat) {
    expectReshape(executor, device, shape, {3, 35}, {2, 3, 35, 3});
    expectReshape(executor, device, shape, {5, -1}, {2, 5, 21, 3});
    EXPECT_EQ(executor.stats().programs, repeat == 0 ? 1 : 3);
    expectReshape(executor, device, shape, {15, 7}, {2, 15, 7, 3});  // the sizes of the input
    expectReshape(executor, device, shape, {21, -1},
                  {2, 21, 5, 3});  // a merge and a split; -1 is 5
    EXPECT_EQ(executor.stats().programs, 3);
  }
  expectReshape(executor, device, {2, 6, 7, 3}, {2, 21}, {2, 2, 21, 3});  // the splits of {3, 35}
  EXPECT_EQ(executor.stats().programs, 3);
}

inline void expectErrorsOfInvalidValues(Device& device) {
  FusionExecutor executor(reshapeOf("a, b, c, d", "a, %n, %m, d"), {&device});
  const Sizes shape = {2, 15, 7, 3};
  const auto error = [&](const Sizes& scalars) {
    return userErrorOf([&] { executor.run(argumentsOf(device, shape, scalars)).wait(); });
  };
  for (int repeat = 0; repeat < 2; ++repeat) {  // with and without a program in the cache
    EXPECT_NE(error({4, -1}).find("is not a multiple of"), std::string::npos) << error({4, -1});
    EXPECT_NE(error({4, 5}).find("elements of %r"), std::string::npos) << error({4, 5});
    EXPECT_NE(error({-1, -1}).find("2 of the sizes %n, %m are -1"), std::string::npos);
    EXPECT_NE(error({-3, 35}).find("%n is -3, expected -1 or more"), std::string::npos);
    expectReshape(executor, device, shape, {3, 35}, {2, 3, 35, 3});
  }
}

// Tests that an expression with the value -1 is an error. heddle must not compute a size for it.
inline void expectErrorsOfNegativeExpressions(Device& device) {
  FusionExecutor reshaped(reshapeOf("a, b", "a, %n - 3, %m - 3"), {&device});
  FusionExecutor expanded(fusionOf("fusion f(%x: f32[1, b], %n: i64, %m: i64) {\n"
                                   "  %y = expand(%x, sizes=[%n - 3, %m - 3])\n"
                                   "  %z = add(%y, 1.0)\n  return %z\n}\n"),
                          {&device});
  const auto error = [&](FusionExecutor& executor, const Sizes& shape, const Sizes& scalars) {
    return userErrorOf([&] { executor.run(argumentsOf(device, shape, scalars)).wait(); });
  };
  for (int repeat = 0; repeat < 2; ++repeat) {  // with and without a program in the cache
    EXPECT_EQ(error(reshaped, {8, 15}, {2, 18}),
              "size 1 of reshape at line 4: %n - 3 is -1, expected 0 or more (%n = 2 is input %n)");
    EXPECT_EQ(error(reshaped, {8, 15}, {18, 2}),
              "size 2 of reshape at line 4: %m - 3 is -1, expected 0 or more (%m = 2 is input %m)");
    EXPECT_EQ(error(expanded, {1, 4}, {2, 7}),
              "size 0 of expand at line 3: %n - 3 is -1, expected 0 or more (%n = 2 is input %n)");
    EXPECT_EQ(error(expanded, {1, 4}, {5, 2}),
              "size 1 of expand at line 3: %m - 3 is -1, expected 0 or more (%m = 2 is input %m)");
    expectReshape(reshaped, device, {8, 15}, {6, 8}, {8, 3, 5});
    const Outputs outputs = expanded.run(argumentsOf(device, {1, 4}, {5, 7}));
    outputs.wait();
    EXPECT_EQ(floatsOf(device, outputs[0]), (std::vector<float>{1, 2, 3, 4, 1, 2, 3, 4}));
  }
}

inline void expectReshapesWithoutElements(Device& device) {
  FusionExecutor executor(reshapeOf("a, b, c, d", "a, %n, %m, d"), {&device});
  expectReshape(executor, device, {2, 0, 7, 3}, {5, 0}, {2, 5, 0, 3});
  expectReshape(executor, device, {2, 0, 7, 3}, {0, 4}, {2, 0, 4, 3});
  expectReshape(executor, device, {2, 4, 6, 0}, {6, 4}, {2, 6, 4, 0});
}

// Tests random shapes and divisors with one executor, which uses its programs again for other
// sizes.
inline void expectRandomValues(Device& device) {
  FusionExecutor executor(reshapeOf("a, b, c", "%n, %m, -1"), {&device});
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    Sizes shape;
    for (int axis = 0; axis < 3; ++axis) shape.push_back(static_cast<int64_t>(random() % 6) + 1);
    const auto divisorOf = [&](int64_t value) {
      int64_t divisor = static_cast<int64_t>(random()) % value + 1;
      while (value % divisor != 0) --divisor;
      return divisor;
    };
    const int64_t n = divisorOf(product(shape));
    const int64_t m = divisorOf(product(shape) / n);
    expectReshape(executor, device, shape, {n, m}, {n, m, product(shape) / n / m});
  }
}

// Tests that both ranks choose the same program. They share the rows of %x. Only the scalars
// change.
inline void expectRanksDecideTheSame(DeviceKind kind) {
  const Fusion fusion = fusionOf(
      "mesh @m = [x=ranks]\n"
      "fusion f(%x: f32[t, h] shard(@m, 0: x), %n: i64) {\n"
      "  %r = relu(%x)\n  %y = reshape(%r, sizes=[%n, -1])\n  %s = sum(%y, axes=[1])\n"
      "  return %s shard(@m)\n}\n");
  testing::HarnessOptions options;
  options.kind = kind;
  auto worlds = makeInProcessWorldsFor(kind, 2);
  testing::onEachWorld(worlds, [&](int rank, const std::unique_ptr<comm::World>& world) {
    const auto device = testing::makeTestDevice(options);
    FusionExecutor executor(fusion, {device.get(), world.get()});
    Tensor x = deviceFloats(*device, ramp(24, 24 * static_cast<float>(rank), 1), {6, 4});
    x.desc.global = {12, 4};
    for (const int64_t n : {6, 2, 12, 24, 8, 16, 6}) {
      const Outputs outputs = executor.run({x, integer(n)});
      outputs.wait();
      EXPECT_EQ(floatsOf(*device, outputs[0]), sumsOverAxis1({n, 48 / n})) << n;
    }
    world->barrier();  // the device must outlive the work of the other rank
  });
}

}  // namespace heddle::host::reshapes
