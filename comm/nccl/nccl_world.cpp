// The NCCL world: everything on the host goes to the world it wraps. Also the entry point of the
// module.
#include <atomic>

#include "comm/modules.h"
#include "comm/nccl/nccl_call.h"
#include "comm/nccl/nccl_communicator.h"
#include "ir/error.h"

namespace heddle::comm::nccl {
namespace {

class NcclWorld : public World {
 public:
  NcclWorld(std::unique_ptr<World> bootstrap, int device)
      : bootstrap_(std::move(bootstrap)), device_(device) {
    int devices = 0;
    checkCuda("cudaGetDeviceCount", cudaGetDeviceCount(&devices));
    HEDDLE_USER_CHECK(device >= 0 && device < devices, "there is no CUDA device {}, only {}",
                      device, devices);
  }

  int rank() const override { return bootstrap_->rank(); }
  int size() const override { return bootstrap_->size(); }
  std::string transport() const override { return "nccl"; }
  std::vector<std::string> exchange(const std::string& mine) override {
    return bootstrap_->exchange(mine);
  }

  std::unique_ptr<Communicator> communicator(const std::vector<int>& members) override {
    const std::unique_ptr<Communicator> host = bootstrap_->communicator(members);
    return std::make_unique<NcclCommunicator>(*host, device_, aborted_);
  }

  // NCCL's kernels of this rank end with its communicators, which the owner destroys next.
  void abort(const std::string& reason) noexcept override {
    aborted_->store(true);
    bootstrap_->abort(reason);
  }

 private:
  std::unique_ptr<World> bootstrap_;
  int device_;
  std::shared_ptr<std::atomic<bool>> aborted_ = std::make_shared<std::atomic<bool>>(false);
};

std::unique_ptr<World> makeWorld(std::unique_ptr<World> bootstrap, int device) {
  return std::make_unique<NcclWorld>(std::move(bootstrap), device);
}

}  // namespace
}  // namespace heddle::comm::nccl

extern "C" const heddle::comm::NcclModule* heddleNcclModule() {
  static const heddle::comm::NcclModule module{heddle::comm::nccl::makeWorld};
  return &module;
}
