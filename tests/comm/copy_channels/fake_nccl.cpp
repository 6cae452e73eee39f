// Implements the functions of NCCL that comm/nccl uses. Communicators are created and destroyed,
// but move no data.
#include <nccl.h>

#include <cstring>
#include <mutex>
#include <set>

#include "tests/comm/copy_channels/fake_cuda.h"

namespace {

using heddle::comm::fake::count;
using heddle::comm::fake::Counts;

struct Comms {
  std::mutex mutex;
  std::set<ncclComm_t> there;
};
Comms& comms() {
  static Comms all;
  return all;
}

ncclComm_t make() {
  auto* const comm = reinterpret_cast<ncclComm_t>(new char);
  std::lock_guard lock(comms().mutex);
  comms().there.insert(comm);
  count([](Counts& counts) { ++counts.nccl; });
  return comm;
}

// Removes the communicator. Returns false if it did not exist.
bool destroy(ncclComm_t comm) {
  std::lock_guard lock(comms().mutex);
  if (comms().there.erase(comm) == 0) return false;
  delete reinterpret_cast<char*>(comm);
  count([](Counts& counts) { --counts.nccl; });
  return true;
}

}  // namespace

extern "C" {
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 0, sizeof *id);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int, ncclUniqueId, int, ncclConfig_t*) {
  *comm = make();
  return ncclSuccess;
}
ncclResult_t ncclCommSplit(ncclComm_t, int color, int, ncclComm_t* made, ncclConfig_t*) {
  *made = color == NCCL_SPLIT_NOCOLOR ? nullptr : make();
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* state) {
  *state = ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const bool was_there = destroy(comm);
  count([&](Counts& counts) { ++(was_there ? counts.aborts : counts.bad_aborts); });
  return ncclSuccess;
}
#ifdef NCCL_REVOKE_DEFAULT
ncclResult_t ncclCommRevoke(ncclComm_t, int) { return ncclSuccess; }
#endif
ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (!destroy(comm)) count([](Counts& counts) { ++counts.bad_aborts; });
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) { return "an error"; }
const char* ncclGetLastError(ncclComm_t) { return "of the fake NCCL"; }
ncclResult_t ncclGroupStart() { return ncclSuccess; }
ncclResult_t ncclGroupEnd() { return ncclSuccess; }
ncclResult_t ncclAllReduce(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                           cudaStream_t) {
  return ncclSuccess;
}
ncclResult_t ncclAllGather(const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t) {
  return ncclSuccess;
}
ncclResult_t ncclReduceScatter(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                               cudaStream_t) {
  return ncclSuccess;
}
ncclResult_t ncclReduce(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t,
                        cudaStream_t) {
  return ncclSuccess;
}
ncclResult_t ncclBroadcast(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t,
                           cudaStream_t) {
  return ncclSuccess;
}
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
ncclResult_t ncclAlltoAll(const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t) {
  return ncclSuccess;
}
#endif
ncclResult_t ncclSend(const void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t) {
  return ncclSuccess;
}
ncclResult_t ncclRecv(void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t) {
  return ncclSuccess;
}
}
