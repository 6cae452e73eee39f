#include "comm/nccl/copy_communicator.h"

#include <algorithm>
#include <exception>

#include "comm/operation.h"
#include "ir/base/check.h"

namespace heddle::comm::nccl {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(1);
constexpr auto kGracePoll = std::chrono::milliseconds(10);
// After a failure, releaseWaits() ends the waits of the streams, and the streams continue with
// invalid data. All ranks of the machine should know of the failure before that. releaseWaits()
// therefore waits at least kGrace, and longer (up to kMostGrace) if some rank does not know of the
// failure yet.
constexpr auto kGrace = std::chrono::milliseconds(500);
constexpr auto kMostGrace = std::chrono::seconds(5);
// releaseWaits() repeats its writes to the flags, and returns after this time at the latest. One
// write is not enough, because another rank with more posted work may overwrite the flags.
constexpr auto kReleaseLimit = std::chrono::seconds(15);
// releaseWaits() writes this constant plus the number of the latest barrier to the flags. The sum
// exceeds every number for which a stream waits.
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
  HEDDLE_CUDA(cudaEventCreateWithFlags, &latest_post_, cudaEventDisableTiming);
  try {
    checkCuda(createReleaseStream(), "cudaStreamCreateWithPriority");
    job_->add(this);
  } catch (...) {
    cudaEventDestroy(latest_post_);
    if (release_stream_ != nullptr) cudaStreamDestroy(release_stream_);
    throw;
  }
}

// Creates release_stream_, which ends the waits of other streams. If release_stream_ shared a
// hardware queue of the GPU with a waiting stream, its work would have to wait for that stream.
// release_stream_ therefore gets a priority that no other stream of heddle has.
cudaError_t CopyCommunicator::createReleaseStream() {
  int least = 0, greatest = 0;
  const cudaError_t status = cudaDeviceGetStreamPriorityRange(&least, &greatest);
  if (status != cudaSuccess) return status;
  return cudaStreamCreateWithPriority(&release_stream_, cudaStreamNonBlocking,
                                      (least + greatest) / 2);
}

// Waits for the streams before it closes the memory that they access. If they do not end, the
// memory is never freed (SharedArena::leave()).
CopyCommunicator::~CopyCommunicator() {
  cudaSetDevice(device_);
  const std::string why = fault_();
  if (!why.empty()) job_->giveUp(why);
  job_->remove(this);
  if (release_thread_.joinable()) release_thread_.join();
  if (waitForStreams()) {
    arena_->close(fault_);
  } else {
    arena_->leave();
  }
  cudaEventDestroy(latest_post_);
  cudaStreamDestroy(release_stream_);
}

// --- posting ------------------------------------------------------------------------------------

Ticket CopyCommunicator::post(std::span<const Operation> group, void* native_stream) {
  checkGroup(group, rank_, size_);
  HEDDLE_CUDA(cudaSetDevice, device_);
  const auto stream = static_cast<cudaStream_t>(native_stream);
  for (const Operation& op : group) {
    HEDDLE_USER_CHECK(mayCopy(op.kind), "{} cannot run over a copy channel", describe(op));
  }
  std::string why;
  std::exception_ptr error;
  {
    std::lock_guard lock(mutex_);
    // The order of the next two statements matters if giveUp() is called at the same time: either
    // releaseWaits() sees this post, or this post sees the failure.
    is_posting_.store(true);
    why = failure();
    try {
      if (why.empty()) enqueueAll(group, stream);
    } catch (const std::exception& failed) {
      why = failed.what();
      error = std::current_exception();
      cudaEventRecord(latest_post_, stream);  // marks the end of the work that was enqueued
    }
    is_posting_.store(false);
    // If giveUp() was called during this post, the waits of the post may have ended before the data
    // has arrived. The post must then throw.
    if (why.empty()) why = failure();
    if (why.empty()) return next_++;
  }
  job_->giveUp(why);
  if (error) std::rethrow_exception(error);
  userError("{}", job_->finalFault());
}

void CopyCommunicator::enqueueAll(std::span<const Operation> group, cudaStream_t stream) {
  // The barriers are numbered in the order of the posts, so the posts must also execute in this
  // order, even on different streams.
  HEDDLE_CUDA(cudaStreamWaitEvent, stream, latest_post_, 0);
  for (const Operation& op : group) enqueue(op, stream);
  HEDDLE_CUDA(cudaEventRecord, latest_post_, stream);
}

void CopyCommunicator::enqueue(const Operation& op, cudaStream_t stream) {
  const int64_t element = sizeOf(op.dtype);
  const int64_t part = static_cast<int64_t>(arena_->partBytes()) / element;
  // An allgather or reduce-scatter has one part per rank. The buffers of an allreduce have no
  // parts, so this function splits them.
  const bool splits = op.kind == CollectiveKind::Allreduce;
  const int64_t most = splits ? part * size_ : part;
  for (int64_t at = 0; at < op.count; at += most) {
    const int64_t count = std::min(most, op.count - at);
    Piece piece;
    piece.send = static_cast<const std::byte*>(op.send) + at * element;
    piece.recv = static_cast<std::byte*>(op.recv) + at * element;
    const int64_t each = (count + size_ - 1) / size_;
    piece.parts = splits ? Parts{each, each, count} : Parts{op.count, count, count * size_};
    piece.dtype = op.dtype;
    piece.reduce = op.reduce;
    move(op.kind, piece, stream);
    half_ = 1 - half_;
  }
}

