#include "tests/host/gpu_device.h"
#include "tests/host/views/generated_elements.h"
#include "tests/host/views/generated_operands.h"

namespace heddle::host::generated_operands_gpu_test {
namespace {

using namespace generated_operands;
using GeneratedOperandsGpu = GpuDeviceFixture;

TEST_F(GeneratedOperandsGpu, MaximumOfAnExpandedVectorIsTheVector) {
  expectMaximumOfExpandedVector(*device_);
}
TEST_F(GeneratedOperandsGpu, SumOfAnExpandedColumnIsAMultiple) {
  expectSumOfExpandedColumn(*device_);
}
TEST_F(GeneratedOperandsGpu, SeveralSweepsOverGeneratedRowsNeedNoMemory) {
  expectSeveralSweepsOverGeneratedRows(*device_);
}
TEST_F(GeneratedOperandsGpu, CountOfIndicesIsTheLength) { expectCountOfIndices(*device_); }
TEST_F(GeneratedOperandsGpu, GeneratedAxisMayHaveAnyPosition) { expectGeneratedAxes(*device_); }
TEST_F(GeneratedOperandsGpu, GatherAtGeneratedIndicesNeedsNoMemory) {
  expectGatherAtGeneratedIndices(*device_);
}
TEST_F(GeneratedOperandsGpu, FilledTensorsAndRandomNumbersNeedNoMemory) {
  expectFilledTensorsAndRandomNumbers(*device_);
}
TEST_F(GeneratedOperandsGpu, TakeFromGeneratedValuesNeedsNoMemory) {
  expectTakeFromGeneratedValues(*device_);
}
TEST_F(GeneratedOperandsGpu, TakeAtOneIndexNeedsNoMemory) { expectTakeAtOneIndex(*device_); }
TEST_F(GeneratedOperandsGpu, TakeAtGeneratedIndicesNeedsNoMemory) {
  expectTakeAtGeneratedIndices(*device_);
}
TEST_F(GeneratedOperandsGpu, SumsOfMovedElementsNeedNoMemory) {
  expectSumsOfMovedElements(*device_);
}
TEST_F(GeneratedOperandsGpu, SumOfMixedCatNeedsNoMemory) { expectSumOfMixedCat(*device_); }
TEST_F(GeneratedOperandsGpu, ShardedTakesNeedNoMemory) { expectShardedTakes(DeviceKind::Cuda); }
TEST_F(GeneratedOperandsGpu, ShardedAxesGiveTheResultOfOneRank) {
  expectShardedAxes(DeviceKind::Cuda);
}
TEST_F(GeneratedOperandsGpu, SizesOfTheWrongSignAreRefused) { expectErrorOfNegativeSize(*device_); }

}  // namespace
}  // namespace heddle::host::generated_operands_gpu_test
