// Tests how many bytes runs hold, and what happens when no memory is left.
#include <gtest/gtest.h>

#include <thread>

#include "host/device/cpu/cpu_device.h"
#include "host/fusion_executor.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"

namespace heddle::host::executable_memory_cpu_test {
namespace {

using testing::deviceFloats;
using testing::FailingAllocator;
using testing::floatsOf;
using testing::programOf;
using testing::ramp;
using testing::userErrorOf;

// Computes x^4. A run holds x2, then x2 and x3, then x3 and x4. For n = 4 each of them has 16
// floats.
const char* const kFourth = R"(
program fourth(%x: f32[n, n]) -> (%x4) with n = 4 {
  slot %x2: f32[n, n]
  slot %x3: f32[n, n]
  slot %x4: f32[n, n]
  %x2 = allocate stream=0
  call_library matmul(%x, %x) -> (%x2) stream=0
  %x3 = allocate stream=0
  call_library matmul(%x2, %x) -> (%x3) stream=0
  free %x2 stream=0
  %x4 = allocate stream=0
  call_library matmul(%x3, %x) -> (%x4) stream=0
  free %x3 stream=0
}
)";

std::vector<float> fourthLoop(const std::vector<float>& x, size_t n) {
  std::vector<float> power = x;
  for (int p = 0; p < 3; ++p) {
    std::vector<float> next(n * n, 0.0f);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        for (size_t k = 0; k < n; ++k) next[i * n + j] += power[i * n + k] * x[k * n + j];
      }
    }
    power = next;
  }
  return power;
}

struct ExecutableMemory : ::testing::Test {
  std::unique_ptr<Device> device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  Context context{device.get(), nullptr, nullptr};
  TrackingAllocator tracking{device->allocator()};
  std::vector<float> values{1, 0, 2, 1};
  Tensor x = deviceFloats(*device, values, {2, 2});
};

TEST_F(ExecutableMemory, PeakIsExactAndAllMemoryIsReleased) {
  Executable executable(programOf(kFourth), context);
  RunOptions options;
  options.allocator = &tracking;
  {
    const Outputs outputs = executable.run({x}, options);
    outputs.wait();
    EXPECT_EQ(floatsOf(*device, outputs[0]), fourthLoop(values, 2));
    EXPECT_EQ(tracking.heldBytes(), 16);
    EXPECT_EQ(executable.stats().held_bytes, 16);
  }
  EXPECT_EQ(executable.stats().peak_bytes, 2 * 16);
  EXPECT_EQ(tracking.peakBytes(), 2 * 16);
  EXPECT_EQ(tracking.heldBytes(), 0);
  EXPECT_EQ(executable.stats().held_bytes, 0);
}

// matmul, tanh and matmul are three segments. While tanh runs, its operand and its result are held,
// in one buffer if tanh works in place. While the second matmul runs, its operand and its result
// are held. All three values are never held at the same time.
TEST_F(ExecutableMemory, ChainPeaksAtItsLargestPairOfBuffers) {
  FusionBuilder b("chain");
  const ValueId in = b.input("in", DType::F32, {Size::symbol("t"), Size::symbol("h")});
  const ValueId up = b.input("up", DType::F32, {Size::symbol("h"), Size::symbol("f")});
  const ValueId down = b.input("down", DType::F32, {Size::symbol("f"), Size::symbol("o")});
  const ValueId g = b.pointwise("tanh", {b.matmul(in, up)});
  b.output(b.matmul(g, down));
  const Fusion chain = std::move(b).build();
  FusionExecutor executor(chain, context);
  CompileOptions skipping;
  skipping.passes.skip = {"reuse_buffers"};
  FusionExecutor apart(chain, context, skipping);
  const auto zeros = [&](int64_t rows, int64_t columns) {
    return deviceFloats(*device, std::vector<float>(static_cast<size_t>(rows * columns)),
                        {rows, columns});
  };
  RunOptions options;
  options.allocator = &tracking;
  const int64_t t = 3, h = 5;
  for (const auto& [f, o] : {std::pair<int64_t, int64_t>{11, 2}, {7, 40}, {6, 6}}) {
    tracking.resetPeak();
    executor.run({zeros(t, h), zeros(h, f), zeros(f, o)}, options).wait();
    EXPECT_EQ(tracking.peakBytes(), 4 * t * (f + o)) << f << " " << o;
    EXPECT_EQ(tracking.heldBytes(), 0);
    tracking.resetPeak();
    apart.run({zeros(t, h), zeros(h, f), zeros(f, o)}, options).wait();
    EXPECT_EQ(tracking.peakBytes(), 4 * t * (f + std::max(f, o))) << f << " " << o;
  }
  EXPECT_EQ(executor.stats().peak_bytes, 4 * t * (7 + 40));
  EXPECT_EQ(apart.stats().peak_bytes, 4 * t * (7 + 40));
}

