// Tests the caches, the preparation and the inspection of a FusionExecutor.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "codegen/compile/child_process.h"
#include "codegen/compile/image_cache.h"
#include "host/device/cpu/cpu_device.h"
#include "host/fusion_executor.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"
#include "tests/host/observed_compiler.h"
#include "tests/host/on_ranks.h"

namespace heddle::host::fusion_executor_cpu_test {
namespace {

using testing::floatsOf;
using testing::ObservedCompilerDevice;
using testing::userErrorOf;

const char* const kFusion =
    "heddle 1\nfusion f(%x: f32[n, m], %s: f32 = 2.0) {\n"
    "  %y = mul(%x, %s)\n  %z = sum(%y, axes=[1])\n  return %y, %z\n}\n";

Tensor shapeOf(std::vector<int64_t> sizes) {
  return {nullptr, denseDesc(DType::F32, std::move(sizes)), nullptr};
}

// Returns a shape whose axis 0 is the contiguous one. It needs other kernels than shapeOf().
Tensor transposedShapeOf(int64_t n, int64_t m) {
  Tensor shape = shapeOf({n, m});
  shape.desc.strides = {1, n};
  return shape;
}

struct FusionExecutorCpu : ::testing::Test {
  std::unique_ptr<Device> device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  codegen::TempFolder folder;
  codegen::ImageCache images{folder.path()};
  Context context{device.get(), nullptr, &images};

