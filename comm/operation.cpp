#include "comm/operation.h"

#include <algorithm>
#include <limits>

#include "ir/base/check.h"

namespace heddle::comm {
namespace {

constexpr int64_t kMostElements = std::numeric_limits<int64_t>::max();

void checkCounts(const Operation& op, std::span<const int64_t> counts, std::string_view what,
                 int size) {
  HEDDLE_USER_CHECK(counts.size() == static_cast<size_t>(size), "{}: {} {} counts for {} ranks",
                    describe(op), counts.size(), what, size);
  int64_t left = kMostElements / sizeOf(op.dtype);
  for (int64_t count : counts) {
    HEDDLE_USER_CHECK(count >= 0, "{}: negative count", describe(op));
    HEDDLE_USER_CHECK(count <= left, "{} on {} ranks: the count overflows", describe(op), size);
    left -= count;
  }
}

void checkCounts(const Operation& op, int rank, int size) {
  if (op.kind == CollectiveKind::AllToAllV) {
    checkCounts(op, op.send_counts, "send", size);
    checkCounts(op, op.recv_counts, "receive", size);
    const size_t me = rank;
    HEDDLE_USER_CHECK(op.send_counts[me] == op.recv_counts[me],
                      "{}: rank {} sends itself {} elements and expects {}", describe(op), rank,
                      op.send_counts[me], op.recv_counts[me]);
    return;
  }
  HEDDLE_USER_CHECK(op.count >= 0, "{}: negative count", describe(op));
  HEDDLE_USER_CHECK(op.count <= kMostElements / (sizeOf(op.dtype) * size),
                    "{} on {} ranks: the count overflows", describe(op), size);
}

void checkOperation(const Operation& op, int rank, int size) {
  checkCounts(op, rank, size);
  if (isPointToPoint(op.kind)) {
    HEDDLE_USER_CHECK(op.peer >= 0 && op.peer < size,
                      "{}: the peer must be a rank of the communicator, 0 to {}", describe(op),
                      size - 1);
  }
  if (isRooted(op.kind)) {
    HEDDLE_USER_CHECK(op.root >= 0 && op.root < size,
                      "{}: the root must be a rank of the communicator, 0 to {}", describe(op),
                      size - 1);
  }
  if (reduces(op.kind)) {
    HEDDLE_USER_CHECK(op.reduce != ReduceOp::Avg || isFloat(op.dtype),
                      "{}: an average needs a float type", describe(op));
    HEDDLE_USER_CHECK(!isFloat8(op.dtype), "{}: f8 types can only be moved", describe(op));
  }
  const bool sends = hasSend(op.kind, rank == op.root) && sentBy(op, size) > 0;
  const bool receives = hasRecv(op.kind, rank == op.root) && receivedBy(op, size) > 0;
  HEDDLE_USER_CHECK(!sends || op.send != nullptr, "{}: no send buffer", describe(op));
  HEDDLE_USER_CHECK(!receives || op.recv != nullptr, "{}: no receive buffer", describe(op));
  const bool exchanges =
      op.kind == CollectiveKind::AllToAll || op.kind == CollectiveKind::AllToAllV;
  HEDDLE_USER_CHECK(!exchanges || !sends || !receives || op.send != op.recv,
                    "{}: cannot be in place", describe(op));
}

}  // namespace

std::string_view name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::Allreduce:
      return "allreduce";
    case CollectiveKind::Reduce:
      return "reduce";
    case CollectiveKind::Broadcast:
      return "broadcast";
    case CollectiveKind::Allgather:
      return "allgather";
    case CollectiveKind::Gather:
      return "gather";
    case CollectiveKind::Scatter:
      return "scatter";
    case CollectiveKind::ReduceScatter:
      return "reducescatter";
    case CollectiveKind::AllToAll:
      return "alltoall";
    case CollectiveKind::AllToAllV:
      return "alltoallv";
    case CollectiveKind::Barrier:
      return "barrier";
    case CollectiveKind::Send:
      return "send";
    case CollectiveKind::Recv:
      return "recv";
  }
  throwInternalError(__FILE__, __LINE__, "kind", "not a collective kind");
}

void checkGroup(std::span<const Operation> group, int rank, int size) {
  for (const Operation& op : group) checkOperation(op, rank, size);
}

bool isPointToPoint(CollectiveKind kind) {
  return kind == CollectiveKind::Send || kind == CollectiveKind::Recv;
}

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::Allreduce || kind == CollectiveKind::Reduce ||
         kind == CollectiveKind::ReduceScatter;
}

bool mayCopy(CollectiveKind kind) {
  return kind == CollectiveKind::Allreduce || kind == CollectiveKind::Allgather ||
         kind == CollectiveKind::ReduceScatter;
}

bool isRooted(CollectiveKind kind) {
  return kind == CollectiveKind::Reduce || kind == CollectiveKind::Broadcast ||
         kind == CollectiveKind::Gather || kind == CollectiveKind::Scatter;
}