// The last kernel reads both matrix products and writes its result to one of them.
TEST_F(ExecutableMemory, PeakWithoutReuseIsThatOfAProgramWithoutReuse) {
  FusionBuilder b("products");
  const ValueId x = b.input("x", DType::F32, {Size::symbol("n"), Size::symbol("n")});
  const ValueId square = b.matmul(x, x);
  const ValueId cube = b.matmul(x, square);
  b.output(b.pointwise("add", {square, b.pointwise("tanh", {cube})}));
  const Fusion fusion = std::move(b).build();
  CompileOptions skipping;
  skipping.passes.skip = {"reuse_buffers"};
  FusionExecutor reusing(fusion, context), apart(fusion, context, skipping);
  const int64_t n = 8, bytes = 4 * n * n;
  const std::vector<float> values(static_cast<size_t>(n * n), 0.25f);
  for (FusionExecutor* executor : {&reusing, &apart}) {
    const std::vector<Argument> inputs = {deviceFloats(*device, values, {n, n})};
    executor->run(inputs).wait();
  }
  EXPECT_EQ(reusing.stats().peak_bytes, 2 * bytes);
  EXPECT_EQ(reusing.stats().peak_bytes_without_reuse, 3 * bytes);
  EXPECT_EQ(apart.stats().peak_bytes, 3 * bytes);
  EXPECT_EQ(apart.stats().peak_bytes_without_reuse, 3 * bytes);
}

TEST_F(ExecutableMemory, OutputsOutliveLaterRunsAndTheExecutable) {
  RunOptions options;
  options.allocator = &tracking;
  std::vector<Outputs> kept;
  {
    Executable executable(programOf(kFourth), context);
    for (int i = 0; i < 10; ++i) {
      const std::vector<float> scaled = ramp(4, static_cast<float>(i), 1.0f);
      kept.push_back(executable.run({deviceFloats(*device, scaled, {2, 2})}, options));
      kept.back().wait();
    }
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(floatsOf(*device, kept[static_cast<size_t>(i)][0]),
              fourthLoop(ramp(4, static_cast<float>(i), 1.0f), 2));
  }
  EXPECT_EQ(tracking.heldBytes(), 10 * 16);
  kept.clear();
  EXPECT_EQ(tracking.heldBytes(), 0);
}

TEST_F(ExecutableMemory, FailedAllocationReleasesAllMemory) {
  FailingAllocator failing(tracking);
  Executable executable(programOf(kFourth), context);
  RunOptions options;
  options.allocator = &failing;
  for (int64_t n = 0; n < 3; ++n) {
    failing.failAt(n);
    const std::string message = userErrorOf([&] { executable.run({x}, options); });
    const std::string slot = "%x" + std::to_string(n + 2);
    EXPECT_NE(message.find("out of memory: " + slot + " asks for 16 bytes"), std::string::npos)
        << message;
    EXPECT_NE(message.find("instruction"), std::string::npos) << message;
    EXPECT_EQ(tracking.heldBytes(), 0) << n;
    EXPECT_EQ(executable.stats().held_bytes, 0) << n;
    failing.failAt(-1);
    const Outputs outputs = executable.run({x}, options);
    outputs.wait();
    EXPECT_EQ(floatsOf(*device, outputs[0]), fourthLoop(values, 2));
  }
  failing.failAt(2);
  const std::string message = userErrorOf([&] { executable.run({x}, options); });
  EXPECT_NE(message.find("holds 16 bytes: %x3 16"), std::string::npos) << message;
}

