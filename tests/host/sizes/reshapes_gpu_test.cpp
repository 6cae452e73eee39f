#include "tests/host/gpu_device.h"
#include "tests/host/sizes/reshapes.h"

namespace heddle::host::reshapes_gpu_test {
namespace {

using namespace reshapes;
using ReshapesGpu = GpuDeviceFixture;

TEST_F(ReshapesGpu, SplitsAndMergesGiveTheElementsOfNumPy) { expectSplitsAndMerges(*device_); }
TEST_F(ReshapesGpu, StructuresDecideThePrograms) { expectProgramsByStructure(*device_); }
TEST_F(ReshapesGpu, InvalidValuesAreErrorsOfTheReshape) { expectErrorsOfInvalidValues(*device_); }
TEST_F(ReshapesGpu, NegativeExpressionsAreErrors) { expectErrorsOfNegativeExpressions(*device_); }
TEST_F(ReshapesGpu, TensorsWithoutElementsKeepTheirReshape) {
  expectReshapesWithoutElements(*device_);
}
TEST_F(ReshapesGpu, RandomValuesGiveTheElementsOfNumPy) { expectRandomValues(*device_); }
TEST_F(ReshapesGpu, RanksDecideTheSame) { expectRanksDecideTheSame(DeviceKind::Cuda); }

}  // namespace
}  // namespace heddle::host::reshapes_gpu_test
