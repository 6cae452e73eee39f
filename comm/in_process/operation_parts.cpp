#include "comm/in_process/operation_parts.h"

#include "comm/operation.h"

namespace heddle::comm {
namespace {

class PartMover {
 public:
  PartMover(const MatchedOperation& matched, int part, Mover& mover)
      : all_(matched.operations), part_(part), mine_(matched.operations[part]), mover_(mover) {}

  // Moves the part. In a collective with one part per rank, `part_` is also the number of the rank.
  void run() {
    switch (mine_.kind) {
      case CollectiveKind::Allreduce:
      case CollectiveKind::Reduce:
        return reduceChunk();
      case CollectiveKind::ReduceScatter:
        return reduce(mine_.recv, part_ * mine_.count, mine_.count);
      case CollectiveKind::Broadcast:
        return copy(mine_.recv, 0, root().send, 0, mine_.count);
      case CollectiveKind::Gather:
        return copy(root().recv, part_ * mine_.count, mine_.send, 0, mine_.count);
      case CollectiveKind::Scatter:
        return copy(mine_.recv, 0, root().send, part_ * mine_.count, mine_.count);
      case CollectiveKind::Allgather:
        for (int i = 0; i < size(); ++i) {
          copy(mine_.recv, i * mine_.count, at(i).send, 0, mine_.count);
        }
        return;
      case CollectiveKind::AllToAll:
        for (int i = 0; i < size(); ++i) {
          copy(mine_.recv, i * mine_.count, at(i).send, part_ * mine_.count, mine_.count);
        }
        return;
      case CollectiveKind::AllToAllV:
        for (int i = 0; i < size(); ++i) {
          copy(mine_.recv, offsetOf(mine_.recv_counts, i), at(i).send,
               offsetOf(at(i).send_counts, part_), mine_.recv_counts[i]);
        }
        return;
      case CollectiveKind::Barrier:
        return;
      case CollectiveKind::Send:
      case CollectiveKind::Recv:
        return copy(at(1).recv, 0, at(0).send, 0, mine_.count);
    }
  }

 private:
  int size() const { return static_cast<int>(all_.size()); }
  const Operation& at(int participant) const { return all_[participant]; }
  const Operation& root() const { return at(mine_.root); }
  const std::byte* bytesAt(const void* base, int64_t index) const {
    return static_cast<const std::byte*>(base) + index * sizeOf(mine_.dtype);
  }
  std::byte* bytesAt(void* base, int64_t index) const {
    return static_cast<std::byte*>(base) + index * sizeOf(mine_.dtype);
  }

  void copy(void* to, int64_t to_index, const void* from, int64_t from_index, int64_t count) {
    if (count == 0) return;
    std::byte* target = bytesAt(to, to_index);
    const std::byte* source = bytesAt(from, from_index);
    if (target != source) mover_.copy(target, source, count * sizeOf(mine_.dtype));
  }

  // Reduces the elements [begin, begin + count) of the send buffers of all ranks into `dst`.
  void reduce(void* dst, int64_t begin, int64_t count) {
    if (count == 0) return;
    std::vector<const void*> sources;
    for (const Operation& op : all_) sources.push_back(bytesAt(op.send, begin));
    mover_.reduce(dst, sources, count, mine_.dtype, mine_.reduce);
  }

  void reduceChunk() {
    const Chunk chunk = chunkOf(mine_.count, size(), part_);
    if (chunk.count == 0) return;
    const bool to_all = mine_.kind == CollectiveKind::Allreduce;
    void* result = bytesAt((to_all ? mine_ : root()).recv, chunk.begin);
    reduce(result, chunk.begin, chunk.count);
    if (!to_all) return;
    for (const Operation& op : all_) copy(op.recv, chunk.begin, result, 0, chunk.count);
  }

  const std::vector<Operation>& all_;
  int part_;
  const Operation& mine_;
  Mover& mover_;
};

}  // namespace

int partsOf(const MatchedOperation& matched) {
  const CollectiveKind kind = matched.operations[0].kind;
  if (kind == CollectiveKind::Barrier) return 0;
  return isPointToPoint(kind) ? 1 : static_cast<int>(matched.operations.size());
}

void movePart(const MatchedOperation& matched, int part, Mover& mover) {
  PartMover(matched, part, mover).run();
}

}  // namespace heddle::comm
