#include "comm/nccl/nccl_init.h"

#include <algorithm>
#include <thread>

#include "ir/error.h"

namespace heddle::comm::nccl {
namespace {

// Every member's bytes, by rank.
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

ncclComm_t initialise(Communicator& bootstrap, const Fault& fault) {
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

// The new communicator is there at once, and both report how it gets on.
ncclComm_t split(ncclComm_t parent, int color, int key, int ctas, const Fault& fault) {
  ncclConfig_t config = configured(1);
  if (ctas > 0) config.maxCTAs = ctas;
  ncclComm_t comm = nullptr;
  const int mine = color < 0 ? NCCL_SPLIT_NOCOLOR : color;
  try {
    check("ncclCommSplit", ncclCommSplit(parent, mine, key, &comm, &config), parent);
    settle("ncclCommSplit", parent, fault);
    if (comm != nullptr) settle("ncclCommSplit", comm, fault);
  } catch (...) {
    if (comm != nullptr) ncclCommAbort(comm);
    throw;
  }
  return comm;
}

void close(ncclComm_t comm, const Fault& fault) noexcept {
  try {
    const std::string why = fault();
    HEDDLE_USER_CHECK(why.empty(), "{}", why);
    check("ncclCommFinalize", ncclCommFinalize(comm), comm);
    settle("ncclCommFinalize", comm, fault);
    ncclCommDestroy(comm);
  } catch (const std::exception&) {
    ncclCommAbort(comm);  // a peer is gone
  }
}

}  // namespace heddle::comm::nccl