// Moves one piece. Copies within the GPU and sums use SMs, and may wait until a matrix product
// releases an SM. They are enqueued directly after each other, so that they wait only once.
void CopyCommunicator::move(CollectiveKind kind, const Piece& piece, cudaStream_t stream) {
  std::byte* out = arena_->out(rank_, half_);
  std::byte* own = piece.recv + piece.begin(rank_);
  const int64_t bytes = piece.bytes(piece.parts.countOf(rank_));
  if (kind == CollectiveKind::Allgather) {
    copyLocally(out, piece.send, bytes, stream);
    copyLocally(own, piece.send, bytes, stream);
    arriveAndWait(stream);
    return pull(piece, stream);
  }
  push(piece, stream);
  arriveAndWait(stream);
  if (kind == CollectiveKind::ReduceScatter) return sum(piece, piece.recv, stream);
  sum(piece, out, stream);
  copyLocally(own, out, bytes, stream);
  arriveAndWait(stream);
  pull(piece, stream);
}

// Copies parts to the other ranks. Each rank begins with the next higher rank, so that the ranks
// do not all copy to the same rank at the same time.
void CopyCommunicator::push(const Piece& piece, cudaStream_t stream) {
  for (int i = 1; i < size_; ++i) {
    const int peer = (rank_ + i) % size_;
    add(arena_->in(peer, half_, rank_), piece.send + piece.begin(peer),
        piece.bytes(piece.parts.countOf(peer)));
  }
  copy(stream);
}

void CopyCommunicator::sum(const Piece& piece, void* to, cudaStream_t stream) {
  for (int peer = 0; peer < size_; ++peer) sources_[peer] = arena_->in(rank_, half_, peer);
  sources_[rank_] = piece.send + piece.begin(rank_);
  reduce_(to, sources_, piece.parts.countOf(rank_), piece.dtype, piece.reduce, stream);
}

void CopyCommunicator::pull(const Piece& piece, cudaStream_t stream) {
  for (int i = 1; i < size_; ++i) {
    const int peer = (rank_ + i) % size_;
    add(piece.recv + piece.begin(peer), arena_->out(peer, half_),
        piece.bytes(piece.parts.countOf(peer)));
  }
  copy(stream);
}

void CopyCommunicator::copyLocally(void* to, const void* from, int64_t bytes, cudaStream_t stream) {
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

// Starts the copies that add() has collected. With CUDA 13 or later, one call starts all of them,
// so that the links between GPUs are not idle between two copies. The call also asks CUDA to use
// no SMs for the copies.
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

// --- failures and the end of posted work --------------------------------------------------------

bool CopyCommunicator::test(Ticket ticket) {
  {
    std::lock_guard lock(mutex_);
    HEDDLE_USER_CHECK(ticket >= 0 && ticket < next_, "post() never returned ticket {}", ticket);
  }
  probe();
  return true;
}

void CopyCommunicator::probe() {
  // gaveUp() becomes true before the waits of the streams end with invalid data. A caller that
  // calls probe() after its stream has ended therefore gets the error.
  HEDDLE_USER_CHECK(!job_->gaveUp(), "{}", job_->finalFault());
  const std::string why = fault_();
  if (why.empty()) return;
  job_->giveUp(why);
  userError("{}", job_->finalFault());
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
    release_thread_ = std::thread([this] { releaseWaits(); });
  } catch (const std::exception&) {  // no thread can be created: the waits end with the process
  }
}

void CopyCommunicator::releaseWaits() noexcept {
  const auto begin = std::chrono::steady_clock::now();
  const auto hasEnded = [&] {
    return !is_posting_.load() && cudaEventQuery(latest_post_) != cudaErrorNotReady;
  };
  try {
    HEDDLE_CUDA(cudaSetDevice, device_);
    StreamBarrier all(mine_, {});
    bool ending = false;
    while (!hasEnded() && std::chrono::steady_clock::now() < begin + kReleaseLimit) {
      const bool allowed = ending || mayReleaseWaits(std::chrono::steady_clock::now() - begin);
      if (allowed) all.arrive(release_stream_, number_.load() + kFarAhead);
      ending = allowed;
      std::this_thread::sleep_for(allowed ? kPoll : kGracePoll);
    }
  } catch (const UserError&) {  // the GPU has failed: no stream waits any more
  }
}

bool CopyCommunicator::mayReleaseWaits(std::chrono::steady_clock::duration since) const {
  return since > kMostGrace || (since > kGrace && job_->copyChannelMember()->allKnow());
}

bool CopyCommunicator::waitForStreams() {
  const auto end = std::chrono::steady_clock::now() + callDeadline();
  while (cudaEventQuery(latest_post_) == cudaErrorNotReady) {
    if (!fault_().empty() || std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

}  // namespace heddle::comm::nccl
