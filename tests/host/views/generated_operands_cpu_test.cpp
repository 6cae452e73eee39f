#include "host/device/cpu/cpu_device.h"
#include "tests/host/views/generated_elements.h"
#include "tests/host/views/generated_operands.h"

namespace heddle::host::generated_operands_cpu_test {
namespace {

using namespace generated_operands;

std::unique_ptr<Device> cpu() { return makeCpuDevice({.threads = 2, .adversarial_seed = {}}); }

TEST(GeneratedOperands, MaximumOfAnExpandedVectorIsTheVector) {
  expectMaximumOfExpandedVector(*cpu());
}
TEST(GeneratedOperands, SumOfAnExpandedColumnIsAMultiple) { expectSumOfExpandedColumn(*cpu()); }
TEST(GeneratedOperands, SeveralSweepsOverGeneratedRowsNeedNoMemory) {
  expectSeveralSweepsOverGeneratedRows(*cpu());
}
TEST(GeneratedOperands, CountOfIndicesIsTheLength) { expectCountOfIndices(*cpu()); }
TEST(GeneratedOperands, GeneratedAxisMayHaveAnyPosition) { expectGeneratedAxes(*cpu()); }
TEST(GeneratedOperands, GatherAtGeneratedIndicesNeedsNoMemory) {
  expectGatherAtGeneratedIndices(*cpu());
}
TEST(GeneratedOperands, FilledTensorsAndRandomNumbersNeedNoMemory) {
  expectFilledTensorsAndRandomNumbers(*cpu());
}
TEST(GeneratedOperands, TakeFromGeneratedValuesNeedsNoMemory) {
  expectTakeFromGeneratedValues(*cpu());
}
TEST(GeneratedOperands, TakeAtOneIndexNeedsNoMemory) { expectTakeAtOneIndex(*cpu()); }
TEST(GeneratedOperands, TakeAtGeneratedIndicesNeedsNoMemory) {
  expectTakeAtGeneratedIndices(*cpu());
}
TEST(GeneratedOperands, SumsOfMovedElementsNeedNoMemory) { expectSumsOfMovedElements(*cpu()); }
TEST(GeneratedOperands, SumOfMixedCatNeedsNoMemory) { expectSumOfMixedCat(*cpu()); }
TEST(GeneratedOperands, ShardedTakesNeedNoMemory) { expectShardedTakes(DeviceKind::Cpu); }
TEST(GeneratedOperands, ShardedAxesGiveTheResultOfOneRank) { expectShardedAxes(DeviceKind::Cpu); }
TEST(GeneratedOperands, SizesOfTheWrongSignAreRefused) { expectErrorOfNegativeSize(*cpu()); }

}  // namespace
}  // namespace heddle::host::generated_operands_cpu_test
