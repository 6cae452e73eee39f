// The reference evaluator against what PyTorch computes (tests/goldens/generate.py).
#include "tests/goldens/goldens.h"

#include <gtest/gtest.h>

#include "ir/reference.h"

namespace heddle {
namespace {

TEST(GoldensTest, TheReferenceComputesWhatPyTorchDoes) {
  const std::vector<testing::Golden> goldens = testing::readGoldens();
  ASSERT_GT(goldens.size(), 400u);
  for (const testing::Golden& golden : goldens) {
    const Fusion fusion = testing::fusionOf(golden);
    ReferenceInputs inputs;
    for (size_t i = 0; i < golden.inputs.size(); ++i) {
      inputs.tensors[fusion.inputs()[i]] = golden.inputs[i];
    }
    const HostTensor got = evaluateReference(fusion, inputs, {})[0];
    EXPECT_EQ(testing::compare(got, golden), "") << golden.text;
  }
}

}  // namespace
}  // namespace heddle
