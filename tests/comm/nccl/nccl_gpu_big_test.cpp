#include "tests/comm/conformance/big_cases.h"
#include "tests/comm/nccl_threads.h"

namespace heddle::comm::conformance::nccl_gpu_big_test {
namespace {

using NcclBig = NcclPairs;

TEST_F(NcclBig, CountsBeyondIntAreRight) {
  run(2, [](World& world, DeviceMemory& memory) {
    Rank rank{world, memory, false};
    runBig(rank);
  });
}

}  // namespace
}  // namespace heddle::comm::conformance::nccl_gpu_big_test
