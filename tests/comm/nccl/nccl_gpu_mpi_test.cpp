// Tests NCCL with one process per GPU. MPI is the transport that exchanges the NCCL ids.
#include "comm/modules.h"
#include "tests/comm/cuda_memory.h"
#include "tests/comm/module_symbol.h"

namespace heddle::comm::conformance::nccl_gpu_mpi_test {
namespace {

TEST(NcclOverMpi, Conforms) {
  std::string reason;
  const auto cuda = CudaRuntime::load("libheddle_nccl.so", reason);
  if (cuda == nullptr) GTEST_SKIP() << reason;
  const auto mpi =
      moduleSymbol<const MpiModule* (*)()>("libheddle_mpi.so", "heddleMpiModule", reason);
  const auto nccl =
      moduleSymbol<const NcclModule* (*)()>("libheddle_nccl.so", "heddleNcclModule", reason);
  ASSERT_NE(mpi, nullptr) << reason;
  ASSERT_NE(nccl, nullptr) << reason;
  std::unique_ptr<World> job = mpi()->makeWorld();
  if (job->size() > cuda->devices) {
    GTEST_SKIP() << job->size() << " ranks need as many GPUs, there are " << cuda->devices;
  }
  const int device = job->rank();
  const auto world = nccl()->makeWorld(std::move(job), device, nullptr);
  EXPECT_EQ(world->transport(), "nccl");
  DeviceMemory memory(*cuda, device);
  Rank rank{*world, memory, false};
  runEverything(rank);
}

}  // namespace
}  // namespace heddle::comm::conformance::nccl_gpu_mpi_test
