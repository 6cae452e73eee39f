#include "host/device/cpu/cpu_device.h"
#include "tests/host/sizes/reshapes.h"

namespace heddle::host::reshapes_cpu_test {
namespace {

using namespace reshapes;

std::unique_ptr<Device> cpu() { return makeCpuDevice({.threads = 1, .adversarial_seed = {}}); }

TEST(Reshapes, SplitsAndMergesGiveTheElementsOfNumPy) { expectSplitsAndMerges(*cpu()); }
TEST(Reshapes, StructuresDecideThePrograms) { expectProgramsByStructure(*cpu()); }
TEST(Reshapes, InvalidValuesAreErrorsOfTheReshape) { expectErrorsOfInvalidValues(*cpu()); }
TEST(Reshapes, NegativeExpressionsAreErrors) { expectErrorsOfNegativeExpressions(*cpu()); }
TEST(Reshapes, TensorsWithoutElementsKeepTheirReshape) { expectReshapesWithoutElements(*cpu()); }
TEST(Reshapes, RandomValuesGiveTheElementsOfNumPy) { expectRandomValues(*cpu()); }
TEST(Reshapes, RanksDecideTheSame) { expectRanksDecideTheSame(DeviceKind::Cpu); }

}  // namespace
}  // namespace heddle::host::reshapes_cpu_test
