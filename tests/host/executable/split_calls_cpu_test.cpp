// Tests runs whose sizes do not allow a library call that the sizes of earlier runs allowed.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "codegen/compile/child_process.h"
#include "codegen/compile/image_cache.h"
#include "host/device/attention.h"
#include "host/fusion_executor.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"
#include "tests/host/faulty_device.h"
#include "tests/host/on_ranks.h"

namespace heddle::host::split_calls_cpu_test {
namespace {

// A CPU device whose programs are those of a CUDA device: cuDNN computes an attention if its sizes
// allow this. The CPU cannot run such a call, unless its result is empty.
class CallingDevice : public testing::FaultyDevice {
 public:
  DeviceKind kind() const override { return DeviceKind::Cuda; }
};

constexpr int kChain = 6;

// Returns a fusion with an attention, two kernels beside it, and kChain kernels over %x. A flip
// reads other elements than it writes, so each flip begins a kernel. (Without the pad, heddle would
// flip %x instead of %e0.)
Fusion fusionOn(int ranks) {
  std::string text = fmt::format("heddle 1\n{}", ranks > 1 ? "mesh @m = [x=2]\n" : "");
  const char* shard = ranks > 1 ? " shard(@m, 0: x)" : "";
  text += fmt::format(
      "fusion f(%a: bf16[h, t, e]{0}, %k: bf16[h, s, e]{0}, %v: bf16[h, s, e]{0}, %x: f32[n]) {{\n"
      "  %q = mul(%a, 0.5)\n  %y = scaled_dot_product_attention(%q, %k, %v)\n"
      "  %z = add(%y, 1.0)\n  %p = pad(%x, lows=[0], highs=[0])\n  %e0 = neg(%p)\n",
      shard);
  for (int i = 1; i < kChain; ++i) {
    text += fmt::format("  %f{0} = flip(%e{1}, axes=[0])\n  %e{0} = add(%f{0}, {0}.0)\n", i, i - 1);
  }
  return parseFusion(fmt::format("{}  return %z, %e{}\n}}\n", text, kChain - 1));
}

struct Sizes {
  int64_t t, s, e;
};
constexpr Sizes kAllowed{0, 5, 16};     // the result is empty
constexpr Sizes kNotAllowed{3, 5, 12};  // cuDNN needs a width that is a multiple of 8
constexpr Sizes kAlsoNotAllowed{4, 6, 20};

std::vector<Argument> inputsFor(const FusionExecutor& executor, Device& device,
                                const Sizes& sizes) {
  std::vector<Argument> inputs;
  for (const TensorDesc& desc :
       executor.inputDescs({{"h", 2}, {"t", sizes.t}, {"s", sizes.s}, {"e", sizes.e}, {"n", 9}})) {
    HostTensor values(desc.dtype, desc.sizes);
    for (int64_t i = 0; i < values.numel(); ++i) {
      values.set(i, static_cast<double>((i * 7 + static_cast<int64_t>(inputs.size())) % 11) / 8);
    }
    inputs.emplace_back(toDevice(device, device.allocator(), values, desc));
  }
  return inputs;
}

std::vector<HostTensor> run(FusionExecutor& executor, Device& device, const Sizes& sizes) {
  const Outputs outputs = executor.run(inputsFor(executor, device, sizes));
  outputs.wait();
  return {toHost(device, std::get<Tensor>(outputs[0])),
          toHost(device, std::get<Tensor>(outputs[1]))};
}

void expectEqual(const std::vector<HostTensor>& got, const std::vector<HostTensor>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(got[i].sizes, expected[i].sizes);
    for (int64_t k = 0; k < got[i].numel(); ++k) {
      ASSERT_EQ(toDouble(got[i].at(k)), toDouble(expected[i].at(k))) << "output " << i;
    }
  }
}

// Runs the sizes one after another, and compares with new executors, and with programs without
// library calls for attention.
void expectOnlyTheCallIsSplit(int ranks, comm::World* world) {
  CallingDevice device;
  testing::FaultyDevice without_calls;
  codegen::TempFolder folder;
  codegen::ImageCache images{folder.path()};
  const Fusion fusion = fusionOn(ranks);
  FusionExecutor executor(fusion, {&device, world, &images});
  run(executor, device, kAllowed);
  const Executable::Stats allowed = executor.stats();
  EXPECT_EQ(allowed.programs, 1);
  EXPECT_EQ(allowed.segmentations, 1);
  EXPECT_EQ(allowed.split_calls, 0);
  EXPECT_EQ(allowed.kernel_texts, kChain);  // all others are empty
  for (const Sizes& sizes : {kNotAllowed, kAlsoNotAllowed, kNotAllowed}) {
    const std::vector<HostTensor> got = run(executor, device, sizes);
    FusionExecutor fresh(fusion, {&device, world, &images});
    expectEqual(got, run(fresh, device, sizes));
    FusionExecutor plain(fusion, {&without_calls, world, &images});
    expectEqual(got, run(plain, without_calls, sizes));
    const Executable::Stats stats = executor.stats();
    EXPECT_EQ(stats.programs, 2);
    EXPECT_EQ(stats.segmentations, 1);
    EXPECT_EQ(stats.split_calls, 1);
    // The first kernel of the chain shares a launch with the one that computes %q.
    EXPECT_GE(stats.kernels_reused, kChain - 1);
  }
  run(executor, device, kAllowed);
  EXPECT_EQ(executor.stats().programs, 2);
  EXPECT_EQ(executor.stats().segmentations, 1);
}

class SplitCallsCpu : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (findCudnnModule(why) == nullptr) GTEST_SKIP() << "no library computes attention: " << why;
  }
};

TEST_F(SplitCallsCpu, OnlyTheCallIsSegmentedAgain) {
  auto worlds = makeInProcessWorldsFor(DeviceKind::Cpu, 1);
  expectOnlyTheCallIsSplit(1, worlds[0].get());
}

TEST_F(SplitCallsCpu, RanksSegmentOnlyTheCallAgain) {
  const std::vector<std::string> errors =
      testing::onRanks(2, [](comm::World& world) { expectOnlyTheCallIsSplit(2, &world); });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

}  // namespace
}  // namespace heddle::host::split_calls_cpu_test
