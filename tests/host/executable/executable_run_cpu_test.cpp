// Compares fusions and programs on the CPU device with plain loops.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "host/device/cpu/cpu_device.h"
#include "host/fusion_executor.h"
#include "host/tensor.h"
#include "tests/host/executable_common.h"

namespace heddle::host::executable_run_cpu_test {
namespace {

using testing::deviceFloats;
using testing::floatsOf;
using testing::programOf;
using testing::ramp;
using testing::userErrorOf;

// Builds y = relu(x + b) * s.
Fusion biasRelu() {
  FusionBuilder b("bias_relu");
  const ValueId x = b.input("x", DType::F32, {Size::symbol("t"), Size::symbol("h")});
  const ValueId bias = b.input("b", DType::F32, {Size::symbol("h")});
  const ValueId s = b.scalarInput("s", DType::F32, Scalar(2.0));
  const ValueId sum = b.pointwise("add", {x, bias});
  b.output(b.name("y").pointwise("mul", {b.pointwise("relu", {sum}), s}));
  return std::move(b).build();
}

std::vector<float> biasReluLoop(const std::vector<float>& x, const std::vector<float>& b, float s) {
  std::vector<float> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = std::max(x[i] + b[i % b.size()], 0.0f) * s;
  return y;
}

const char* const kMatmul = R"(
program mm(%a: f32[m, k], %b: f32[k, n]) -> (%c) with m = 4, k = 4, n = 4 {
  slot %c: f32[m, n]
  %c = allocate stream=0
  call_library matmul(%a, %b) -> (%c) stream=0
}
)";

std::vector<float> matmulLoop(const std::vector<float>& a, const std::vector<float>& b, size_t m,
                              size_t k, size_t n) {
  std::vector<float> c(m * n, 0.0f);
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      for (size_t l = 0; l < k; ++l) c[i * n + j] += a[i * k + l] * b[l * n + j];
    }
  }
  return c;
}

struct ExecutableRun : ::testing::Test {
  std::unique_ptr<Device> device = makeCpuDevice({.threads = 2, .adversarial_seed = {}});
  Context context{device.get(), nullptr, nullptr};
};

TEST_F(ExecutableRun, FusionIsRightForSeveralShapesAndScalars) {
  FusionExecutor executor(biasRelu(), context);
  for (const auto& [t, h] : {std::pair<size_t, size_t>{3, 5}, {1, 1}, {64, 33}, {3, 5}}) {
    const std::vector<float> x = ramp(t * h, -2.0f, 0.125f);
    const std::vector<float> b = ramp(h, 0.5f, -0.25f);
    const std::vector<Argument> tensors{
        deviceFloats(*device, x, {static_cast<int64_t>(t), static_cast<int64_t>(h)}),
        deviceFloats(*device, b, {static_cast<int64_t>(h)})};
    Outputs by_default = executor.run(tensors);
    by_default.wait();
    EXPECT_EQ(floatsOf(*device, by_default[0]), biasReluLoop(x, b, 2.0f));
    Outputs given = executor.run({tensors[0], tensors[1], Scalar(-0.5)});
    given.wait();
    EXPECT_EQ(floatsOf(*device, given[0]), biasReluLoop(x, b, -0.5f));
  }
}

TEST_F(ExecutableRun, TransposedInputIsRight) {
  FusionExecutor executor(biasRelu(), context);
  const size_t t = 4;
  const size_t h = 6;
  const std::vector<float> x = ramp(t * h, -1.0f, 0.25f);  // row-major values
  std::vector<float> stored(x.size());
  for (size_t i = 0; i < t; ++i) {
    for (size_t j = 0; j < h; ++j) stored[j * t + i] = x[i * h + j];
  }
  Tensor transposed = deviceFloats(*device, stored, {6, 4});
  transposed.desc = denseDesc(DType::F32, {4, 6});
  transposed.desc.strides = {1, 4};
  const std::vector<float> b = ramp(h, 0.5f, -0.25f);
  Outputs outputs = executor.run({transposed, deviceFloats(*device, b, {6})});
  outputs.wait();
  EXPECT_EQ(floatsOf(*device, outputs[0]), biasReluLoop(x, b, 2.0f));
}

