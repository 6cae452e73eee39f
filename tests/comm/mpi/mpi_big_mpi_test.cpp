#include "comm/modules.h"
#include "tests/comm/conformance/big_cases.h"
#include "tests/comm/module_symbol.h"

namespace heddle::comm::conformance::mpi_big_mpi_test {
namespace {

TEST(MpiBig, CountsBeyondIntAreRight) {
  std::string reason;
  const auto entry =
      moduleSymbol<const MpiModule* (*)()>("libheddle_mpi.so", "heddleMpiModule", reason);
  ASSERT_NE(entry, nullptr) << reason;
  const auto world = entry()->makeWorld();
  HostMemory memory;
  Rank rank{*world, memory};
  runBig(rank);
}

}  // namespace
}  // namespace heddle::comm::conformance::mpi_big_mpi_test
