// Compares complete error messages.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "host/device/cpu/cpu_device.h"
#include "tests/host/executable_common.h"

namespace heddle::host::error_text_cpu_test {
namespace {

using testing::deviceFloats;
using testing::FailingAllocator;
using testing::programOf;
using testing::userErrorOf;

struct ErrorText : ::testing::Test {
  std::unique_ptr<Device> device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  Context context{device.get(), nullptr, nullptr};
};

TEST_F(ErrorText, WrongInputsAreReported) {
  Executable executable(programOf(R"(
program p(%a: f32[n, 4], %b: f32[n], %s: f64) -> (%a) with n = 4 {
}
)"),
                        context);
  const Tensor a = deviceFloats(*device, std::vector<float>(12), {3, 4});
  const Tensor b = deviceFloats(*device, std::vector<float>(3), {3});
  const Scalar s(1.0);
  const auto errorOf = [&](const std::vector<Argument>& inputs) {
    return userErrorOf([&] { executable.run(inputs); });
  };
  EXPECT_EQ(errorOf({a, b, s}), "");
  EXPECT_EQ(errorOf({a, b}), "program p takes 3 inputs, got 2");
  EXPECT_EQ(errorOf({a, b, s, s}), "program p takes 3 inputs, got 4");
  EXPECT_EQ(errorOf({a, s, s}), "input 1 (%b) is a tensor, got a scalar");
  EXPECT_EQ(errorOf({a, b, b}), "input 2 (%s) is a scalar, got a tensor");
  Tensor other = b;
  other.desc = denseDesc(DType::I64, {3});
  EXPECT_EQ(errorOf({a, other, s}), "input %b is f32, got i64");
  other.desc = denseDesc(DType::F32, {1, 3});
  EXPECT_EQ(errorOf({a, other, s}), "input %b has 1 axes, got 2 axes [1, 3]");
  other.desc = denseDesc(DType::F32, {2});
  EXPECT_EQ(errorOf({a, other, s}), "size n is 3 in axis 0 of %a but 2 in axis 0 of %b");
  other = a;
  other.desc = denseDesc(DType::F32, {3, 2});
  EXPECT_EQ(errorOf({other, b, s}), "axis 1 of %a has size 2, the program expects 4");
  other = b;
  other.data = nullptr;
  EXPECT_EQ(errorOf({a, other, s}), "input 1 (%b) has no data");
  other = b;
  other.data = static_cast<std::byte*>(b.data) + 2;
  EXPECT_EQ(
      errorOf({a, other, s}),
      "input 1 (%b): its address is not a multiple of 4 bytes, the size of an element of f32");
  EXPECT_EQ(errorOf({a, b, s}), "") << "an error leaves nothing behind";
}

// A symbol that occurs only in a product of sizes is computed from the other symbols. Its default
// applies only if no size determines it.
TEST_F(ErrorText, ContradictingCompositeExtentsAreReported) {
  Executable executable(programOf(R"(
program p(%a: f32[heads * width], %b: f32[heads, 2], %c: f32[width * depth + 1]) -> (%a)
    with heads = 4, width = 8, depth = 2 {
}
)"),
                        context);
  const auto errorOf = [&](int64_t a, int64_t b, int64_t c) {
    const auto made = [&](int64_t n, std::vector<int64_t> sizes) {
      return deviceFloats(*device, std::vector<float>(static_cast<size_t>(n)), std::move(sizes));
    };
    return userErrorOf([&] { executable.run({made(a, {a}), made(2 * b, {b, 2}), made(c, {c})}); });
  };
  EXPECT_EQ(errorOf(32, 4, 17), "");
  EXPECT_EQ(errorOf(12, 3, 21), "");
  EXPECT_EQ(
      errorOf(10, 3, 17),
      "axis 0 of %a has size 10, the program expects 24 = heads*width (width = 8 by default)");
  EXPECT_EQ(
      errorOf(12, 3, 20),
      "axis 0 of %c has size 20, the program expects 9 = width*depth + 1 (depth = 2 by default)");
}

const char* const kFourth = R"(
program fourth(%x: f32[n, n]) -> (%x4) with n = 4 {
  slot %x2: f32[n, n]
  slot %x3: f32[n, n]
  slot %x4: f32[n, n]
  %x2 = allocate stream=0
  call_library matmul(%x, %x) -> (%x2) stream=0
  %x3 = allocate stream=0
  call_library matmul(%x2, %x) -> (%x3) stream=0
  %x4 = allocate stream=0
  call_library matmul(%x3, %x) -> (%x4) stream=0
  free %x2 stream=0
  free %x3 stream=0
}
)";

TEST_F(ErrorText, OutOfMemoryListsTheHeldSlots) {
  FailingAllocator failing(device->allocator());
  Executable executable(programOf(kFourth), context);
  RunOptions options;
  options.allocator = &failing;
  failing.failAt(2);
  const Tensor x = deviceFloats(*device, {1, 0, 2, 1}, {2, 2});
  EXPECT_EQ(userErrorOf([&] { executable.run({x}, options); }),
            "instruction 4 (%x4 = allocate stream=0): out of memory: %x4 asks for 16 bytes, the "
            "run holds 32 bytes: %x2 16, %x3 16");
}

TEST(ErrorTextMemoryLimit, OutOfMemoryListsTheHeldSlots) {
  CpuOptions options;
  options.threads = 1;
  options.memory_limit = 1 << 20;
  const auto device = makeCpuDevice(options);
  Executable executable(programOf(kFourth), {device.get(), nullptr, nullptr});
  {
    const Tensor x = deviceFloats(*device, std::vector<float>(300 * 300), {300, 300});
    EXPECT_EQ(userErrorOf([&] { executable.run({x}); }),
              "instruction 2 (%x3 = allocate stream=0): out of memory: %x3 asks for 360000 bytes, "
              "the run holds 360000 bytes: %x2 360000");
    EXPECT_EQ(executable.stats().held_bytes, 0);
  }
  const Tensor x = deviceFloats(*device, {1, 0, 2, 1}, {2, 2});
  executable.run({x}).wait();
  EXPECT_EQ(userErrorOf([&] { deviceFloats(*device, std::vector<float>(1 << 20), {1 << 20}); }),
            "out of memory: a tensor of 4194304 bytes");
}

// Installs a compiler that answers all queries, such as its version, but rejects every kernel.
struct ErrorTextOfCompiler : ::testing::Test {
  void SetUp() override {
    folder = ::testing::TempDir() + "/heddle_bad_compiler_" + std::to_string(getpid());
    std::filesystem::create_directory(folder);
    const std::string path = folder + "/c++";
    std::ofstream(path)
        << "#!/bin/sh\n"
           "for word in \"$@\"; do\n"
           "  case $word in */kernel.cpp) echo \"no such luck\" >&2; exit 3;; esac\n"
           "done\n"
           "exec c++ \"$@\"\n";
    chmod(path.c_str(), 0755);
    setenv("HEDDLE_CXX", path.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("HEDDLE_CXX");
    std::filesystem::remove_all(folder);
  }
  std::string folder;
};

TEST_F(ErrorTextOfCompiler, KernelErrorsShowTheNumberedSource) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  Executable executable(programOf(R"(
kernel @k {
  fusion k(%x: f32[n]) {
    %y = exp(%x)
    return %y
  }
}
program p(%x: f32[n]) -> (%y) with n = 4 {
  slot %y: f32[n]
  %y = allocate stream=0
  launch @k(%x) -> (%y) stream=0
}
)"),
                        {device.get(), nullptr, nullptr});
  const Tensor x = deviceFloats(*device, {1, 2}, {2});
  const std::string error = userErrorOf([&] { executable.run({x}); });
  const std::string start = folder + "/c++ failed with exit code 3 on a kernel:\nno such luck\n";
  EXPECT_EQ(error.substr(0, start.size()), start);
  // The message shows the kernel text with lines numbered from 1 without a gap.
  std::istringstream lines(error.substr(std::min(start.size(), error.size())));
  int number = 0;
  bool shows_exp = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    EXPECT_EQ(std::atoi(line.c_str()), ++number) << line;
    shows_exp = shows_exp || line.find("exp(") != std::string::npos;
  }
  EXPECT_GT(number, 20);
  EXPECT_TRUE(shows_exp);
  // The failed kernel is not cached.
  EXPECT_EQ(userErrorOf([&] { executable.run({x}); }).substr(0, start.size()), start);
}

TEST_F(ErrorText, LateErrorIsReportedByEveryWait) {
  Executable executable(programOf(R"(
program p(%x: f32[n]) -> (%y) with n = 4 {
  slot %y: f32[n]
  %y = allocate stream=0
  copy %x -> %y stream=0
  check %y stream=0
}
)"),
                        context);
  const Tensor bad = deviceFloats(*device, {1, NAN, 3}, {3});
  const std::string expected =
      "instruction 2 (check %y stream=0): %y holds nan at element 1 of [3]";
  {
    const Outputs outputs = executable.run({bad});
    EXPECT_EQ(userErrorOf([&] { outputs.wait(); }), expected);
    EXPECT_EQ(userErrorOf([&] { outputs.wait(); }), expected);
  }
  EXPECT_EQ(executable.stats().held_bytes, 0);
  executable.run({deviceFloats(*device, {1, 2, 3}, {3})}).wait();
}

}  // namespace
}  // namespace heddle::host::error_text_cpu_test
