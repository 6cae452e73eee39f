#include "tests/host/gpu_device.h"
#include "tests/host/sizes/scalar_attributes.h"

namespace heddle::host::scalar_attributes_gpu_test {
namespace {

using namespace scalar_attributes;
using ScalarAttributesGpu = GpuDeviceFixture;

TEST_F(ScalarAttributesGpu, SelectTakesTheIndexFromTheRun) { expectSelect(*device_); }
TEST_F(ScalarAttributesGpu, TriangleTakesTheDiagonalFromTheRun) { expectTriangles(*device_); }
TEST_F(ScalarAttributesGpu, DiagonalTakesTheOffsetFromTheRun) { expectDiagonals(*device_); }
TEST_F(ScalarAttributesGpu, TopkTakesTheCountFromTheRun) { expectTopk(*device_); }
TEST_F(ScalarAttributesGpu, RangesTakeBoundsFromTheRun) { expectRanges(*device_); }
TEST_F(ScalarAttributesGpu, DropoutAndClampTakeNumbersFromTheRun) { expectDropout(*device_); }

}  // namespace
}  // namespace heddle::host::scalar_attributes_gpu_test
