#include "comm/operation.h"

#include <algorithm>
#include <limits>

#include "ir/error.h"

namespace heddle::comm {
namespace {

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::Allreduce || kind == CollectiveKind::ReduceScatter;
}

void checkOperation(const Operation& op, int size) {
  HEDDLE_USER_CHECK(op.count >= 0, "{}: negative count", describe(op));
  const int64_t most = std::numeric_limits<int64_t>::max() / (sizeOf(op.dtype) * size);
  HEDDLE_USER_CHECK(op.count <= most, "{} on {} ranks: the count overflows", describe(op), size);
  if (isPointToPoint(op.kind)) {
    HEDDLE_USER_CHECK(op.peer >= 0 && op.peer < size,
                      "{}: the peer must be a rank of the communicator, 0 to {}", describe(op),
                      size - 1);
  }
  if (reduces(op.kind)) {
    HEDDLE_USER_CHECK(op.reduce != ReduceOp::Avg || isFloat(op.dtype),
                      "{}: an average needs a float type", describe(op));
    HEDDLE_USER_CHECK(!isFloat8(op.dtype), "{}: f8 types can only be moved", describe(op));
  }
  if (op.count == 0) return;
  HEDDLE_USER_CHECK(op.kind == CollectiveKind::Recv || op.send != nullptr, "{}: no send buffer",
                    describe(op));
  HEDDLE_USER_CHECK(op.kind == CollectiveKind::Send || op.recv != nullptr, "{}: no receive buffer",
                    describe(op));
}

}  // namespace

std::string_view name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::Allreduce:
      return "allreduce";
    case CollectiveKind::Allgather:
      return "allgather";
    case CollectiveKind::ReduceScatter:
      return "reducescatter";
    case CollectiveKind::Send:
      return "send";
    case CollectiveKind::Recv:
      return "recv";
  }
  throwInternalError(__FILE__, __LINE__, "kind", "not a collective kind");
}

void checkGroup(std::span<const Operation> group, int size) {
  for (const Operation& op : group) checkOperation(op, size);
}

bool isPointToPoint(CollectiveKind kind) {
  return kind == CollectiveKind::Send || kind == CollectiveKind::Recv;
}

std::string describe(const Operation& op) {
  std::string text(name(op.kind));
  if (reduces(op.kind)) text += fmt::format("({})", heddle::name(op.reduce));
  text += fmt::format(" of {} {}", op.count, heddle::name(op.dtype));
  if (op.kind == CollectiveKind::Send) text += fmt::format(" to {}", op.peer);
  if (op.kind == CollectiveKind::Recv) text += fmt::format(" from {}", op.peer);
  return text;
}

bool agree(const Operation& a, const Operation& b) {
  if (a.count != b.count || a.dtype != b.dtype) return false;
  if (isPointToPoint(a.kind)) return isPointToPoint(b.kind);
  return a.kind == b.kind && (!reduces(a.kind) || a.reduce == b.reduce);
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
