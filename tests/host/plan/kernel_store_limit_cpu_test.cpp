// Tests that a KernelStore unloads kernels which exceed its limit of bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "codegen/compile/child_process.h"
#include "codegen/compile/image_cache.h"
#include "host/compile.h"
#include "host/device/cpu/cpu_device.h"
#include "host/executable.h"
#include "host/plan/kernel_store.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"
#include "tests/host/faulty_device.h"

namespace heddle::host::kernel_store_limit_cpu_test {
namespace {

// Counts the kernels that are loaded now.
class CountingDevice : public testing::FaultyDevice {
 public:
  LoadedKernel load(const codegen::KernelImage& image, const std::string& entry) override {
    const LoadedKernel kernel = FaultyDevice::load(image, entry);
    ++*count_;
    return {kernel.get(), [kernel, count = count_](const void*) { --*count; }};
  }
  int loaded() const { return count_->load(); }

 private:
  std::shared_ptr<std::atomic<int>> count_ = std::make_shared<std::atomic<int>>(0);
};

// A kernel that writes nothing. Each number gives another source.
codegen::KernelPlan kernel(int number) {
  codegen::KernelPlan plan;
  const std::string entry = fmt::format("kernel{}", number);
  plan.source = {codegen::Target::Cpp,
                 fmt::format("extern \"C\" void {}(const void*, long, long) {{}}\n", entry),
                 {entry}};
  plan.stages.emplace_back().entry = entry;
  return plan;
}

class KernelStoreLimitCpu : public ::testing::Test {
 protected:
  std::vector<LoadedKernel> prepare(KernelStore& store, int number) {
    const codegen::KernelPlan plan = kernel(number);
    return store.prepare({&plan}).kernels.front();
  }

  CountingDevice device;
  codegen::TempFolder folder;
  codegen::ImageCache images{folder.path()};
};

TEST_F(KernelStoreLimitCpu, UnusedKernelsAreUnloadedFirstTheOldest) {
  KernelStore measured(device, &images, 0);
  std::vector<LoadedKernel> one = prepare(measured, 0);
  const int64_t bytes = measured.counts().bytes;
  KernelStore store(device, &images, 5 * bytes / 2);
  std::vector<LoadedKernel> used = prepare(store, 0);
  for (int number : {1, 2, 3}) prepare(store, number);
  prepare(store, 1);
  one.clear();
  measured.unloadUnused();
  EXPECT_EQ(device.loaded(), 4);
  store.unloadUnused();
  EXPECT_EQ(store.counts().unloaded, 2) << "kernels 2 and 3";
  EXPECT_EQ(device.loaded(), 2);
  const int64_t compiled = images.compiled();
  prepare(store, 1);
  EXPECT_EQ(device.loaded(), 2) << "kernel 1 was still loaded";
  prepare(store, 2);
  EXPECT_EQ(device.loaded(), 3) << "kernel 2 was loaded again";
  EXPECT_EQ(images.compiled(), compiled);
}

TEST_F(KernelStoreLimitCpu, UsedKernelsStay) {
  KernelStore store(device, &images, 0);
  std::vector<LoadedKernel> used = prepare(store, 0);
  store.unloadUnused();
  EXPECT_EQ(device.loaded(), 1);
  used.clear();
  store.unloadUnused();
  EXPECT_EQ(device.loaded(), 0);
}

TEST_F(KernelStoreLimitCpu, UnloadedKernelsWithoutFormAreNotFound) {
  KernelStore store(device, &images, 0);
  const KernelStore::Key key{7, {}, {}, {}, {}};
  {
    std::vector<LoadedKernel> used = prepare(store, 0);
    store.add(key, kernel(0), used);
    ASSERT_TRUE(store.find(key).has_value());
    EXPECT_EQ(store.find(key)->loaded, used);
  }
  store.unloadUnused();
  EXPECT_FALSE(store.find(key).has_value());
}

// Runs a sum of `rows` rows of 2^20 / `rows` elements, and checks it.
void runSum(Executable& executor, CountingDevice& device, int64_t rows) {
  HostTensor values(DType::F32, {rows, (int64_t{1} << 20) / rows});
  for (int64_t i = 0; i < values.numel(); ++i) values.as<float>()[i] = static_cast<float>(i % 4);
  const Tensor x =
      toDevice(device, device.allocator(), values, denseDesc(DType::F32, values.sizes));
  const Outputs outputs = executor.run({x});
  outputs.wait();
  const HostTensor sums = toHost(device, outputs.tensor(0));
  EXPECT_EQ(sums.numel(), rows);
  for (int64_t row = 0; row < rows; ++row) {
    EXPECT_EQ(toDouble(sums.at(row)), 1.5 * static_cast<double>(values.sizes[1])) << rows;
  }
}

// One row is summed by two launches, many short rows by one, so they need different kernels. The
// second shape has the larger output.
TEST_F(KernelStoreLimitCpu, KernelsOfDroppedPlansAreUnloaded) {
  const Fusion fusion = parseFusion(
      "heddle 1\nfusion f(%x: f32[m, k]) {\n  %s = sum(%x, axes=[1])\n  return %s\n}\n");
  ExecutableOptions options;
  options.caches.plans = 1;
  options.caches.kernel_bytes = 0;
  Executable executor(compile(fusion, 1), {&device, nullptr, &images}, options);
  runSum(executor, device, 1);
  EXPECT_EQ(device.loaded(), 2);
  // Runs that use the records of earlier runs again release the plans of those runs.
  for (int run = 0; run < 100; ++run) runSum(executor, device, 1024);
  EXPECT_EQ(device.loaded(), 3);
  runSum(executor, device, 512);
  EXPECT_EQ(device.loaded(), 1) << "the kernels of the sum of one row are unloaded";
  const int64_t bytes = executor.stats().kernel_bytes;
  EXPECT_EQ(executor.stats().plan_evictions, 2);
  EXPECT_EQ(executor.stats().kernels_unloaded, 1);
  runSum(executor, device, 1);
  EXPECT_EQ(device.loaded(), 3);
  EXPECT_GT(executor.stats().kernel_bytes, bytes);
  EXPECT_EQ(executor.stats().kernels_compiled, 2) << "the image cache had the kernels";
}

// The bytes of a kernel count for the plan that has loaded it.
TEST_F(KernelStoreLimitCpu, LimitOfPlansCountsKernels) {
  const Fusion fusion = parseFusion(
      "heddle 1\nfusion f(%x: f32[m, k]) {\n  %s = sum(%x, axes=[1])\n  return %s\n}\n");
  for (const bool fits : {true, false}) {
    ExecutableOptions options;
    options.caches.plan_bytes = fits ? 1 << 20 : 12 << 10;
    Executable executor(compile(fusion, 1), {&device, nullptr, &images}, options);
    for (int64_t rows : {1, 1024, 512}) runSum(executor, device, rows);
    EXPECT_EQ(executor.stats().plans, 3);
    EXPECT_GT(executor.stats().kernel_bytes, 24 << 10);
    EXPECT_EQ(executor.stats().plan_evictions > 0, !fits);
  }
}

}  // namespace
}  // namespace heddle::host::kernel_store_limit_cpu_test