  Tensor ones(int64_t n, int64_t m) const {
    return testing::deviceFloats(*device, std::vector<float>(static_cast<size_t>(n * m), 1),
                                 {n, m});
  }
};

TEST_F(FusionExecutorCpu, PreparedShapesCompileNothing) {
  FusionExecutor executor(parseFusion(kFusion), context);
  EXPECT_FALSE(executor.isPrepared({shapeOf({2, 3})}));
  executor.prepare({shapeOf({2, 3})});
  EXPECT_TRUE(executor.isPrepared({shapeOf({2, 3})}));
  EXPECT_TRUE(executor.isPrepared({ones(2, 3)}));
  EXPECT_FALSE(executor.isPrepared({transposedShapeOf(2, 3)}));
  const Executable::Stats before = executor.stats();
  const Outputs outputs = executor.run({ones(2, 3)});
  outputs.wait();
  EXPECT_EQ(floatsOf(*device, outputs.tensor("z")), (std::vector<float>{6, 6}));
  const Executable::Stats after = executor.stats();
  EXPECT_EQ(after.plans, before.plans);
  EXPECT_EQ(after.kernels_compiled, before.kernels_compiled);
  EXPECT_EQ(after.plan_hits, before.plan_hits + 1);
}

TEST_F(FusionExecutorCpu, PreparationsRunOnAnotherThread) {
  FusionExecutor executor(parseFusion(kFusion), context);
  const Preparation good = executor.prepareAsync({shapeOf({4, 4})});
  const Preparation bad = executor.prepareAsync({shapeOf({4})});
  good.wait();
  EXPECT_TRUE(good.isDone());
  EXPECT_TRUE(executor.isPrepared({shapeOf({4, 4})}));
  for (int i = 0; i < 2; ++i) {
    EXPECT_NE(userErrorOf([&] { bad.wait(); }).find("has 2 axes"), std::string::npos);
  }
}

TEST_F(FusionExecutorCpu, ProgramsAndKernelsAreShown) {
  FusionExecutor executor(parseFusion(kFusion), context);
  const std::vector<Argument> shapes = {shapeOf({2, 3})};
  const auto program = executor.program(shapes);
  EXPECT_EQ(program->kernels.size(), 1u);
  EXPECT_EQ(executor.segments(shapes), (std::vector<std::string>{"g0 kernel, 2 op(s) -> %y %z"}));
  EXPECT_NE(executor.kernelText(shapes, 0).find("extern \"C\""), std::string::npos);
  EXPECT_EQ(userErrorOf([&] { executor.kernelText(shapes, 1); }),
            "there is no kernel 1: the program launches 1");
  EXPECT_EQ(userErrorOf([&] { executor.program({shapeOf({2})}); }),
            "input %x has 2 axes, got 1 axes [2]");
}

TEST_F(FusionExecutorCpu, ManyAlternatingShapesKeepTheirPlans) {
  FusionExecutor executor(parseFusion(kFusion), context);
  for (int round = 0; round < 2; ++round) {
    for (int64_t n = 1; n <= 200; ++n) executor.run({ones(n, 2)}).wait();
  }
  const Executable::Stats stats = executor.stats();
  EXPECT_EQ(stats.plans, 200);
  EXPECT_EQ(stats.plan_hits, 200);
  EXPECT_EQ(stats.plan_evictions, 0);
}

TEST_F(FusionExecutorCpu, FullCachesDropTheLeastRecentlyUsed) {
  CompileOptions options;
  options.caches.plans = 3;
  options.caches.programs = 1;
  FusionExecutor executor(parseFusion(kFusion), context, options);
  for (int64_t n : {1, 2, 3, 1, 4, 5}) executor.run({ones(n, 2)}).wait();
  EXPECT_TRUE(executor.isPrepared({shapeOf({1, 2})}));
  EXPECT_FALSE(executor.isPrepared({shapeOf({2, 2})})) << "2 was used before 3, 1, 4 and 5";
  EXPECT_GT(executor.stats().plan_evictions, 0);
  executor.prepare({transposedShapeOf(4, 2)});
  EXPECT_EQ(executor.stats().programs, 1);
  EXPECT_EQ(executor.stats().program_evictions, 1);
  EXPECT_FALSE(executor.isPrepared({shapeOf({4, 2})})) << "its program was dropped";
  const Outputs outputs = executor.run({ones(2, 2)});
  outputs.wait();
  EXPECT_EQ(floatsOf(*device, outputs.tensor(1)), (std::vector<float>{4, 4}));
}

// The table of the plans of all programs has dropped the first shape, but the program of this shape
// still has the plan.
TEST_F(FusionExecutorCpu, ShapesArePreparedIfTheirProgramHasThePlan) {
  CompileOptions options;
  options.caches.plans = 2;
  FusionExecutor executor(parseFusion(kFusion), context, options);
  executor.prepare({shapeOf({2, 3})});
  executor.prepare({transposedShapeOf(2, 3)});
  executor.prepare({transposedShapeOf(4, 3)});
  EXPECT_TRUE(executor.isPrepared({shapeOf({2, 3})}));
  EXPECT_TRUE(executor.isPrepared({transposedShapeOf(2, 3)}));
  EXPECT_FALSE(executor.isPrepared({shapeOf({4, 3})}));
  const int64_t plans = executor.stats().plans;
  executor.run({ones(2, 3)}).wait();
  EXPECT_EQ(executor.stats().plans, plans);
}

TEST_F(FusionExecutorCpu, WrongShapesAreNotPrepared) {
  FusionExecutor executor(
      parseFusion("heddle 1\nfusion f(%x: f32[n, m], %k: i64) {\n"
                  "  %y = slice(%x, starts=[0, 0], stops=[%k, m])\n  return %y\n}\n"),
      context);
  executor.prepare({shapeOf({2, 3}), Scalar(int64_t{1})});
  EXPECT_TRUE(executor.isPrepared({shapeOf({2, 3}), Scalar(int64_t{1})}));
  EXPECT_FALSE(executor.isPrepared({shapeOf({2, 3}), Scalar(int64_t{3})}));
  EXPECT_FALSE(executor.isPrepared({shapeOf({2, 3}), Scalar(1.0)}));
  EXPECT_FALSE(executor.isPrepared({shapeOf({2}), Scalar(int64_t{1})}));
  EXPECT_FALSE(executor.isPrepared({shapeOf({2, 3})}));
}

// Each executor has its own programs and plans. Both use one image cache.
TEST_F(FusionExecutorCpu, OtherExecutorsPrepareNothing) {
  FusionExecutor executor(parseFusion(kFusion), context);
  FusionExecutor other(parseFusion(kFusion), context);
  other.prepare({shapeOf({2, 3})});
  EXPECT_FALSE(executor.isPrepared({shapeOf({2, 3})}));
  executor.prepare({shapeOf({2, 3})});
  EXPECT_EQ(executor.stats().kernels_compiled, 0) << "both executors use one image cache";
  EXPECT_EQ(executor.stats().kernels_loaded, 1);
}

TEST_F(FusionExecutorCpu, DescriptorsOfAllRanksComeFromOneCall) {
  const Fusion fusion = parseFusion(
      "heddle 1\nmesh @m = [x=2]\nfusion f(%x: f32[n, 3] shard(@m, 0: x), %s: f32) {\n"
      "  %y = mul(%x, %s)\n  return %y\n}\n");
  const auto errors = testing::onRanks(2, [&](comm::World& world) {
    const auto own = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
    FusionExecutor executor(fusion, {own.get(), &world});
    const std::vector<RankDescs> all = executor.describe({{"n", 5}});
    ASSERT_EQ(all.size(), 2u);
    const auto rank = static_cast<size_t>(world.rank());
    EXPECT_EQ(all[rank].inputs, executor.inputDescs({{"n", 5}}));
    EXPECT_EQ(all[0].outputs.at(0).sizes, (std::vector<int64_t>{3, 3}));
    EXPECT_EQ(all[1].outputs.at(0).sizes, (std::vector<int64_t>{2, 3}));
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TEST_F(FusionExecutorCpu, ScalarsOfAnotherKindAreRefused) {
  FusionExecutor executor(
      parseFusion(
          "heddle 1\nfusion f(%x: i64[n], %k: i64) {\n  %y = add(%x, %k)\n  return %y\n}\n"),
      context);
  HostTensor values(DType::I64, {2});
  const Tensor x = toDevice(*device, device->allocator(), values, denseDesc(DType::I64, {2}));
  try {
    executor.run({x, Scalar(3.7)});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "input 1 (%k) of type i64 is the floating-point number 3.7");
    EXPECT_EQ(error.code(), ErrorCode::Type);
  }
  executor.run({x, Scalar(int64_t{3})}).wait();
}

// The compiler blocks until the runs with a prepared shape have ended.
TEST(FusionExecutorThreads, PreparedRunsContinueWhileAThreadCompiles) {
  std::mutex mutex;
  std::condition_variable changed;
  bool blocks = false, is_blocked = false;
  ObservedCompilerDevice device([&] {
    std::unique_lock lock(mutex);
    if (!blocks) return;
    is_blocked = true;
    changed.notify_all();
    changed.wait(lock, [&] { return !blocks; });
  });
  if (device.compiler() == nullptr) GTEST_SKIP() << "no compiler";
  codegen::TempFolder folder;
  codegen::ImageCache images(folder.path());
  FusionExecutor executor(parseFusion(kFusion), {&device, nullptr, &images});
  const Tensor x = testing::deviceFloats(device, {1, 1, 1, 1}, {2, 2});
  executor.run({x}).wait();
  {
    std::lock_guard lock(mutex);
    blocks = true;
  }
  std::thread compiling([&] { executor.prepare({transposedShapeOf(2, 2)}); });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return is_blocked; });
  }
  for (int i = 0; i < 100; ++i) {
    const Outputs outputs = executor.run({x});
    outputs.wait();
    EXPECT_EQ(floatsOf(device, outputs.tensor(1)), (std::vector<float>{4, 4}));
    executor.stats();
  }
  EXPECT_FALSE(executor.isPrepared({transposedShapeOf(2, 2)}));
  {
    std::lock_guard lock(mutex);
    blocks = false;
  }
  changed.notify_all();
  compiling.join();
  EXPECT_TRUE(executor.isPrepared({transposedShapeOf(2, 2)}));
}

// On each rank, one thread compiles a new shape of a program that communicates. Meanwhile another
// thread runs prepared shapes of the program.
TEST(FusionExecutorThreads, CommunicatingRunsContinueWhileAThreadCompiles) {
  const Program program = testing::programOf(R"(
kernel @k {
  fusion k(%x: f32[n, m]) {
    %y = add(%x, 1.0)
    return %y
  }
}
program p(%x: f32[n, m]) -> (%z) with n = 2, m = 2 {
  slot %y: f32[n, m]
  slot %z: f32[n, m]
  %y = allocate stream=0
  %z = allocate stream=0
  launch @k(%x) -> (%y) stream=0
  $t = communicate allreduce %y -> %z op=sum stream=0
  wait $t stream=0
  free %y stream=0
}
)");
  codegen::TempFolder folder;
  codegen::ImageCache images(folder.path());
  const auto errors = testing::onRanks(2, [&](comm::World& world) {
    std::mutex mutex;
    std::condition_variable changed;
    bool blocks = false, is_blocked = false;
    ObservedCompilerDevice device([&] {
      std::unique_lock lock(mutex);
      if (!blocks) return;
      is_blocked = true;
      changed.notify_all();
      changed.wait(lock, [&] { return !blocks; });
    });
    if (device.compiler() == nullptr) return;
    codegen::ImageCache own(folder.path() + fmt::format("/{}", world.rank()));
    Executable executable(program, {&device, &world, &own});
    const Tensor x = testing::deviceFloats(device, {1, 2, 3, 4}, {2, 2});
    Tensor transposed = x;
    transposed.desc.strides = {1, 2};
    executable.run({x}).wait();
    {
      std::lock_guard lock(mutex);
      blocks = true;
    }
    std::vector<float> result;
    std::thread compiling([&] {
      const Outputs outputs = executable.run({transposed});
      outputs.wait();
      result = floatsOf(device, outputs[0]);
    });
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return is_blocked; });
    }
    for (int i = 0; i < 20; ++i) {
      const Outputs outputs = executable.run({x});
      outputs.wait();
      EXPECT_EQ(floatsOf(device, outputs[0]), (std::vector<float>{4, 6, 8, 10}));
    }
    {
      std::lock_guard lock(mutex);
      blocks = false;
    }
    changed.notify_all();
    compiling.join();
    EXPECT_EQ(result, (std::vector<float>{4, 8, 6, 10}));
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TEST(FusionExecutorThreads, ThreadsCompileANewShapeOnce) {
  std::atomic<int> compiled{0};
  ObservedCompilerDevice device([&] { ++compiled; });
  if (device.compiler() == nullptr) GTEST_SKIP() << "no compiler";
  codegen::TempFolder folder;
  codegen::ImageCache images(folder.path());
  FusionExecutor executor(parseFusion(kFusion), {&device, nullptr, &images});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const Tensor x = testing::deviceFloats(device, {1, 2, 3, 4}, {2, 2});
      const Outputs outputs = executor.run({x});
      outputs.wait();
      EXPECT_EQ(floatsOf(device, outputs.tensor(1)), (std::vector<float>{6, 14}));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(compiled.load(), 1);
  EXPECT_EQ(executor.stats().programs, 1);
  EXPECT_EQ(executor.stats().plans, 1);
}

}  // namespace
}  // namespace heddle::host::fusion_executor_cpu_test
