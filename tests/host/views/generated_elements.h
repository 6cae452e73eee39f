#pragma once

#include "tests/host/views/generated_operands.h"

// Tests kernels that compute elements of a generated value at other indices than their own. The
// value needs no memory (ir/passes/take_generated.h).
namespace heddle::host::generated_operands {

inline constexpr int64_t kMany = 3'000'000;

inline HostTensor indexTensor(const std::vector<int64_t>& sizes,
                              const std::vector<int64_t>& index) {
  HostTensor host(DType::I64, sizes);
  for (size_t i = 0; i < index.size(); ++i) host.set(static_cast<int64_t>(i), index[i]);
  return host;
}

// Tests index tensors with one element along an axis, and axes whose extent may be 1.
inline void expectTakeAtOneIndex(Device& device) {
  Runner runner(device);
  const auto tensor = [&](const std::vector<int64_t>& sizes, const std::vector<int64_t>& index) {
    return toDevice(device, device.allocator(), indexTensor(sizes, index),
                    denseDesc(DType::I64, sizes));
  };
  EXPECT_EQ(runner.run("fusion f(%i: i64[1], %n: i64) {\n  %t = iota(sizes=[%n], axis=0)\n"
                       "  %y = take(%t, %i, axis=0)\n  return %y\n}\n",
                       {tensor({1}, {17}), integer(kMany)}),
            std::vector<double>{17});
  EXPECT_LE(runner.peakBytes(), kSmall);
  const std::string open =
      "fusion f(%i: i64[k?, 3], %n: i64) {\n  %a = iota(sizes=[%n, 3], axis=0)\n"
      "  %b = iota(sizes=[%n, 3], axis=1)\n  %c = mul(%a, 10)\n  %t = add(%c, %b)\n"
      "  %y = take_along_axis(%t, %i, axis=0)\n  return %y\n}\n";
  EXPECT_EQ(runner.run(open, {tensor({1, 3}, {5, -1, kMany}), integer(kMany)}),
            (std::vector<double>{50, 0, 0}));
  EXPECT_LE(runner.peakBytes(), kSmall);
  EXPECT_EQ(runner.run(open, {tensor({2, 3}, {5, 6, 7, 0, 1, 2}), integer(kMany)}),
            (std::vector<double>{50, 61, 72, 0, 11, 22}));
  EXPECT_LE(runner.peakBytes(), kSmall);
}

// Tests takes whose index is generated too.
inline void expectTakeAtGeneratedIndices(Device& device) {
  Runner runner(device);
  EXPECT_EQ(runner.run("fusion f(%n: i64, %k: i64) {\n  %t = iota(sizes=[%n, 3], axis=1)\n"
                       "  %j = arange(stop=%k)\n  %g = take(%t, %j, axis=0)\n"
                       "  %i = full(2, sizes=[%k, 3], dtype=i64)\n"
                       "  %h = take_along_axis(%g, %i, axis=1)\n  return %h\n}\n",
                       {integer(kMany), integer(7)}),
            std::vector<double>(21, 2));
  EXPECT_LE(runner.peakBytes(), kSmall);
}

// Tests sums of generated values whose elements another op moves.
inline void expectSumsOfMovedElements(Device& device) {
  Runner runner(device);
  const double n = kMany;
  const double all = n * (n - 1) / 2;
  const std::vector<std::pair<std::string, double>> cases = {
      {"flip(%t, axes=[0])", all},
      {"pad(%t, 7, lows=[2], highs=[1])", all + 3 * 7},
      {"pad(%t, 7, lows=[-2], highs=[0])", all - 1},
      {"cat(%t, %u, axis=0)", all + 2 * n},
      {"reshape(%t, sizes=[-1, 1000])", all},
      {"slice_axis(%t, axis=0, start=10)", all - 45},
      {"set(%t)", all}};
  for (const auto& [op, sum] : cases) {
    const std::string text =
        "fusion f(%n: i64) {\n  %t = iota(sizes=[%n], axis=0)\n"
        "  %u = full(2, sizes=[%n], dtype=i64)\n  %m = " +
        op + "\n  %y = sum(%m)\n  return %y\n}\n";
    EXPECT_EQ(runner.run(text, {integer(kMany)}), std::vector<double>{sum}) << op;
    EXPECT_LE(runner.peakBytes(), kSmall) << op;
  }
}

// Tests a sum over a cat in which only one piece is in memory.
inline void expectSumOfMixedCat(Device& device) {
  Runner runner(device);
  const std::string text =
      "fusion f(%x: f32[3], %n: i64) {\n  %t = full(2, sizes=[%n], dtype=f32)\n"
      "  %c = cat(%t, %x, axis=0)\n  %y = sum(%c)\n  return %y\n}\n";
  EXPECT_EQ(runner.run(text, {runner.floats(3, 1, 1), integer(kMany)}),
            std::vector<double>{2.0 * kMany + 6});
  EXPECT_LE(runner.peakBytes(), kSmall);
}

// Tests takes of a job of several ranks. No rank stores a table, and the elements do not depend on
// the number of ranks. The second output is a reduction of the same table.
inline void expectShardedTakes(DeviceKind kind) {
  for (const std::string table : {"shard(@m)", "shard(@m, 0: x)", ""}) {
    for (const std::string index : {"shard(@m)", "shard(@m, 0: x)"}) {
      const Fusion fusion = parseFusion(
          "heddle 1\nmesh @m = [x=ranks]\n"
          "fusion f(%i: i64[5] " +
          index +
          ", %n: i64 = 3000000, %seed: i64 = 7) {\n"
          "  %t = iota(sizes=[%n], axis=0) " +
          table +
          "\n  %q = take(%t, %i, axis=0)\n"
          "  %b = ge(%t, 5)\n  %s = sum(%b)\n"
          "  %u = uniform(%seed, 0, sizes=[%n, 2]) " +
          table +
          "\n"
          "  %r = take(%u, %i, axis=0)\n  return %q, %s, %r\n}\n");
      std::vector<double> random;  // of one rank
      for (const int ranks : {1, 2, 3, 4}) {
        testing::HarnessOptions options;
        options.ranks = ranks;
        options.kind = kind;
        options.sizes = {{"%n", kMany}};
        options.scalars["n"] = kMany;
        options.tensors["i"] = indexTensor({5}, {0, 17, kMany - 1, 1'500'000, 3});
        options.take_stats = [&](const Executable::Stats& stats) {
          EXPECT_LE(stats.peak_bytes, kSmall) << ranks << table << index;
        };
        const std::vector<HostTensor> got = testing::runProgram(compile(fusion, ranks), options);
        for (int64_t k = 0; k < 5; ++k) {
          EXPECT_EQ(toDouble(got[0].at(k)), toDouble(options.tensors["i"].at(k))) << ranks;
        }
        EXPECT_EQ(toDouble(got[1].at(0)), static_cast<double>(kMany - 5)) << ranks;
        for (int64_t k = 0; k < 10; ++k) {
          const double value = toDouble(got[2].at(k));
          if (ranks == 1) random.push_back(value);
          EXPECT_EQ(value, random.at(static_cast<size_t>(k))) << ranks << table << index;
        }
      }
    }
  }
}

}  // namespace heddle::host::generated_operands
