// The NCCL World and the entry point of the module. A second World (`bootstrap`) executes all
// communication on host memory.
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "comm/modules.h"
#include "comm/nccl/copy_communicator.h"
#include "comm/nccl/nccl_communicator.h"
#include "comm/nccl/nccl_init.h"
#include "comm/operation.h"
#include "ir/base/check.h"

namespace heddle::comm::nccl {
namespace {

class NcclWorld : public World {
 public:
  NcclWorld(std::unique_ptr<World> bootstrap, int device, DeviceReduce reduce)
      : bootstrap_(std::move(bootstrap)),
        device_(device),
        reduce_(std::move(reduce)),
        job_(std::make_shared<NcclJob>(bootstrap_)),
        fault_text_(job_->asFault()) {
    shareObservers(*bootstrap_);
    HEDDLE_USER_CHECK(
        std::getenv("NCCL_COMM_BLOCKING") == nullptr,
        "the environment variable NCCL_COMM_BLOCKING overrides how heddle creates NCCL's "
        "communicators: unset it");
    int devices = 0;
    HEDDLE_CUDA(cudaGetDeviceCount, &devices);
    HEDDLE_USER_CHECK(device >= 0 && device < devices, "there is no CUDA device {}, only {}",
                      device, devices);
  }
  ~NcclWorld() override {
    closeMonitor();
    if (failure()) bootstrap_->interrupt(*failure());
    if (job_comm_ == nullptr) return;
    cudaSetDevice(device_);
    close(job_comm_, fault_text_);
  }

  using World::split;
  int rank() const override { return bootstrap_->rank(); }
  int size() const override { return bootstrap_->size(); }
  std::string transport() const override { return "nccl"; }
  std::vector<std::string> exchange(const std::string& mine) override {
    return bootstrap_->exchange(mine);
  }

  std::unique_ptr<Communicator> communicator(const std::vector<int>& members) override {
    const Wait wait(*this, false);
    const std::unique_ptr<Communicator> host = bootstrap_->communicator(members);
    HEDDLE_CUDA(cudaSetDevice, device_);
    ncclComm_t parent = initialise(*host, fault_text_);
    ncclComm_t comm = nullptr;
    try {
      comm = nccl::split(parent, 0, host->rank(), 0, fault_text_);
    } catch (...) {
      ncclCommAbort(parent);
      throw;
    }
    close(parent, fault_text_);
    return wrap(comm, host->rank(), host->size());
  }

  // Splits job_comm_, an NCCL communicator of all ranks of the job, unless all teams get copy
  // channels. The first split that needs job_comm_ creates it.
  std::unique_ptr<Communicator> split(const std::vector<int>& members,
                                      const Carrier& carrier) override {
    const Wait wait(*this, true);
    const int position = members.empty() ? -1 : positionInTeam(members, rank(), size());
    HEDDLE_CUDA(cudaSetDevice, device_);
    if (carrier.copy_channel == 0) return splitNccl(members, position, carrier.ctas);
    CopyChannel copy_channel = openCopyChannel(members, position);
    if (copy_channel.everywhere) return std::move(copy_channel.mine);
    // All ranks of the job must take part in ncclCommSplit, even the ranks that have a copy
    // channel.
    const bool has_channel = copy_channel.mine != nullptr;
    auto made = splitNccl(has_channel ? std::vector<int>{} : members, has_channel ? -1 : position,
                          carrier.ctas);
    return has_channel ? std::move(copy_channel.mine) : std::move(made);
  }

  // abort() and interrupt() record the failure and forward the call to the bootstrap World, but
  // abort no NCCL communicator. Later, probe() or the destructor of a communicator, or the thread
  // of the NcclJob, ends the posted work of this rank.
  void abort(const std::string& reason) noexcept override {
    job_->setFault(reason);
    bootstrap_->abort(reason);
  }
  void interrupt(const std::string& reason) noexcept override {
    job_->setFault(reason);
    bootstrap_->interrupt(reason);
  }
  void fail(const std::string& why) noexcept override {
    World::fail(why);
    if (!hasMonitor()) bootstrap_->fail(why);
  }
  std::string fault() const override { return job_->fault(); }

