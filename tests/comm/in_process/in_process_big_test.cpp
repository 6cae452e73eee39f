#include "comm/in_process/worlds.h"
#include "tests/comm/conformance/big_cases.h"
#include "tests/comm/ranks.h"

namespace heddle::comm::conformance::in_process_big_test {
namespace {

TEST(InProcessBig, CountsBeyondIntAreRight) {
  expectAllWell(runRanks(makeInProcessWorlds(2), [&](std::unique_ptr<World>& world) {
    HostMemory memory;
    Rank rank{*world, memory};
    runBig(rank);
  }));
}

}  // namespace
}  // namespace heddle::comm::conformance::in_process_big_test