TEST_F(ExecutableRun, EmptyInputGivesAnEmptyOutput) {
  FusionExecutor executor(biasRelu(), context);
  Outputs outputs =
      executor.run({deviceFloats(*device, {}, {0, 5}), deviceFloats(*device, ramp(5, 0, 1), {5})});
  outputs.wait();
  EXPECT_EQ(std::get<Tensor>(outputs[0]).desc.sizes, (std::vector<int64_t>{0, 5}));
}

TEST_F(ExecutableRun, SeveralThreadsRunOneExecutable) {
  Executable executable(programOf(kMatmul), context);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Stream stream = t % 2 == 0 ? device->createStream() : nullptr;
      const auto n = static_cast<size_t>(t + 2);
      const std::vector<float> a = ramp(n * n, static_cast<float>(t), 1.0f);
      const Tensor tensor = deviceFloats(*device, a, {t + 2, t + 2});
      RunOptions options;
      options.stream = stream;
      for (int i = 0; i < 50; ++i) {
        const Outputs outputs = executable.run({tensor, tensor}, options);
        outputs.wait();
        if (floatsOf(*device, outputs[0]) != matmulLoop(a, a, n, n, n)) ++wrong;
      }
      if (stream != nullptr) device->destroyStream(stream);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(executable.stats().runs, 200);
  EXPECT_EQ(executable.stats().plans, 4);
}

TEST_F(ExecutableRun, RunIsOrderedOnTheCallersStream) {
  Executable executable(programOf(kMatmul), context);
  const Stream stream = device->createStream();
  const std::vector<float> a = ramp(9, 1.0f, 1.0f);
  Tensor x = deviceFloats(*device, std::vector<float>(9, 0.0f), {3, 3});
  RunOptions options;
  options.stream = stream;
  ErrorSink errors;
  // The input is written late, on the caller's stream. The result is read on the same stream
  // without a wait.
  device->hostTask([] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }, stream,
                   {&errors, -1});
  device->copy(x.data, a.data(), 9 * sizeof(float), stream, {&errors, -1});
  const Outputs outputs = executable.run({x, x}, options);
  std::vector<float> got(9);
  device->copy(got.data(), std::get<Tensor>(outputs[0]).data, 9 * sizeof(float), stream,
               {&errors, -1});
  const Event event = device->createEvent();
  device->recordEvent(event, stream);
  device->synchronize(event);
  EXPECT_EQ(got, matmulLoop(a, a, 3, 3, 3));
  device->destroyEvent(event);
}

TEST_F(ExecutableRun, LateErrorNamesItsInstruction) {
  Executable executable(programOf(R"(
program p(%x: f32[n]) -> (%x) with n = 4 {
  check %x stream=0
}
)"),
                        context);
  const Tensor good = deviceFloats(*device, {1, 2}, {2});
  const Tensor bad = deviceFloats(*device, {1, NAN}, {2});
  executable.run({good}).wait();
  const Outputs failed = executable.run({bad});
  const std::string message = userErrorOf([&] { failed.wait(); });
  EXPECT_NE(message.find("instruction 0"), std::string::npos) << message;
  EXPECT_NE(message.find("%x"), std::string::npos) << message;
  executable.run({good}).wait();
}

TEST_F(ExecutableRun, ReadBackDecidesABranch) {
  Executable executable(programOf(R"(
program p(%flag: i64[1], %a: f32[n, n]) -> (%value, %c) with n = 2 {
  slot %value: i64
  slot %c: f32[n, n]
  %c = allocate stream=0
  copy %a -> %c stream=0
  %value = read_back %flag stream=0
  if %value == 7 {
    call_library matmul(%a, %a) -> (%c) stream=0
  }
}
)"),
                        context);
  const std::vector<float> a{1, 2, 3, 4};
  const Tensor tensor = deviceFloats(*device, a, {2, 2});
  for (int64_t flag : {7, 8}) {
    HostTensor host(DType::I64, {1});
    host.as<int64_t>()[0] = flag;
    const Outputs outputs = executable.run(
        {toDevice(*device, device->allocator(), host, denseDesc(DType::I64, {1})), tensor});
    outputs.wait();
    EXPECT_EQ(toInt(std::get<Scalar>(outputs[0])), flag);
    EXPECT_EQ(floatsOf(*device, outputs[1]), flag == 7 ? matmulLoop(a, a, 2, 2, 2) : a);
  }
}

}  // namespace
}  // namespace heddle::host::executable_run_cpu_test
