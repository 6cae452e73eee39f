// Tests matmul and linear with cuBLASLt: epilogues, broadcast batches, transposed operands, and the
// choice of algorithms.
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "tests/host/gpu_device.h"
#include "tests/host/whole/matmul_runs.h"

namespace heddle::host::matmul_gpu_test {
namespace {

class MatmulGpu : public GpuDeviceFixture {};

constexpr DType kDTypes[] = {DType::F32, DType::F64, DType::F16, DType::BF16,
                             DType::I64, DType::I32, DType::I8,  DType::U8};

// Returns the relative error of the gelu of cuBLASLt (host/device/device.h).
double geluError(DType dtype) {
  if (dtype == DType::F64) return 0;  // heddle's own kernel computes it
  if (dtype == DType::F32) return std::ldexp(1.0, -16);
  return std::ldexp(1.0, dtype == DType::F16 ? -10 : -7);
}

// Timing is off, because there are many sizes, and every algorithm must be right.
TEST_F(MatmulGpu, EveryCaseMatchesLoops) {
  setenv("HEDDLE_LIBRARY_TIMING", "0", 1);
  testing::expectMatmuls(*device_, kDTypes, geluError);
  unsetenv("HEDDLE_LIBRARY_TIMING");
}

TEST_F(MatmulGpu, ReluKeepsNan) { testing::expectReluKeepsNan(*device_); }

TEST_F(MatmulGpu, AlgorithmIsChosenOnce) {
  MatmulSpec spec;
  spec.a = denseDesc(DType::BF16, {512, 384});
  spec.b = denseDesc(DType::BF16, {384, 640});
  spec.c = denseDesc(DType::BF16, {512, 640});
  const std::set<std::string> questions = device_->algorithmQuestions(spec);
  ASSERT_EQ(questions.size(), 1u);
  const std::string choice = device_->chooseAlgorithm(*questions.begin(), stream_, "");
  EXPECT_FALSE(choice.empty());
  EXPECT_EQ(device_->chooseAlgorithm(*questions.begin(), stream_, ""), choice);
  // A second device, like another process, finds the choice on disk.
  EXPECT_EQ(makeCudaDevice(0)->chooseAlgorithm(*questions.begin(), stream_, ""), choice);
  EXPECT_NE(device_->prepareMatmul(spec, {{*questions.begin(), choice}}), nullptr);
}

TEST_F(MatmulGpu, ChosenAlgorithmsAreRight) {
  const heddle::testing::MatmulOpCase c{"linear", {96, 128}, {160, 128}, true, "relu", false};
  const Fusion fusion = heddle::testing::fusionOf(c, DType::BF16);
  const std::vector<HostTensor> inputs = heddle::testing::inputsOf(fusion);
  heddle::testing::expectMatmul(c, inputs, testing::runMatmulFusion(*device_, fusion, inputs), 8);
}

}  // namespace
}  // namespace heddle::host::matmul_gpu_test
