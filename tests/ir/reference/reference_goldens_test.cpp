// Compares the reference evaluator with results of PyTorch (tests/goldens/generate.py).
#include <gtest/gtest.h>

#include "ir/reference/reference.h"
#include "tests/goldens/goldens.h"

namespace heddle::reference_goldens_test {
namespace {

TEST(ReferenceGoldens, ReferenceMatchesPyTorch) {
  const std::vector<std::string> families = testing::goldenFamilies();
  ASSERT_FALSE(families.empty());
  for (const std::string& family : families) {
    const std::vector<testing::Golden> goldens = testing::readGoldens(family);
    EXPECT_GT(goldens.size(), 0u) << family;
    for (const testing::Golden& golden : goldens) {
      SCOPED_TRACE(golden.text);
      const Fusion fusion = testing::fusionOf(golden);
      ReferenceInputs inputs;
      for (size_t i = 0; i < golden.inputs.size(); ++i) {
        inputs.tensors[fusion.inputs()[i]] = golden.inputs[i];
      }
      const std::vector<HostTensor> got = evaluateReference(fusion, inputs, {});
      for (size_t i = 0; i < golden.outputs.size(); ++i) {
        EXPECT_EQ(testing::compare(got[i], golden, i), "");
      }
    }
  }
}

}  // namespace
}  // namespace heddle::reference_goldens_test