TEST_F(ExecutableMemory, ResultIsWrittenToThePreallocatedTensor) {
  Executable executable(programOf(kFourth), context);
  Tensor mine = deviceFloats(*device, {9, 9, 9, 9}, {2, 2});
  RunOptions options;
  options.allocator = &tracking;
  options.preallocated = {mine};
  const Outputs outputs = executable.run({x}, options);
  outputs.wait();
  EXPECT_EQ(std::get<Tensor>(outputs[0]).data, mine.data);
  EXPECT_EQ(floatsOf(*device, Argument(mine)), fourthLoop(values, 2));
  EXPECT_EQ(tracking.heldBytes(), 0);
  EXPECT_EQ(tracking.peakBytes(), 2 * 16);  // x2 and x3, because x4 belongs to the caller
}

TEST_F(ExecutableMemory, PiecesOfACatHaveNoMemoryOfTheirOwn) {
  FusionExecutor executor(parseFusion("heddle 1 fusion f(%x: f32[n, n]) { %a = neg(%x) "
                                      "%b = mul(%x, 2.0) %c = cat(%a, %b, axis=1) return %c }",
                                      "f"),
                          context);
  Tensor mine = deviceFloats(*device, std::vector<float>(8, 9), {2, 4});
  RunOptions options;
  options.allocator = &tracking;
  options.preallocated = {mine};
  const Outputs outputs = executor.run({x}, options);
  outputs.wait();
  EXPECT_EQ(floatsOf(*device, Argument(mine)), (std::vector<float>{-1, -0, 2, 0, -2, -1, 4, 2}));
  EXPECT_EQ(tracking.peakBytes(), 0);
}

TEST_F(ExecutableMemory, PreallocatedTensorOfAnotherOrderIsFilledByACopy) {
  Executable executable(programOf(kFourth), context);
  Tensor mine = deviceFloats(*device, {9, 9, 9, 9}, {2, 2});
  mine.desc.strides = {1, 2};
  RunOptions options;
  options.preallocated = {mine};
  const Outputs outputs = executable.run({x}, options);
  outputs.wait();
  EXPECT_EQ(floatsOf(*device, outputs[0]), fourthLoop(values, 2));
  mine.desc.strides = {2, 1};
  const std::vector<float> expected = fourthLoop(values, 2);
  EXPECT_EQ(floatsOf(*device, Argument(mine)),
            (std::vector<float>{expected[0], expected[2], expected[1], expected[3]}));
}

TEST_F(ExecutableMemory, WrongPreallocatedTensorsAreRefused) {
  Executable executable(programOf(kFourth), context);
  RunOptions options;
  options.preallocated = {deviceFloats(*device, {1, 2, 3}, {3, 1})};
  std::string message = userErrorOf([&] { executable.run({x}, options); });
  EXPECT_NE(message.find("output 0 (%x4)"), std::string::npos) << message;
  options.preallocated = {x};
  message = userErrorOf([&] { executable.run({x}, options); });
  EXPECT_EQ(message, "preallocated output 0 (%x4) overlaps the memory of input 0 (%x)");
  Executable two(programOf(R"(
program two(%x: f32[n]) -> (%a, %b) with n = 4 {
  slot %a: f32[n]
  slot %b: f32[n]
  %a = allocate stream=0
  copy %x -> %a stream=0
  %b = allocate stream=0
  copy %x -> %b stream=0
}
)"),
                 context);
  const Tensor four = deviceFloats(*device, values, {4});
  const Tensor mine = deviceFloats(*device, values, {4});
  options.preallocated = {mine, mine};
  message = userErrorOf([&] { two.run({four}, options); });
  EXPECT_EQ(message,
            "preallocated output 1 (%b) overlaps the memory of preallocated output 0 (%a)");
}

