// Compiles a CUDA kernel with NVRTC. Its 0-d operands, one of every dtype, are passed by value.
#include <gtest/gtest.h>

#include "codegen/emit/plan_kernel.h"
#include "host/compile.h"
#include "host/plan/by_value_inputs.h"
#include "tests/codegen/simt/nvrtc.h"
#include "tests/host/plan/by_value_inputs.h"

namespace heddle::host::by_value_inputs_simt_test {
namespace {

TEST(ByValueInputsSimt, NvrtcCompilesValuesOfEveryDtype) {
  const auto compiler = codegen::testing::nvrtc("sm_90");
  if (compiler == nullptr) GTEST_SKIP() << "libheddle_cuda.so with NVRTC is not there";

  const Fusion segment = testing::sumOfValues();
  std::vector<bool> by_value(segment.inputs().size(), true);
  by_value[0] = false;
  const TensorDesc x = denseDesc(DType::F32, {1000});
  std::vector<TensorDesc> inputs(by_value.size());
  inputs[0] = x;
  const codegen::KernelPlan plan =
      codegen::planKernel(withValues(segment, by_value), inputs, {x}, codegen::Target::Cuda);
  ASSERT_EQ(plan.stages.size(), 1u);
  EXPECT_EQ(plan.stages[0].pointers.size(), 2u) << "x and the result";
  EXPECT_EQ(plan.stages[0].scalars.size(), by_value.size() - 1);
  EXPECT_FALSE(compiler->compile(plan.source).empty());
  const codegen::KernelPlan fill =
      codegen::planKernel(scalarStoreSegment(DType::BF16), {TensorDesc{}},
                          {denseDesc(DType::BF16, {})}, codegen::Target::Cuda);
  ASSERT_EQ(fill.stages.size(), 1u);
  EXPECT_FALSE(compiler->compile(fill.source).empty());
}

}  // namespace
}  // namespace heddle::host::by_value_inputs_simt_test
