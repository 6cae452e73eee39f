#include "comm/nccl/nccl_init.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <thread>

#include "ir/base/check.h"
#include "ir/system/start_thread.h"

namespace heddle::comm::nccl {
namespace {

// Returns the bytes that each rank passed as `mine`, in rank order. All ranks must pass the same
// `bytes`.
std::vector<char> gather(Communicator& comm, const char* mine, size_t bytes) {
  std::vector<char> all(bytes * static_cast<size_t>(comm.size()));
  const Operation op{CollectiveKind::Allgather, mine, all.data(), static_cast<int64_t>(bytes),
                     DType::U8};
  const Ticket ticket = comm.post({&op, 1}, nullptr);
  while (!comm.test(ticket)) std::this_thread::yield();
  return all;
}

ncclConfig_t configured(int blocking) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocking;
  return config;
}

}  // namespace

ncclComm_t initialise(Communicator& bootstrap, const FaultText& fault) {
  HEDDLE_CHECK(!bootstrap.isStreamOrdered(), "NCCL needs a bootstrap on host memory");
  ncclUniqueId id = {};
  if (bootstrap.rank() == 0) check("ncclGetUniqueId", ncclGetUniqueId(&id), nullptr);
  const std::vector<char> ids = gather(bootstrap, id.internal, sizeof id.internal);
  std::copy_n(ids.begin(), sizeof id.internal, id.internal);
  ncclConfig_t config = configured(0);
  ncclComm_t comm = nullptr;
  try {
    check("ncclCommInitRankConfig",
          ncclCommInitRankConfig(&comm, bootstrap.size(), id, bootstrap.rank(), &config), comm);
    settle("ncclCommInitRankConfig", comm, fault);
    const char here = 0;
    gather(bootstrap, &here, 1);
  } catch (...) {
    if (comm != nullptr) ncclCommAbort(comm);
    throw;
  }
  return comm;
}

// NCCL writes the handle of the new communicator to `handle` when the split completes, possibly
// after this function has thrown. If the function throws, `handle` therefore leaks on purpose.
ncclComm_t split(ncclComm_t parent, int color, int key, int ctas, const FaultText& fault) {
  ncclConfig_t config = configured(1);
  if (ctas > 0) config.maxCTAs = ctas;
  auto* handle = new ncclComm_t(nullptr);
  const int mine = color < 0 ? NCCL_SPLIT_NOCOLOR : color;
  check("ncclCommSplit", ncclCommSplit(parent, mine, key, handle, &config), parent);
  settle("ncclCommSplit", parent, fault);
  const std::unique_ptr<ncclComm_t> owned(handle);
  return *handle;
}

void destroy(ncclComm_t comm, int device, const FaultText& fault) {
  const auto over = std::make_shared<std::promise<void>>();
  std::future<void> end = over->get_future();
  startThread("the end of a NCCL communicator", [=] {
    cudaSetDevice(device);
    ncclCommFinalize(comm);
    ncclCommDestroy(comm);
    over->set_value();
  }).detach();
  const auto start = std::chrono::steady_clock::now();
  while (end.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) {
    if (!fault().empty() || std::chrono::steady_clock::now() - start > callDeadline()) return;
  }
}

void close(ncclComm_t comm, const FaultText& fault) noexcept {
  try {
    const std::string why = fault();
    HEDDLE_USER_CHECK(why.empty(), "{}", why);
    check("ncclCommFinalize", ncclCommFinalize(comm), comm);
    settle("ncclCommFinalize", comm, fault);
    ncclCommDestroy(comm);
  } catch (const std::exception&) {
    ncclCommAbort(comm);  // the job has failed, or another rank does not answer
  }
}

}  // namespace heddle::comm::nccl