// One tensor holds the real and the imaginary parts of complex numbers. One output is written to
// the real parts, the other one to the imaginary parts.
TEST_F(ExecutableMemory, PreallocatedTensorsMayInterleave) {
  Executable executable(programOf(R"(
kernel @k {
  fusion k(%x: f32[n]) {
    %a = add(%x, 1.0)
    %b = mul(%x, 2.0)
    return %a, %b
  }
}
program two(%x: f32[n]) -> (%a, %b) with n = 4 {
  slot %a: f32[n]
  slot %b: f32[n]
  %a = allocate stream=0
  %b = allocate stream=0
  launch @k(%x) -> (%a, %b) stream=0
}
)"),
                        context);
  const Tensor input = deviceFloats(*device, {1, 2, 3, 4}, {4});
  const Tensor pairs = deviceFloats(*device, std::vector<float>(9, -1), {9});
  const auto everySecond = [&](int64_t first) {
    Tensor part = input;
    part.desc.strides = {2};
    part.data = static_cast<float*>(pairs.data) + first;
    part.owner = pairs.owner;
    return part;
  };
  RunOptions options;
  for (int repeat = 0; repeat < 2; ++repeat) {
    options.preallocated = {everySecond(0), everySecond(1)};
    executable.run({input}, options).wait();
    EXPECT_EQ(floatsOf(*device, pairs), (std::vector<float>{2, 2, 3, 4, 4, 6, 5, 8, -1}));
  }
  options.preallocated = {everySecond(0), everySecond(2)};
  EXPECT_EQ(userErrorOf([&] { executable.run({input}, options); }),
            "preallocated output 1 (%b) overlaps the memory of preallocated output 0 (%a)");
  // The output %b and the input interleave too.
  options.preallocated = {{}, everySecond(1)};
  EXPECT_EQ(userErrorOf([&] { executable.run({everySecond(0)}, options).wait(); }), "");
  EXPECT_EQ(floatsOf(*device, pairs), (std::vector<float>{2, 4, 3, 6, 4, 8, 5, 10, -1}));
  EXPECT_EQ(userErrorOf([&] { executable.run({everySecond(1)}, options); }),
            "preallocated output 1 (%b) overlaps the memory of input 0 (%x)");
}

// The strides of the outputs fit no grid, so only a long search could show that no elements share
// memory.
TEST_F(ExecutableMemory, UndecidedOverlapIsAnErrorOfItsOwn) {
  Executable executable(programOf(R"(
program two(%x: f32[n, n]) -> (%a, %b) with n = 40 {
  slot %a: f32[n, n]
  slot %b: f32[n, n]
  %a = allocate stream=0
  copy %x -> %a stream=0
  %b = allocate stream=0
  copy %x -> %b stream=0
}
)"),
                        context);
  const Tensor input = deviceFloats(*device, ramp(1600, 0, 1), {40, 40});
  const Tensor memory = deviceFloats(*device, ramp(2000000, 0, 0), {2000000});
  const auto part = [&](int64_t first, std::vector<int64_t> strides) {
    Tensor tensor = input;
    tensor.desc.strides = std::move(strides);
    tensor.data = static_cast<float*>(memory.data) + first;
    tensor.owner = memory.owner;
    return tensor;
  };
  RunOptions options;
  options.preallocated = {part(0, {50021, 1201}), part(1, {49999, 1193})};
  EXPECT_EQ(userErrorOf([&] { executable.run({input}, options); }),
            "preallocated output 1 (%b): its memory range overlaps that of preallocated output 0 "
            "(%a), and its strides do not show that no element is in both");
}

}  // namespace
}  // namespace heddle::host::executable_memory_cpu_test
