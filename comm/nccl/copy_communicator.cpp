#include "comm/nccl/copy_communicator.h"

#include <algorithm>
#include <exception>

#include "comm/operation.h"
#include "ir/base/error.h"

namespace heddle::comm::nccl {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(1);
constexpr auto kHeardPoll = std::chrono::milliseconds(10);
// Streams that go on meet peers once more, with numbers that mean nothing: before that the ranks of
// the host hear of it, so that none passes on what it has been brought (docs/design.md, 9).
constexpr auto kGrace = std::chrono::milliseconds(500);
constexpr auto kMostGrace = std::chrono::seconds(5);
// How long waits are ended over and over: a peer that has posted more may store its number behind.
constexpr auto kEndWaits = std::chrono::seconds(15);
// Ahead of any number that is waited for.
constexpr uint32_t kFarAhead = uint32_t{1} << 30;

}  // namespace

int64_t CopyCommunicator::Parts::countOf(int rank) const {
  return std::clamp<int64_t>(total - rank * count, 0, count);
}

CopyCommunicator::CopyCommunicator(std::unique_ptr<SharedArena> arena, int rank, int size,
                                   int device, DeviceReduce reduce, std::shared_ptr<NcclJob> job)
    : arena_(std::move(arena)),
      rank_(rank),
      size_(size),
      device_(device),
      reduce_(std::move(reduce)),
      job_(std::move(job)),
      fault_(job_->asFault()),
      sources_(static_cast<size_t>(size)) {
  std::vector<uint32_t*> theirs;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    theirs.push_back(arena_->flag(peer, rank_));
    mine_.push_back(arena_->flag(rank_, peer));
  }
  barrier_ = StreamBarrier(theirs, mine_);
  HEDDLE_CUDA(cudaSetDevice, device_);
  HEDDLE_CUDA(cudaEventCreateWithFlags, &posted_, cudaEventDisableTiming);
  try {
    checkCuda(makeApart(), "cudaStreamCreateWithPriority");
    job_->add(this);
  } catch (...) {
    cudaEventDestroy(posted_);
    if (apart_ != nullptr) cudaStreamDestroy(apart_);
    throw;
  }
}

// Of a priority that no stream of a program has: streams that share a queue of the GPU stand behind
// each other, and what ends the waits of the others must not.
cudaError_t CopyCommunicator::makeApart() {
  int least = 0, greatest = 0;
  const cudaError_t status = cudaDeviceGetStreamPriorityRange(&least, &greatest);
  if (status != cudaSuccess) return status;
  return cudaStreamCreateWithPriority(&apart_, cudaStreamNonBlocking, (least + greatest) / 2);
}

CopyCommunicator::~CopyCommunicator() {
  cudaSetDevice(device_);
  const std::string why = fault_();
  if (!why.empty()) job_->giveUp(why);
  job_->remove(this);
  if (ender_.joinable()) ender_.join();
  if (waitForStreams()) {
    arena_->close(fault_);
  } else {
    arena_->leave();
  }
  cudaEventDestroy(posted_);
  cudaStreamDestroy(apart_);
}

// --- posting ------------------------------------------------------------------------------------

Ticket CopyCommunicator::post(std::span<const Operation> group, void* native_stream) {
  checkGroup(group, rank_, size_);
  HEDDLE_CUDA(cudaSetDevice, device_);
  const auto stream = static_cast<cudaStream_t>(native_stream);
  for (const Operation& op : group) {
    HEDDLE_USER_CHECK(mayCopy(op.kind), "{} over a copy channel", describe(op));
  }
  std::string why;
  std::exception_ptr error;
  {
    std::lock_guard lock(mutex_);
    is_posting_.store(true);  // before it looks: who gives up either is seen here or sees this
    why = failure();
    try {
      if (why.empty()) enqueueAll(group, stream);
    } catch (const std::exception& failed) {
      why = failed.what();
      error = std::current_exception();
      cudaEventRecord(posted_, stream);  // behind what it has left there
    }
    is_posting_.store(false);
    // What was given up meanwhile may have been let through.
    if (why.empty()) why = failure();
    if (why.empty()) return next_++;
  }
  job_->giveUp(why);
  if (error) std::rethrow_exception(error);
  userError("{}", job_->verdict());
}

void CopyCommunicator::enqueueAll(std::span<const Operation> group, cudaStream_t stream) {
  // Meetings of a copy channel are numbered in the order of its posts, whatever their streams.
  HEDDLE_CUDA(cudaStreamWaitEvent, stream, posted_, 0);
  for (const Operation& op : group) enqueue(op, stream);
  HEDDLE_CUDA(cudaEventRecord, posted_, stream);
}

void CopyCommunicator::enqueue(const Operation& op, cudaStream_t stream) {
  const int64_t element = sizeOf(op.dtype);
  const int64_t part = static_cast<int64_t>(arena_->partBytes()) / element;
  const bool cut = op.kind == CollectiveKind::Allreduce;  // one buffer, in parts of our own
  const int64_t most = cut ? part * size_ : part;
  for (int64_t at = 0; at < op.count; at += most) {
    const int64_t count = std::min(most, op.count - at);
    Piece piece;
    piece.send = static_cast<const std::byte*>(op.send) + at * element;
    piece.recv = static_cast<std::byte*>(op.recv) + at * element;
    const int64_t each = (count + size_ - 1) / size_;
    piece.parts = cut ? Parts{each, each, count} : Parts{op.count, count, count * size_};
    piece.dtype = op.dtype;
    piece.reduce = op.reduce;
    move(op.kind, piece, stream);
    turn_ = 1 - turn_;
  }
}

