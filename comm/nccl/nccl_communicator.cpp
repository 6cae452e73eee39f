#include "comm/nccl/nccl_communicator.h"

#include <chrono>

#include "comm/nccl/nccl_init.h"
#include "comm/operation.h"
#include "ir/base/check.h"

namespace heddle::comm::nccl {
namespace {

const std::byte* elementAt(const void* base, int64_t index, DType dtype) {
  return static_cast<const std::byte*>(base) + index * sizeOf(dtype);
}
std::byte* elementAt(void* base, int64_t index, DType dtype) {
  return static_cast<std::byte*>(base) + index * sizeOf(dtype);
}

// If a running call does not return within this time after ncclCommRevoke, the communicator leaks.
constexpr auto kLeave = std::chrono::seconds(5);

// Before version 2.28, NCCL has no all-to-all, and sends and receives replace it.
constexpr bool kHasAllToAll = NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0);

// Returns whether one NCCL call executes a collective of this kind. All other kinds need sends and
// receives in an NCCL group.
bool isOneCall(CollectiveKind kind) {
  if (kind == CollectiveKind::AllToAll) return kHasAllToAll;
  return kind == CollectiveKind::Allreduce || kind == CollectiveKind::Allgather ||
         kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::Reduce ||
         kind == CollectiveKind::Broadcast || kind == CollectiveKind::Barrier;
}

}  // namespace

NcclCommunicator::NcclCommunicator(ncclComm_t comm, int rank, int size, int device,
                                   std::shared_ptr<NcclJob> job)
    : rank_(rank),
      size_(size),
      device_(device),
      job_(std::move(job)),
      fault_(job_->asFault()),
      comm_(comm) {
  try {
    HEDDLE_CUDA(cudaSetDevice, device_);
    HEDDLE_CUDA(cudaMalloc, &flag_, 1);
    job_->add(this);
  } catch (...) {
    cudaFree(flag_);
    ncclCommAbort(comm_);
    throw;
  }
}

// Marks an NCCL call that may wait for other ranks: sets its start time (busySince()) in the
// constructor and clears it in the destructor.
class NcclCommunicator::Busy {
 public:
  explicit Busy(NcclCommunicator& self) : self_(self) {
    std::lock_guard lock(self_.mutex_);
    HEDDLE_USER_CHECK(self_.failure_.empty(), "{}", self_.failure_);
    self_.busy_since_.store(std::chrono::steady_clock::now().time_since_epoch().count(),
                            std::memory_order_relaxed);
  }
  ~Busy() {
    std::lock_guard lock(self_.mutex_);
    self_.busy_since_.store(0, std::memory_order_relaxed);
    if (!self_.failure_.empty()) self_.idle_.notify_all();
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  NcclCommunicator& self_;
};

NcclCommunicator::~NcclCommunicator() {
  cudaSetDevice(device_);
  // After a failure, giveUp() must abort this communicator together with all others of the rank.
  // The destructor must therefore call giveUp() before remove().
  const std::string why = fault_();
  if (!why.empty()) job_->giveUp(why);
  job_->remove(this);
  if (comm_ != nullptr) destroy(comm_, device_, fault_);
  cudaFree(flag_);
}

void NcclCommunicator::giveUp(const std::string& why) noexcept {
  cudaSetDevice(device_);
  std::unique_lock lock(mutex_);
  if (comm_ == nullptr) return;
  failure_ = why;
#ifdef NCCL_REVOKE_DEFAULT
  if (busySince() != 0) {
    // ncclCommRevoke ends the running call, but does not free memory that the call still reads.
    // Older versions of NCCL only have ncclCommAbort, which also frees this memory.
    lock.unlock();
    ncclCommRevoke(comm_, NCCL_REVOKE_DEFAULT);
    lock.lock();
    if (!idle_.wait_for(lock, kLeave, [this] { return busySince() == 0; })) return;
  }
#endif
  ncclCommAbort(comm_);
  comm_ = nullptr;
}

Ticket NcclCommunicator::post(std::span<const Operation> group, void* stream) {
  checkGroup(group, rank_, size_);
  HEDDLE_CUDA(cudaSetDevice, device_);
  std::string why;
  try {
    const Busy busy(*this);
    enqueueGroup(group, static_cast<cudaStream_t>(stream));
  } catch (const UserError& error) {
    why = error.what();
  }
  {
    std::lock_guard lock(mutex_);
    if (!failure_.empty()) why = failure_;  // giveUp() ended the call, for this reason
    if (why.empty()) return next_++;
  }
  job_->giveUp(why);
  userError("{}", why);
}

void NcclCommunicator::enqueueGroup(std::span<const Operation> group, cudaStream_t stream) {
  if (group.size() == 1 && isOneCall(group[0].kind)) return enqueue(group[0], stream);
  check("ncclGroupStart", ncclGroupStart(), comm_);
  try {
    for (const Operation& op : group) enqueue(op, stream);
  } catch (const UserError&) {
    ncclGroupEnd();
    throw;
  }
  check("ncclGroupEnd", ncclGroupEnd(), comm_);
}

void NcclCommunicator::enqueue(const Operation& op, cudaStream_t stream) {
  const ncclDataType_t type = dataTypeOf(op.dtype);
  const size_t count = op.count;
  const ncclRedOp_t reduce = operatorOf(op.reduce, op.dtype, size_);
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
    case CollectiveKind::Reduce:
    case CollectiveKind::Broadcast:
    case CollectiveKind::Gather:
    case CollectiveKind::Scatter:
      return enqueueRooted(op, stream);
    case CollectiveKind::AllToAll:
    case CollectiveKind::AllToAllV:
      return enqueueParts(op, stream);
    case CollectiveKind::Barrier:
      return check("ncclAllReduce",
                   ncclAllReduce(flag_, flag_, 1, ncclUint8, ncclMax, comm_, stream), comm_);
    case CollectiveKind::Send:
      return check("ncclSend", ncclSend(op.send, count, type, op.peer, comm_, stream), comm_);
    case CollectiveKind::Recv:
      return check("ncclRecv", ncclRecv(op.recv, count, type, op.peer, comm_, stream), comm_);
  }
}