 private:
  std::unique_ptr<Communicator> splitNccl(const std::vector<int>& members, int position, int ctas) {
    if (job_comm_ == nullptr) {
      std::vector<int> everybody(size());
      std::iota(everybody.begin(), everybody.end(), 0);
      const std::unique_ptr<Communicator> host = bootstrap_->communicator(everybody);
      job_comm_ = initialise(*host, fault_text_);
    }
    const int color = members.empty() ? -1 : *std::min_element(members.begin(), members.end());
    ncclComm_t comm = nccl::split(job_comm_, color, position, ctas, fault_text_);
    std::unique_ptr<Communicator> mine;
    if (comm != nullptr) mine = wrap(comm, position, static_cast<int>(members.size()));
    barrier();
    return mine;
  }

  // Loads the kernel that computes sums. A load after the first post would wait for posted work,
  // and could deadlock.
  void loadReduce(std::byte* memory) const {
    const void* source = memory;
    reduce_(memory, {&source, 1}, 1, DType::F32, ReduceOp::Sum, cudaStreamPerThread);
    HEDDLE_CUDA(cudaStreamSynchronize, cudaStreamPerThread);
  }

  struct CopyChannel {
    std::unique_ptr<Communicator> mine;  // nullptr: the rank is in no team, or its team uses NCCL
    bool everywhere = true;              // all teams have a copy channel
  };
  // Opens a copy channel for each team whose ranks can allocate their memory and access each
  // other's memory. Collective over the job. The first exchange distributes the offers of all ranks
  // (SharedArena::offer()). The second exchange tells all ranks whether a rank cannot access the
  // memory of its team.
  CopyChannel openCopyChannel(const std::vector<int>& members, int position) {
    std::string why;
    std::unique_ptr<SharedArena> arena = makeArena(members, why);
    const std::vector<std::string> offers = ofTeam(exchange(arena ? arena->offer() : ""), members);
    if (arena) why = arena->reach(offers, position);
    const std::vector<std::string> all = exchange(members.empty() ? "" : why);
    const std::vector<std::string> reasons = ofTeam(all, members);
    CopyChannel copy_channel;
    copy_channel.everywhere = areEmpty(all);
    if (!arena) return copy_channel;
    arena->setReached(offers, reasons);
    if (areEmpty(reasons)) {
      copy_channel.mine = std::make_unique<CopyCommunicator>(
          std::move(arena), position, static_cast<int>(members.size()), device_, reduce_, job_);
    } else {
      arena->close(fault_text_);
    }
    return copy_channel;
  }

  // Creates the device memory of a copy channel. If this rank cannot have a copy channel, returns
  // nullptr and stores the reason in `why`. Also returns nullptr if this rank is in no team.
  std::unique_ptr<SharedArena> makeArena(const std::vector<int>& members, std::string& why) {
    if (job_->copyChannelMember() == nullptr)
      job_->setCopyChannelMember(CopyChannelMember::join(*bootstrap_));
    std::unique_ptr<SharedArena> arena;
    try {
      HEDDLE_USER_CHECK(
          reduce_ != nullptr,
          "a copy channel needs a kernel that computes sums, and this World has none");
      if (!members.empty()) {
        arena = std::make_unique<SharedArena>(device_, static_cast<int>(members.size()),
                                              job_->copyChannelMember());
        loadReduce(arena->own());
      }
    } catch (const UserError& error) {
      why = error.what();
      arena.reset();
    }
    return arena;
  }

  static std::vector<std::string> ofTeam(const std::vector<std::string>& all,
                                         const std::vector<int>& members) {
    std::vector<std::string> team;
    for (int member : members) team.push_back(all.at(member));
    return team;
  }
  static bool areEmpty(const std::vector<std::string>& all) {
    return std::all_of(all.begin(), all.end(), [](const auto& each) { return each.empty(); });
  }

  std::unique_ptr<Communicator> wrap(ncclComm_t comm, int rank, int size) const {
    return std::make_unique<NcclCommunicator>(comm, rank, size, device_, job_);
  }

  std::shared_ptr<World> bootstrap_;
  int device_;
  DeviceReduce reduce_;
  std::shared_ptr<NcclJob> job_;
  FaultText fault_text_;
  ncclComm_t job_comm_ = nullptr;
};

std::unique_ptr<World> makeWorld(std::unique_ptr<World> bootstrap, int device,
                                 DeviceReduce reduce) {
  return std::make_unique<NcclWorld>(std::move(bootstrap), device, std::move(reduce));
}

}  // namespace
}  // namespace heddle::comm::nccl

extern "C" const heddle::comm::NcclModule* heddleNcclModule() {
  static const heddle::comm::NcclModule module{heddle::comm::nccl::makeWorld};
  return &module;
}
