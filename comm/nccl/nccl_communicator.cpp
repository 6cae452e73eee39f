#include "comm/nccl/nccl_communicator.h"

#include <algorithm>
#include <thread>

#include "comm/nccl/nccl_call.h"
#include "comm/operation.h"
#include "ir/error.h"

namespace heddle::comm::nccl {
namespace {

// Every member's bytes, by rank.
std::vector<char> gather(Communicator& comm, const char* mine, size_t bytes) {
  std::vector<char> all(bytes * static_cast<size_t>(comm.size()));
  const Operation op{CollectiveKind::Allgather, mine, all.data(), static_cast<int64_t>(bytes),
                     DType::Bool};
  const Ticket ticket = comm.post({&op, 1}, nullptr);
  while (!comm.test(ticket)) std::this_thread::yield();
  return all;
}

}  // namespace

NcclCommunicator::NcclCommunicator(Communicator& bootstrap, int device,
                                   std::shared_ptr<const std::atomic<bool>> aborted)
    : rank_(bootstrap.rank()),
      size_(bootstrap.size()),
      device_(device),
      aborted_(std::move(aborted)) {
  HEDDLE_CHECK(!bootstrap.isStreamOrdered(), "NCCL needs a bootstrap on host memory");
  checkCuda("cudaSetDevice", cudaSetDevice(device_));
  try {
    initialise(bootstrap);
  } catch (...) {
    if (comm_ != nullptr) ncclCommAbort(comm_);
    throw;
  }
}

void NcclCommunicator::initialise(Communicator& bootstrap) {
  ncclUniqueId id = {};
  if (rank_ == 0) check("ncclGetUniqueId", ncclGetUniqueId(&id), nullptr);
  const std::vector<char> ids = gather(bootstrap, id.internal, sizeof id.internal);
  std::copy_n(ids.begin(), sizeof id.internal, id.internal);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  check("ncclCommInitRankConfig", ncclCommInitRankConfig(&comm_, size_, id, rank_, &config), comm_);
  settle("ncclCommInitRankConfig", comm_);
  const char here = 0;
  gather(bootstrap, &here, 1);
}

NcclCommunicator::~NcclCommunicator() { close(); }

void NcclCommunicator::close() noexcept {
  cudaSetDevice(device_);
  if (aborted_->load()) {
    ncclCommAbort(comm_);
    return;
  }
  try {
    check("ncclCommFinalize", ncclCommFinalize(comm_), comm_);
    settle("ncclCommFinalize", comm_);
    ncclCommDestroy(comm_);
  } catch (const UserError&) {
    ncclCommAbort(comm_);  // a peer is gone
  }
}

Ticket NcclCommunicator::post(std::span<const Operation> group, void* stream) {
  checkGroup(group, size_);
  checkCuda("cudaSetDevice", cudaSetDevice(device_));
  check("ncclGroupStart", ncclGroupStart(), comm_);
  try {
    for (const Operation& op : group) enqueue(op, static_cast<cudaStream_t>(stream));
  } catch (const UserError&) {
    ncclGroupEnd();
    throw;
  }
  check("ncclGroupEnd", ncclGroupEnd(), comm_);
  settle(group.size() == 1 ? describe(group.front()) : "ncclGroupEnd", comm_);
  return next_++;
}

void NcclCommunicator::enqueue(const Operation& op, cudaStream_t stream) {
  const ncclDataType_t type = dataTypeOf(op.dtype);
  const size_t count = static_cast<size_t>(op.count);
  const ncclRedOp_t reduce = operatorOf(op.reduce, op.dtype);
  switch (op.kind) {
    case CollectiveKind::Allreduce:
      return check("ncclAllReduce",
                   ncclAllReduce(op.send, op.recv, count, type, reduce, comm_, stream), comm_);
    case CollectiveKind::Allgather:
      return check("ncclAllGather", ncclAllGather(op.send, op.recv, count, type, comm_, stream),
                   comm_);
    case CollectiveKind::ReduceScatter:
      return check("ncclReduceScatter",
                   ncclReduceScatter(op.send, op.recv, count, type, reduce, comm_, stream), comm_);
    case CollectiveKind::Send:
      return check("ncclSend", ncclSend(op.send, count, type, op.peer, comm_, stream), comm_);
    case CollectiveKind::Recv:
      return check("ncclRecv", ncclRecv(op.recv, count, type, op.peer, comm_, stream), comm_);
  }
}

bool NcclCommunicator::test(Ticket ticket) {
  HEDDLE_USER_CHECK(ticket >= 0 && ticket < next_, "ticket {} was never given out", ticket);
  ncclResult_t state = ncclSuccess;
  check("ncclCommGetAsyncError", ncclCommGetAsyncError(comm_, &state), comm_);
  check("NCCL", state, comm_);
  return true;
}

}  // namespace heddle::comm::nccl