bool hasSend(CollectiveKind kind, bool is_root) {
  if (kind == CollectiveKind::Barrier || kind == CollectiveKind::Recv) return false;
  return is_root || (kind != CollectiveKind::Broadcast && kind != CollectiveKind::Scatter);
}

bool hasRecv(CollectiveKind kind, bool is_root) {
  if (kind == CollectiveKind::Barrier || kind == CollectiveKind::Send) return false;
  return is_root || (kind != CollectiveKind::Reduce && kind != CollectiveKind::Gather);
}

int64_t sentBy(const Operation& op, int size) {
  switch (op.kind) {
    case CollectiveKind::Scatter:
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::AllToAll:
      return op.count * size;
    case CollectiveKind::AllToAllV:
      return offsetOf(op.send_counts, size);
    default:
      return op.count;
  }
}

int64_t receivedBy(const Operation& op, int size) {
  switch (op.kind) {
    case CollectiveKind::Allgather:
    case CollectiveKind::Gather:
    case CollectiveKind::AllToAll:
      return op.count * size;
    case CollectiveKind::AllToAllV:
      return offsetOf(op.recv_counts, size);
    default:
      return op.count;
  }
}

Operation withOwnCounts(const Operation& operation, std::vector<int64_t>& storage) {
  Operation copy = operation;
  if (operation.kind != CollectiveKind::AllToAllV) return copy;
  storage.assign(operation.send_counts.begin(), operation.send_counts.end());
  storage.insert(storage.end(), operation.recv_counts.begin(), operation.recv_counts.end());
  const std::span<const int64_t> both(storage);
  copy.send_counts = both.first(operation.send_counts.size());
  copy.recv_counts = both.subspan(operation.send_counts.size());
  return copy;
}

int64_t offsetOf(std::span<const int64_t> counts, int rank) {
  int64_t sum = 0;
  for (int i = 0; i < rank; ++i) sum += counts[i];
  return sum;
}

std::string describe(const Operation& op) {
  std::string text(name(op.kind));
  if (op.kind == CollectiveKind::Barrier) return text;
  if (op.kind == CollectiveKind::AllToAllV) {
    return text + fmt::format(" of [{}] to [{}] {}", fmt::join(op.send_counts, ", "),
                              fmt::join(op.recv_counts, ", "), heddle::name(op.dtype));
  }
  if (reduces(op.kind)) text += fmt::format("({})", heddle::name(op.reduce));
  text += fmt::format(" of {} {}", op.count, heddle::name(op.dtype));
  const bool from_root = op.kind == CollectiveKind::Broadcast || op.kind == CollectiveKind::Scatter;
  if (isRooted(op.kind)) text += fmt::format(" {} {}", from_root ? "from" : "to", op.root);
  if (op.kind == CollectiveKind::Send) text += fmt::format(" to {}", op.peer);
  if (op.kind == CollectiveKind::Recv) text += fmt::format(" from {}", op.peer);
  return text;
}

bool agree(const Operation& a, int rank_a, const Operation& b, int rank_b) {
  if (a.kind == CollectiveKind::Barrier && b.kind == CollectiveKind::Barrier) return true;
  if (isPointToPoint(a.kind)) {
    return isPointToPoint(b.kind) && a.count == b.count && a.dtype == b.dtype;
  }
  if (a.kind != b.kind || a.dtype != b.dtype) return false;
  if (a.kind == CollectiveKind::AllToAllV) {
    const auto from_a = static_cast<size_t>(rank_a), from_b = static_cast<size_t>(rank_b);
    return a.send_counts[from_b] == b.recv_counts[from_a] &&
           a.recv_counts[from_b] == b.send_counts[from_a];
  }
  return a.count == b.count && (!reduces(a.kind) || a.reduce == b.reduce) &&
         (!isRooted(a.kind) || a.root == b.root);
}

std::string listOf(const std::vector<int>& ranks) {
  return fmt::format("[{}]", fmt::join(ranks, ", "));
}

int positionInTeam(const std::vector<int>& members, int rank, int job_size) {
  std::vector<int> sorted = members;
  std::sort(sorted.begin(), sorted.end());
  const bool distinct = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  HEDDLE_USER_CHECK(distinct, "team {}: a rank is named twice", listOf(members));
  for (int member : members) {
    HEDDLE_USER_CHECK(member >= 0 && member < job_size, "team {}: the job has ranks 0 to {}",
                      listOf(members), job_size - 1);
  }
  const auto mine = std::find(members.begin(), members.end(), rank);
  HEDDLE_USER_CHECK(mine != members.end(), "team {}: rank {} is not in it", listOf(members), rank);
  return static_cast<int>(mine - members.begin());
}

Chunk chunkOf(int64_t count, int size, int rank) {
  const int64_t each = count / size + (count % size != 0 ? 1 : 0);
  const int64_t begin = std::min(count, each * rank);
  return {begin, std::min(each, count - begin)};
}

}  // namespace heddle::comm
