#include "comm/mpi/transfer.h"

#include <algorithm>
#include <cstring>

#include "comm/mpi/element_type.h"
#include "ir/base/check.h"

namespace heddle::comm::mpi {
namespace {

constexpr int kTransferTag = 0;
constexpr int kCollectiveTag = 1;  // the tag of the first collective of a post

// The largest number of elements in one message. MPI counts are ints, and Open MPI 4.x has no
// calls with larger counts. Longer messages are split into pieces, which MPI delivers in order.
constexpr int64_t kLongest = int64_t{1} << 27;

}  // namespace

Transfer::Transfer(const Operation& operation, int64_t post_number, int index)
    : operation_(withOwnCounts(operation, counts_)),
      post_number_(post_number),
      tag_(kCollectiveTag + index) {}

bool Transfer::advance(Channel& channel) {
  const bool transfer = isPointToPoint(operation_.kind);
  if (stage_ == Stage::Waiting) {
    if (!transfer && channel.next_post != post_number_) return false;
    stage_ = Stage::First;
    begin(channel);
  }
  if (stage_ == Stage::First && messagesAreDone()) finishFirst(channel);
  if (stage_ == Stage::Second && messagesAreDone()) stage_ = Stage::Done;
  return stage_ == Stage::Done;
}

bool Transfer::messagesAreDone() {
  for (; next_ < messages_.size(); ++next_) {
    Message& message = messages_[next_];
    int done = 0;
    MPI_Status status;
    check(message.from < 0 ? "MPI_Isend" : "MPI_Irecv", MPI_Test(&message.request, &done, &status));
    if (!done) return false;
    if (message.from < 0) continue;
    int got = 0;
    check("MPI_Get_count", MPI_Get_count(&status, elementType(operation_.dtype), &got));
    HEDDLE_USER_CHECK(got == message.elements, "rank {} of the team sent {} elements, not {}",
                      message.from, got, message.elements);
  }
  return true;
}

bool Transfer::drain() {
  bool all = true;
  for (Message& message : messages_) {
    int done = 1;
    if (message.request != MPI_REQUEST_NULL) {
      // A request that fails counts as ended, because MPI does not use its buffer any more.
      if (MPI_Test(&message.request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) done = 1;
    }
    all = all && done != 0;
  }
  return all;
}

// Starts the messages of the first round.
void Transfer::begin(Channel& channel) {
  const Operation& op = operation_;
  switch (op.kind) {
    case CollectiveKind::Send:
      return post(channel, Direction::Send, const_cast<void*>(op.send), op.count, op.peer,
                  kTransferTag);
    case CollectiveKind::Recv:
      return post(channel, Direction::Receive, op.recv, op.count, op.peer, kTransferTag);
    case CollectiveKind::Barrier:
      messages_.emplace_back();
      return check("MPI_Ibarrier", MPI_Ibarrier(channel.comm, &messages_.back().request));
    case CollectiveKind::Allreduce:
    case CollectiveKind::Reduce:
    case CollectiveKind::ReduceScatter:
      return exchangeChunks(channel);
    case CollectiveKind::Broadcast:
      return spreadChunks(channel);
    case CollectiveKind::Allgather:
      for (int rank = 0; rank < channel.size; ++rank) {
        if (rank != channel.rank) sendTo(channel, rank, op.send, op.count);
      }
      return gather(channel, op.send);
    case CollectiveKind::Gather:
      if (op.root == channel.rank) return gather(channel, op.send);
      return sendTo(channel, op.root, op.send, op.count);
    case CollectiveKind::Scatter:
      return scatter(channel);
    case CollectiveKind::AllToAll:
    case CollectiveKind::AllToAllV:
      return exchangeParts(channel);
  }
}

void Transfer::finishFirst(Channel& channel) {
  const Operation& op = operation_;
  stage_ = Stage::Second;
  messages_.clear();
  next_ = 0;
  const int64_t at = chunk(channel, channel.rank).begin;
  if (op.kind == CollectiveKind::ReduceScatter) {
    reduceChunk(channel, op.recv);
  } else if (op.kind == CollectiveKind::Broadcast) {
    shareChunks(channel, in(op.recv, at));
  } else if (op.kind == CollectiveKind::Allreduce || op.kind == CollectiveKind::Reduce) {
    const bool keeps = op.kind == CollectiveKind::Allreduce || op.root == channel.rank;
    void* result = keeps ? in(op.recv, at) : parts_.get();
    reduceChunk(channel, result);
    if (keeps) parts_.reset();
    shareChunks(channel, result);
  }
}

// --- rounds ------------------------------------------------------------------------------------

Chunk Transfer::chunk(const Channel& channel, int rank) const {
  if (operation_.kind == CollectiveKind::ReduceScatter) {
    return {rank * operation_.count, operation_.count};
  }
  return chunkOf(operation_.count, channel.size, rank);
}

void Transfer::exchangeChunks(Channel& channel) {
  const int64_t mine = chunk(channel, channel.rank).count;
  const int64_t bytes = channel.size * mine * sizeOf(operation_.dtype);
  parts_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(bytes));
  for (int rank = 0; rank < channel.size; ++rank) {
    const Chunk theirs = chunk(channel, rank);
    if (rank == channel.rank) {
      copy(in(parts_.get(), rank * mine), in(operation_.send, theirs.begin), mine);
      continue;
    }
    receiveFrom(channel, rank, in(parts_.get(), rank * mine), mine);
    sendTo(channel, rank, in(operation_.send, theirs.begin), theirs.count);
  }
}

void Transfer::spreadChunks(Channel& channel) {
  const Operation& op = operation_;
  const Chunk mine = chunk(channel, channel.rank);
  if (op.root != channel.rank) {
    return receiveFrom(channel, op.root, in(op.recv, mine.begin), mine.count);
  }
  copy(op.recv, op.send, op.count);
  for (int rank = 0; rank < channel.size; ++rank) {
    const Chunk theirs = chunk(channel, rank);
    if (rank != channel.rank) {
      sendTo(channel, rank, in(op.send, theirs.begin), theirs.count);
    }
  }
}

// Returns whether the second round sends chunks to `rank`. The root of a broadcast already has all
// chunks.
bool Transfer::getsChunks(int rank) const {
  if (operation_.kind == CollectiveKind::Broadcast) return rank != operation_.root;
  return operation_.kind == CollectiveKind::Allreduce || rank == operation_.root;
}

void Transfer::shareChunks(Channel& channel, const void* mine) {
  const Operation& op = operation_;
  for (int rank = 0; rank < channel.size; ++rank) {
    if (rank == channel.rank) continue;
    const Chunk theirs = chunk(channel, rank);
    if (getsChunks(rank)) sendTo(channel, rank, mine, chunk(channel, channel.rank).count);
    if (getsChunks(channel.rank)) {
      receiveFrom(channel, rank, in(op.recv, theirs.begin), theirs.count);
    }
  }
}

// Starts to receive the parts of all other ranks into the receive buffer, and copies `mine`, the
// part of this rank.
void Transfer::gather(Channel& channel, const void* mine) {
  const Operation& op = operation_;
  for (int rank = 0; rank < channel.size; ++rank) {
    std::byte* at = in(op.recv, rank * op.count);
    if (rank == channel.rank) {
      copy(at, mine, op.count);
    } else {
      receiveFrom(channel, rank, at, op.count);
    }
  }
}

void Transfer::scatter(Channel& channel) {
  const Operation& op = operation_;
  if (op.root != channel.rank) return receiveFrom(channel, op.root, op.recv, op.count);
  for (int rank = 0; rank < channel.size; ++rank) {
    const std::byte* at = in(op.send, rank * op.count);
    if (rank == channel.rank) {
      copy(op.recv, at, op.count);
    } else {
      sendTo(channel, rank, at, op.count);
    }
  }
}

void Transfer::exchangeParts(Channel& channel) {
  const Operation& op = operation_;
  const bool equal = op.kind == CollectiveKind::AllToAll;
  int64_t from = 0, to = 0;
  for (int rank = 0; rank < channel.size; ++rank) {
    const size_t i = rank;
    const int64_t out = equal ? op.count : op.send_counts[i];
    const int64_t back = equal ? op.count : op.recv_counts[i];
    if (rank == channel.rank) {
      copy(in(op.recv, to), in(op.send, from), out);
    } else {
      receiveFrom(channel, rank, in(op.recv, to), back);
      sendTo(channel, rank, in(op.send, from), out);
    }
    from += out;
    to += back;
  }
}

void Transfer::reduceChunk(Channel& channel, void* result) {
  const int64_t count = chunk(channel, channel.rank).count;
  if (count == 0) return;
  std::vector<const void*> sources;
  for (int rank = 0; rank < channel.size; ++rank) {
    sources.push_back(in(parts_.get(), rank * count));
  }
  reduceOnHost(result, sources, count, operation_.dtype, operation_.reduce);
}

// --- messages ----------------------------------------------------------------------------------

void Transfer::sendTo(Channel& channel, int peer, const void* data, int64_t count) {
  post(channel, Direction::Send, const_cast<void*>(data), count, peer, tag_);
}

void Transfer::receiveFrom(Channel& channel, int peer, void* data, int64_t count) {
  post(channel, Direction::Receive, data, count, peer, tag_);
}

// Starts a send or a receive. Sends a message even if there are no elements (comm/mpi/transfer.h).
void Transfer::post(Channel& channel, Direction direction, void* data, int64_t count, int peer,
                    int tag) {
  const MPI_Datatype type = elementType(operation_.dtype);
  int64_t done = 0;
  do {
    const int64_t piece = std::min(count - done, kLongest);
    const int elements = static_cast<int>(piece);
    void* at = in(data, done);
    MPI_Request request = MPI_REQUEST_NULL;
    if (direction == Direction::Send) {
      check("MPI_Isend", MPI_Isend(at, elements, type, peer, tag, channel.comm, &request));
    } else {
      check("MPI_Irecv", MPI_Irecv(at, elements, type, peer, tag, channel.comm, &request));
    }
    messages_.push_back({request, direction == Direction::Send ? -1 : peer, piece});
    done += piece;
  } while (done < count);
}

void Transfer::copy(void* to, const void* from, int64_t count) const {
  if (count == 0 || to == from) return;
  std::memcpy(to, from, count * sizeOf(operation_.dtype));
}

std::byte* Transfer::in(void* base, int64_t index) const {
  return static_cast<std::byte*>(base) + index * sizeOf(operation_.dtype);
}

const std::byte* Transfer::in(const void* base, int64_t index) const {
  return static_cast<const std::byte*>(base) + index * sizeOf(operation_.dtype);
}

}  // namespace heddle::comm::mpi
