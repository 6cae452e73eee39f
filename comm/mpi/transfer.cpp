#include "comm/mpi/transfer.h"

#include <limits>

#include "comm/operation.h"
#include "ir/error.h"

namespace heddle::comm::mpi {
namespace {

constexpr int kTransferTag = 0;

// MPI only moves elements, so their size is all it needs to know.
MPI_Datatype wordOf(DType dtype) {
  switch (sizeOf(dtype)) {
    case 1:
      return MPI_UINT8_T;
    case 2:
      return MPI_UINT16_T;
    case 4:
      return MPI_UINT32_T;
    default:
      return MPI_UINT64_T;
  }
}

}  // namespace

void checkCounts(const Operation& op, int size) {
  const bool transfer = isPointToPoint(op.kind) || op.kind == CollectiveKind::Allreduce;
  // Chunks are rounded up, so the sum of them may exceed the count a little.
  const int64_t elements = transfer ? op.count + size : op.count * size;
  HEDDLE_USER_CHECK(elements <= std::numeric_limits<int>::max(),
                    "{} on {} ranks: MPI transfers at most 2^31 - 1 elements at once", describe(op),
                    size);
}

bool Transfer::advance(Channel& channel) {
  if (stage_ == Stage::Waiting) {
    const bool transfer = isPointToPoint(operation_.kind);
    if (!transfer && channel.turn != turn_) return false;
    begin(channel);
  }
  if (stage_ == Stage::Exchanging && isDone(request_)) {
    if (operation_.kind == CollectiveKind::Allreduce) {
      gatherChunks(channel);
      stage_ = Stage::Completing;
    } else {
      reduceParts(channel, operation_.recv, operation_.count);
      stage_ = Stage::Done;
    }
  }
  if (stage_ == Stage::Completing && isDone(request_)) stage_ = Stage::Done;
  if (stage_ != Stage::Done) return false;
  if (!isPointToPoint(operation_.kind)) ++channel.turn;
  return true;
}

void Transfer::begin(Channel& channel) {
  const Operation& op = operation_;
  const int count = static_cast<int>(op.count);
  const MPI_Datatype word = wordOf(op.dtype);
  stage_ = Stage::Completing;
  switch (op.kind) {
    case CollectiveKind::Send:
      return check("MPI_Isend",
                   MPI_Isend(op.send, count, word, op.peer, kTransferTag, channel.comm, &request_));
    case CollectiveKind::Recv:
      return check("MPI_Irecv",
                   MPI_Irecv(op.recv, count, word, op.peer, kTransferTag, channel.comm, &request_));
    case CollectiveKind::Allgather: {
      const auto* own = static_cast<std::byte*>(op.recv) + channel.rank * count * sizeOf(op.dtype);
      const void* send = op.send == own ? MPI_IN_PLACE : op.send;
      return check("MPI_Iallgather", MPI_Iallgather(send, count, word, op.recv, count, word,
                                                    channel.comm, &request_));
    }
    case CollectiveKind::Allreduce:
    case CollectiveKind::ReduceScatter:
      stage_ = Stage::Exchanging;
      return beginExchange(channel);
  }
}

// Everybody's version of chunk r goes to rank r.
void Transfer::beginExchange(Channel& channel) {
  const Operation& op = operation_;
  const bool whole = op.kind == CollectiveKind::Allreduce;
  const int64_t total = whole ? op.count : op.count * channel.size;
  const Chunk mine = chunkOf(total, channel.size, channel.rank);
  for (int rank = 0; rank < channel.size; ++rank) {
    const Chunk chunk = chunkOf(total, channel.size, rank);
    counts_.push_back(static_cast<int>(chunk.count));
    offsets_.push_back(static_cast<int>(chunk.begin));
    parts_counts_.push_back(static_cast<int>(mine.count));
    parts_offsets_.push_back(static_cast<int>(rank * mine.count));
  }
  const int64_t bytes = channel.size * mine.count * sizeOf(op.dtype);
  parts_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(bytes));
  const MPI_Datatype word = wordOf(op.dtype);
  check("MPI_Ialltoallv",
        MPI_Ialltoallv(op.send, counts_.data(), offsets_.data(), word, parts_.get(),
                       parts_counts_.data(), parts_offsets_.data(), word, channel.comm, &request_));
}

void Transfer::reduceParts(Channel& channel, void* result, int64_t count) {
  if (count == 0) return;
  std::vector<const void*> sources;
  for (int rank = 0; rank < channel.size; ++rank) {
    sources.push_back(parts_.get() + rank * count * sizeOf(operation_.dtype));
  }
  reduceOnHost(result, sources, count, operation_.dtype, operation_.reduce);
}

// This rank's chunk is reduced where it belongs in the result, then everybody gathers all chunks.
void Transfer::gatherChunks(Channel& channel) {
  const Operation& op = operation_;
  const Chunk mine = chunkOf(op.count, channel.size, channel.rank);
  reduceParts(channel, static_cast<std::byte*>(op.recv) + mine.begin * sizeOf(op.dtype),
              mine.count);
  parts_.reset();
  check("MPI_Iallgatherv",
        MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, op.recv, counts_.data(),
                        offsets_.data(), wordOf(op.dtype), channel.comm, &request_));
}

}  // namespace heddle::comm::mpi