void NcclCommunicator::enqueueRooted(const Operation& op, cudaStream_t stream) {
  const ncclDataType_t type = dataTypeOf(op.dtype);
  const size_t count = op.count;
  const bool root = rank_ == op.root;
  if (op.kind == CollectiveKind::Reduce) {
    const ncclRedOp_t reduce = operatorOf(op.reduce, op.dtype, size_);
    return check("ncclReduce",
                 ncclReduce(op.send, op.recv, count, type, reduce, op.root, comm_, stream), comm_);
  }
  if (op.kind == CollectiveKind::Broadcast) {
    return check("ncclBroadcast",
                 ncclBroadcast(op.send, op.recv, count, type, op.root, comm_, stream), comm_);
  }
  const bool gathers = op.kind == CollectiveKind::Gather;
  for (int rank = 0; root && rank < size_; ++rank) {
    const int64_t at = rank * op.count;
    // In place: the root's own part needs no copy.
    if (rank == rank_ && op.count > 0 &&
        (gathers ? elementAt(op.recv, at, op.dtype) == op.send
                 : elementAt(op.send, at, op.dtype) == op.recv)) {
      continue;
    }
    if (gathers) receive(elementAt(op.recv, at, op.dtype), op.count, op.dtype, rank, stream);
    if (!gathers) send(elementAt(op.send, at, op.dtype), op.count, op.dtype, rank, stream);
    if (rank != rank_) continue;
    if (gathers) send(op.send, op.count, op.dtype, rank, stream);
    if (!gathers) receive(op.recv, op.count, op.dtype, rank, stream);
  }
  if (root) return;
  if (gathers) send(op.send, op.count, op.dtype, op.root, stream);
  if (!gathers) receive(op.recv, op.count, op.dtype, op.root, stream);
}

void NcclCommunicator::enqueueParts(const Operation& op, cudaStream_t stream) {
  const bool equal = op.kind == CollectiveKind::AllToAll;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
  // This call does the same as the code below, but needs less time on the host.
  if (equal && op.count > 0) {
    return check("ncclAlltoAll",
                 ncclAlltoAll(op.send, op.recv, static_cast<size_t>(op.count), dataTypeOf(op.dtype),
                              comm_, stream),
                 comm_);
  }
#endif
  int64_t from = 0, to = 0;
  for (int rank = 0; rank < size_; ++rank) {
    const size_t i = rank;
    const int64_t out = equal ? op.count : op.send_counts[i];
    const int64_t back = equal ? op.count : op.recv_counts[i];
    send(elementAt(op.send, from, op.dtype), out, op.dtype, rank, stream);
    receive(elementAt(op.recv, to, op.dtype), back, op.dtype, rank, stream);
    from += out;
    to += back;
  }
}

// Sends one message of a collective. Skips an empty message, as receive() does.
void NcclCommunicator::send(const void* data, int64_t count, DType dtype, int peer,
                            cudaStream_t stream) {
  if (count == 0) return;
  check("ncclSend",
        ncclSend(data, static_cast<size_t>(count), dataTypeOf(dtype), peer, comm_, stream), comm_);
}

void NcclCommunicator::receive(void* data, int64_t count, DType dtype, int peer,
                               cudaStream_t stream) {
  if (count == 0) return;
  check("ncclRecv",
        ncclRecv(data, static_cast<size_t>(count), dataTypeOf(dtype), peer, comm_, stream), comm_);
}

bool NcclCommunicator::test(Ticket ticket) {
  {
    std::lock_guard lock(mutex_);
    HEDDLE_USER_CHECK(ticket >= 0 && ticket < next_, "post() never returned ticket {}", ticket);
  }
  probe();
  return true;
}

void NcclCommunicator::probe() {
  // gaveUp() becomes true before the kernels are aborted. A caller that calls probe() after the
  // kernels have ended therefore gets the error.
  HEDDLE_USER_CHECK(!job_->gaveUp(), "{}", job_->finalFault());
  std::string why = fault_();
  if (why.empty()) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return;  // another thread is starting or ending a call
    HEDDLE_USER_CHECK(failure_.empty(), "{}", failure_);
    if (busySince() != 0) return;  // NcclJob watches the running call
    why = error();
  }
  if (why.empty()) return;
  job_->giveUp(why);
  userError("{}", job_->finalFault());
}

std::string NcclCommunicator::error() {
  std::string why;
  try {
    ncclResult_t state = ncclSuccess;
    check("ncclCommGetAsyncError", ncclCommGetAsyncError(comm_, &state), comm_);
    check("NCCL", state, comm_);
  } catch (const UserError& failed) {
    why = failed.what();
  }
  return why;
}

}  // namespace heddle::comm::nccl