// What is copied on this GPU takes an SM, and waits until a product beside it leaves one: so both
// copies of the own part are made at once, and the sum's straight behind it.
void CopyCommunicator::move(CollectiveKind kind, const Piece& piece, cudaStream_t stream) {
  std::byte* out = arena_->out(rank_, turn_);
  std::byte* own = piece.recv + piece.begin(rank_);
  const int64_t bytes = piece.bytes(piece.parts.countOf(rank_));
  if (kind == CollectiveKind::Allgather) {
    copyHere(out, piece.send, bytes, stream);
    copyHere(own, piece.send, bytes, stream);
    meet(stream);
    return fetch(piece, stream);
  }
  bring(piece, stream);
  meet(stream);
  if (kind == CollectiveKind::ReduceScatter) return sum(piece, piece.recv, stream);
  sum(piece, out, stream);
  copyHere(own, out, bytes, stream);
  meet(stream);
  fetch(piece, stream);
}

// Peers in another order on each rank, so that not all copy to the same one at once.
void CopyCommunicator::bring(const Piece& piece, cudaStream_t stream) {
  for (int i = 1; i < size_; ++i) {
    const int peer = (rank_ + i) % size_;
    add(arena_->in(peer, turn_, rank_), piece.send + piece.begin(peer),
        piece.bytes(piece.parts.countOf(peer)));
  }
  copy(stream);
}

void CopyCommunicator::sum(const Piece& piece, void* to, cudaStream_t stream) {
  for (int peer = 0; peer < size_; ++peer)
    sources_[static_cast<size_t>(peer)] = arena_->in(rank_, turn_, peer);
  sources_[static_cast<size_t>(rank_)] = piece.send + piece.begin(rank_);
  reduce_(to, sources_, piece.parts.countOf(rank_), piece.dtype, piece.reduce, stream);
}

void CopyCommunicator::fetch(const Piece& piece, cudaStream_t stream) {
  for (int i = 1; i < size_; ++i) {
    const int peer = (rank_ + i) % size_;
    add(piece.recv + piece.begin(peer), arena_->out(peer, turn_),
        piece.bytes(piece.parts.countOf(peer)));
  }
  copy(stream);
}

void CopyCommunicator::copyHere(void* to, const void* from, int64_t bytes, cudaStream_t stream) {
  if (bytes == 0 || to == from) return;
  HEDDLE_CUDA(cudaMemcpyAsync, to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice,
              stream);
}

void CopyCommunicator::add(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  to_.push_back(to);
  from_.push_back(from);
  bytes_.push_back(static_cast<size_t>(bytes));
}

// To or from peers, all at once: one call, and the links stay full between them. Where CUDA can be
// told so, not with the SMs.
void CopyCommunicator::copy(cudaStream_t stream) {
  if (to_.empty()) return;
#if CUDART_VERSION >= 13000
  cudaMemcpyAttributes how = {};
  how.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  how.flags = cudaMemcpyFlagPreferOverlapWithCompute;
  size_t first = 0;
  HEDDLE_CUDA(cudaMemcpyBatchAsync, to_.data(), from_.data(), bytes_.data(), to_.size(), &how,
              &first, 1, stream);
#else
  for (size_t i = 0; i < to_.size(); ++i) {
    HEDDLE_CUDA(cudaMemcpyAsync, to_[i], from_[i], bytes_[i], cudaMemcpyDeviceToDevice, stream);
  }
#endif
  to_.clear();
  from_.clear();
  bytes_.clear();
}

// --- the end ------------------------------------------------------------------------------------

bool CopyCommunicator::test(Ticket ticket) {
  {
    std::lock_guard lock(mutex_);
    HEDDLE_USER_CHECK(ticket >= 0 && ticket < next_, "ticket {} was never given out", ticket);
  }
  probe();
  return true;
}

void CopyCommunicator::probe() {
  // Before its waits end, which who waits for them would take for success.
  HEDDLE_USER_CHECK(!job_->gaveUp(), "{}", job_->verdict());
  const std::string why = fault_();
  if (why.empty()) return;
  job_->giveUp(why);
  userError("{}", job_->verdict());
}

std::string CopyCommunicator::failure() {
  std::lock_guard lock(failure_mutex_);
  return failure_;
}

void CopyCommunicator::giveUp(const std::string& why) noexcept {
  try {
    std::lock_guard lock(failure_mutex_);
    if (!failure_.empty()) return;
    failure_ = why;
    ender_ = std::thread([this] { endWaits(); });
  } catch (const std::exception&) {  // no more threads: the waits end with the process
  }
}

void CopyCommunicator::endWaits() noexcept {
  const auto begin = std::chrono::steady_clock::now();
  const auto isOver = [&] {
    return !is_posting_.load() && cudaEventQuery(posted_) != cudaErrorNotReady;
  };
  try {
    HEDDLE_CUDA(cudaSetDevice, device_);
    StreamBarrier all(mine_, {});
    bool ending = false;
    while (!isOver() && std::chrono::steady_clock::now() < begin + kEndWaits) {
      const bool may = ending || mayEndWaits(std::chrono::steady_clock::now() - begin);
      if (may) all.arrive(apart_, number_.load() + kFarAhead);
      ending = may;
      std::this_thread::sleep_for(may ? kPoll : kHeardPoll);
    }
  } catch (const UserError&) {  // the GPU has met an error: nothing waits any longer
  }
}

bool CopyCommunicator::mayEndWaits(std::chrono::steady_clock::duration since) const {
  return since > kMostGrace || (since > kGrace && job_->seat()->allKnow());
}

bool CopyCommunicator::waitForStreams() {
  const auto end = std::chrono::steady_clock::now() + callDeadline();
  while (cudaEventQuery(posted_) == cudaErrorNotReady) {
    if (!fault_().empty() || std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

}  // namespace heddle::comm::nccl
