// Tests runs in which the values of scalars decide sizes, on the CPU device. The expected values
// follow from the definitions of the ops in NumPy.
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <thread>

#include "host/device/cpu/cpu_device.h"
#include "host/device/null/null_device.h"
#include "host/fusion_executor.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"
#include "tests/host/on_ranks.h"

namespace heddle::host::size_inputs_cpu_test {
namespace {

using testing::deviceFloats;
using testing::floatsOf;
using testing::onRanks;
using testing::programOf;
using testing::ramp;
using testing::userErrorOf;

Fusion fusionOf(const std::string& text) { return parseFusion("heddle 1\n" + text); }

std::unique_ptr<Device> cpu() { return makeCpuDevice({.threads = 1, .adversarial_seed = {}}); }

Scalar integer(int64_t value) { return value; }

std::vector<int64_t> sizesOf(const Argument& output) { return std::get<Tensor>(output).desc.sizes; }

int64_t product(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

// Each pair is a shape and the shape to which it is reshaped. A reshape keeps the row-major order
// of the elements. Cases are counted from 1. Cases 1, 2 and 4 have the same splits and merges, so
// they share a program. Cases 3 and 9 share one too: case 3 keeps all axes, and case 9 has no
// elements. Every new shape or value needs a plan.
TEST(SizeInputs, ReshapeTakesSizesFromScalars) {
  const auto device = cpu();
  FusionExecutor executor(
      fusionOf("fusion f(%x: f32[a, b, c, d], %p: i64, %q: i64, %r: i64, %s: i64) {\n"
               "  %z = reshape(%x, sizes=[%p, %q, %r, %s])\n"
               "  %y = add(%z, 1.0)\n  return %y\n}\n"),
      {device.get()});
  using Sizes = std::vector<int64_t>;
  const std::vector<std::pair<Sizes, Sizes>> cases = {
      {{8, 3 * 5, 7, 9}, {8, 3, 5 * 7, 9}},  // a split and a merge
      {{8, 3 * 5, 7, 9}, {8, 3, -1, 9}},     // the same sizes
      {{8, 3 * 5, 7, 9}, {8, 3 * 5, 7, -1}}, {{8, 3 * 5, 7, 9}, {8, 5, 3 * 7, 9}},
      {{8, 3, 5 * 7, 9}, {8, 3 * 5, 7, 9}},  {{3, 5, 2, 4}, {15, 8, 1, 1}},
      {{3, 5, 2, 4}, {-1, 1, 1, 120}},       {{6, 2, 1, 1}, {2, 3, 2, -1}},
      {{6, 0, 1, 1}, {2, 3, 0, 5}},
  };
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (const auto& [from, to] : cases) {
      const auto values = ramp(static_cast<size_t>(product(from)), 0, 1);
      const Outputs outputs = executor.run({deviceFloats(*device, values, from), integer(to[0]),
                                            integer(to[1]), integer(to[2]), integer(to[3])});
      outputs.wait();
      Sizes expected = to;
      for (int64_t& size : expected) {
        if (size == -1) size = product(from) / -product(to);
      }
      EXPECT_EQ(sizesOf(outputs[0]), expected);
      EXPECT_EQ(floatsOf(*device, outputs[0]), ramp(values.size(), 1, 1));
    }
  }
  EXPECT_EQ(executor.stats().programs, static_cast<int64_t>(cases.size()) - 3);
  EXPECT_EQ(executor.stats().plans, static_cast<int64_t>(cases.size()));
}

// Covers numpy.pad, numpy.repeat along axis 0, slices, numpy.full and numpy.arange.
TEST(SizeInputs, ValuesChangeWhileInputShapesDoNot) {
  const auto device = cpu();
  FusionExecutor executor(fusionOf("fusion f(%x: f32[t], %n: i64 = 1) {\n"
                                   "  %slice = slice(%x, starts=[%n], stops=[t])\n"
                                   "  %repeat = repeat(%x, repeats=[%n])\n"
                                   "  %full = full(2.0, sizes=[%n, 2], dtype=f32)\n"
                                   "  %range = iota(sizes=[2*%n], axis=0)\n"
                                   "  %e = sum(%x, axes=[0], keepdim=true)\n"
                                   "  %expand = expand(%e, sizes=[%n])\n"
                                   "  return %slice, %repeat, %full, %range, %expand\n}\n"),
                          {device.get()});
  const Tensor x = deviceFloats(*device, {1, 2, 3, 4}, {4});
  for (const int64_t n : {1, 3, 2, 3, 0, 4, 1}) {
    const Outputs outputs = executor.run({x, integer(n)});
    outputs.wait();
    const auto count = static_cast<size_t>(n);
    EXPECT_EQ(floatsOf(*device, outputs[0]), ramp(4 - count, static_cast<float>(n + 1), 1));
    std::vector<float> repeated;
    for (size_t i = 0; i < 4 * count; ++i) repeated.push_back(static_cast<float>(i % 4 + 1));
    EXPECT_EQ(floatsOf(*device, outputs[1]), repeated);
    EXPECT_EQ(floatsOf(*device, outputs[2]), std::vector<float>(2 * count, 2.0F));
    const HostTensor range = toHost(*device, std::get<Tensor>(outputs[3]));
    EXPECT_EQ(range.sizes, (std::vector<int64_t>{2 * n}));
    for (int64_t i = 0; i < 2 * n; ++i) EXPECT_EQ(range.at(i), Scalar(i));
    EXPECT_EQ(floatsOf(*device, outputs[4]), std::vector<float>(count, 10.0F));
  }
  EXPECT_EQ(sizesOf(executor.run({x})[2]), (std::vector<int64_t>{1, 2}));  // the default of %n
  EXPECT_EQ(executor.stats().programs, 1);
}

TEST(SizeInputs, PadTakesWidthsFromScalars) {
  const auto device = cpu();
  FusionExecutor executor(fusionOf("fusion f(%x: f32[t], %low: i64, %high: i64) {\n"
                                   "  %p = pad(%x, 9.0, lows=[%low], highs=[%high])\n"
                                   "  %y = mul(%p, 2.0)\n  return %y\n}\n"),
                          {device.get()});
  const Tensor x = deviceFloats(*device, {1, 2, 3}, {3});
  const auto padded = [&](int64_t low, int64_t high) {
    const Outputs outputs = executor.run({x, integer(low), integer(high)});
    outputs.wait();
    return floatsOf(*device, outputs[0]);
  };
  EXPECT_EQ(padded(1, 2), (std::vector<float>{18, 2, 4, 6, 18, 18}));
  EXPECT_EQ(padded(-1, 1), (std::vector<float>{4, 6, 18}));
  EXPECT_EQ(padded(1, 2), (std::vector<float>{18, 2, 4, 6, 18, 18}));
  EXPECT_EQ(padded(-2, -1), std::vector<float>());
  EXPECT_NE(userErrorOf([&] { padded(-2, -2); }).find("axis 0 of %x: f32[t] after pad"),
            std::string::npos);
}

TEST(SizeInputs, WrongValuesAreErrorsAndTheNextRunWorks) {
  const auto device = cpu();
  FusionExecutor executor(fusionOf("fusion f(%x: f32[t], %n: i32) {\n"
                                   "  %y = reshape(%x, sizes=[%n, -1])\n  return %y\n}\n"),
                          {device.get()});
  const Tensor x = deviceFloats(*device, ramp(12, 0, 1), {12});
  const auto error = [&](const Scalar& n) {
    return userErrorOf([&] { executor.run({x, n}).wait(); });
  };
  for (int repeat = 0; repeat < 2; ++repeat) {  // with and without a program in the cache
    EXPECT_EQ(error(integer(5)),
              "elements of %x: f32[t] before and after reshape at line 3: t = 12 is not a multiple "
              "of %n = 5, so the size -1 has no value (t = 12 is axis 0 of %x, %n = 5 is input "
              "%n)");
    EXPECT_NE(error(integer(-4)).find("size 0 of reshape"), std::string::npos);
    EXPECT_EQ(error(3.0), "input 1 (%n) decides a size, so it must be an integer, got 3");
    EXPECT_EQ(
        error(int64_t{1} << 40),
        "input 1 (%n) decides a size, but its value 1099511627776 is outside the range of i32");
    EXPECT_EQ(error(integer(4)), "");
  }
  EXPECT_EQ(userErrorOf([&] { executor.run({x}); }),
            "input 1 (%n) decides a size, but the run has 1 input(s)");
}

// A tensor without axes decides sizes if its value is in host memory. Only its value changes here.
TEST(SizeInputs, HostTensorDecidesSizes) {
  const auto device = cpu();
  FusionExecutor executor(fusionOf("fusion f(%n: i64[]) {\n  %k = add(%n, 1)\n"
                                   "  %z = full(1.0, sizes=[%k], dtype=f32)\n"
                                   "  %y = mul(%z, %n)\n  return %y\n}\n"),
                          {device.get()});
  HostTensor value(DType::I64, {});
  Tensor argument{value.data.get(), denseDesc(DType::I64, {}), nullptr};
  argument.in_host_memory = true;
  for (const int64_t n : {3, 5, 3}) {
    value.set(0, n);
    const Outputs outputs = executor.run({argument});
    outputs.wait();
    EXPECT_EQ(floatsOf(*device, outputs[0]),
              std::vector<float>(static_cast<size_t>(n) + 1, static_cast<float>(n)));
  }
  const Tensor on_device = toDevice(*device, device->allocator(), value, argument.desc);
  EXPECT_EQ(userErrorOf([&] { executor.run({on_device}); }),
            "input 0 (%n) decides a size, so it must be in host memory");
}

// A host program can use %n too. Only the scalar changes between the runs.
TEST(SizeInputs, HostProgramUsesScalarsInSizes) {
  const Program program = programOf(R"(kernel @k {
  fusion k() {
    %c = constant(3.0)
    %y = full(%c, sizes=[%n, 2], dtype=f32)
    return %y
  }
}
program p(%x: f32[t], %n: i64) -> (%y, %z, %s) {
  guard 0 <= %n "rows"
  guard %n <= t "rows and elements of %x"
  slot %y: f32[%n, 2]
  slot %z: f32[t - %n]
  slot %s: i64
  %y = allocate stream=0
  launch @k() -> (%y) stream=0
  %z = alias %x slice starts=[%n] stops=[t]
  %s = evaluate 2*%n + t
}
)");
  EXPECT_TRUE(sameProgram(program, parseProgram(print(program), "again")));
  const auto device = cpu();
  Executable executable(program, {device.get()});
  const Tensor x = deviceFloats(*device, {1, 2, 3}, {3});
  for (const int64_t n : {1, 2, 0, 2}) {
    const Outputs outputs = executable.run({x, integer(n)});
    outputs.wait();
    EXPECT_EQ(sizesOf(outputs[0]), (std::vector<int64_t>{n, 2}));
    EXPECT_EQ(floatsOf(*device, outputs[0]), std::vector<float>(static_cast<size_t>(2 * n), 3.0F));
    EXPECT_EQ(floatsOf(*device, outputs[1]),
              ramp(static_cast<size_t>(3 - n), static_cast<float>(n + 1), 1));
    EXPECT_EQ(std::get<Scalar>(outputs[2]), integer(2 * n + 3));
  }
  EXPECT_EQ(executable.stats().plans, 3);
  EXPECT_EQ(userErrorOf([&] {
              executable.run({x, integer(4)});
            }),
            "rows and elements of %x: %n = 4 must be at most t = 3 (%n = 4 is input 1 (%n), t = 3 "
            "is axis 0 of %x)");
}

TEST(SizeInputs, NullDeviceMakesOnePlanPerValue) {
  const auto device = makeNullDevice();
  FusionExecutor executor(fusionOf("fusion f(%x: f32[t], %n: i64) {\n"
                                   "  %a = slice(%x, starts=[0], stops=[%n])\n"
                                   "  %y = exp(%a)\n  return %y\n}\n"),
                          {device.get()});
  for (const int64_t n : {4, 2, 4, 3, 2}) {
    const Outputs outputs = executor.run({testing::nullTensor({8}), integer(n)});
    EXPECT_EQ(sizesOf(outputs[0]), (std::vector<int64_t>{n}));
  }
  EXPECT_EQ(executor.stats().plans, 3);
  EXPECT_EQ(executor.stats().programs, 1);
}

// The rows of %x are split over two ranks. The slice needs rows of both.
TEST(SizeInputs, RanksUseScalarsInSizes) {
  const Fusion fusion = fusionOf(
      "mesh @m = [x=ranks]\n"
      "fusion f(%x: f32[t, 2] shard(@m, 0: x), %n: i64, %k: i64) {\n"
      "  %c = full(1.0, sizes=[%n, 2], dtype=f32)\n"
      "  %y = add(%x, %c)\n"
      "  %z = slice(%x, starts=[%k, 0], stops=[%k + 2, 2])\n"
      "  %w = add(%z, %z)\n"
      "  return %y shard(@m, 0: x), %w shard(@m)\n}\n");
  const auto errors = onRanks(2, [&](comm::World& world) {
    const auto device = cpu();
    FusionExecutor executor(fusion, {device.get(), &world});
    for (const auto& [rows, k] : {std::pair{4, 1}, {4, 2}, {6, 1}, {4, 1}}) {
      const int64_t half = rows / 2, begin = world.rank() * half;
      TensorDesc desc = denseDesc(DType::F32, {half, 2});
      desc.global = {rows, 2};
      HostTensor block(DType::F32, desc.sizes);
      for (int64_t i = 0; i < block.numel(); ++i) {
        block.as<float>()[i] = static_cast<float>(2 * begin + i);
      }
      const Outputs outputs = executor.run(
          {toDevice(*device, device->allocator(), block, desc), integer(rows), integer(k)});
      outputs.wait();
      const auto elements = static_cast<size_t>(rows);
      EXPECT_EQ(floatsOf(*device, outputs[0]),
                ramp(elements, static_cast<float>(2 * begin + 1), 1));
      EXPECT_EQ(floatsOf(*device, outputs[1]), ramp(4, static_cast<float>(4 * k), 2));
    }
    EXPECT_EQ(executor.stats().programs, 1);
    EXPECT_EQ(executor.stats().plans, 2);  // %k decides only where the slice begins
    world.barrier();
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

// The ranks need one program and one order of collectives, so their scalars must be equal.
TEST(SizeInputs, DifferentValuesOnRanksAreReported) {
  const Fusion fusion = fusionOf(
      "mesh @m = [x=ranks]\n"
      "fusion f(%x: f32[t] shard(@m, 0: x), %n: i64) {\n"
      "  %c = full(1.0, sizes=[%n], dtype=f32)\n  %a = sum(%c)\n  %b = sum(%x)\n"
      "  %y = add(%a, %b)\n  return %y shard(@m)\n}\n");
  const auto errors = onRanks(2, [&](comm::World& world) {
    const auto device = cpu();
    FusionExecutor executor(fusion, {device.get(), &world});
    Tensor x = deviceFloats(*device, {1, 2}, {2});
    x.desc.global = {4};
    x.desc.offset = {2 * world.rank()};
    const Outputs same = executor.run({x, integer(3)});
    same.wait();
    EXPECT_EQ(floatsOf(*device, same[0]), std::vector<float>{9});
    executor.run({x, integer(3 + world.rank())});
    // The collectives of both ranks match although %n differs. The run may therefore end before the
    // job monitor notices the difference.
    while (world.fault().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    world.barrier();
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find(" run 2"), std::string::npos) << error;
  }
}

TEST(SizeInputs, DescriptorsOfInputsUseTheValues) {
  const auto device = cpu();
  FusionExecutor executor(fusionOf("fusion f(%x: f32[2*%n, h], %n: i64 = 3) with h = 5 {\n"
                                   "  %y = neg(%x)\n  return %y\n}\n"),
                          {device.get()});
  EXPECT_EQ(executor.inputDescs()[0].sizes, (std::vector<int64_t>{6, 5}));
  EXPECT_EQ(executor.inputDescs({{"%n", 4}})[0].sizes, (std::vector<int64_t>{8, 5}));
  const Tensor x = deviceFloats(*device, ramp(8, 0, 1), {4, 2});
  EXPECT_EQ(sizesOf(executor.run({x, integer(2)})[0]), (std::vector<int64_t>{4, 2}));
  EXPECT_EQ(userErrorOf([&] {
              executor.run({x, integer(3)});
            }),
            "axis 0 of input %x must be 6 (2*%n), got 4");
}

}  // namespace
}  // namespace heddle::host::size_inputs_cpu_test
