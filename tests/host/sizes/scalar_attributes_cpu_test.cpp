#include "host/device/cpu/cpu_device.h"
#include "tests/host/sizes/scalar_attributes.h"

namespace heddle::host::scalar_attributes_cpu_test {
namespace {

using namespace scalar_attributes;

std::unique_ptr<Device> cpu() { return makeCpuDevice({.threads = 1, .adversarial_seed = {}}); }

TEST(ScalarAttributes, SelectTakesTheIndexFromTheRun) { expectSelect(*cpu()); }
TEST(ScalarAttributes, TriangleTakesTheDiagonalFromTheRun) { expectTriangles(*cpu()); }
TEST(ScalarAttributes, DiagonalTakesTheOffsetFromTheRun) { expectDiagonals(*cpu()); }
TEST(ScalarAttributes, TopkTakesTheCountFromTheRun) { expectTopk(*cpu()); }
TEST(ScalarAttributes, RangesTakeBoundsFromTheRun) { expectRanges(*cpu()); }
TEST(ScalarAttributes, DropoutAndClampTakeNumbersFromTheRun) { expectDropout(*cpu()); }

}  // namespace
}  // namespace heddle::host::scalar_attributes_cpu_test
