#include "ir/types/sharding.h"

#include <algorithm>

#include "ir/base/check.h"

namespace heddle {

std::string_view name(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
      return "sum";
    case ReduceOp::Prod:
      return "prod";
    case ReduceOp::Min:
      return "min";
    case ReduceOp::Max:
      return "max";
    case ReduceOp::Avg:
      return "avg";
  }
  HEDDLE_CHECK(false, "reduction {} is not in the enum", static_cast<int>(op));
}

std::optional<ReduceOp> reduceOpFromName(std::string_view text) {
  for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Min, ReduceOp::Max, ReduceOp::Avg}) {
    if (name(op) == text) return op;
  }
  return std::nullopt;
}

bool Sharding::isReplicated() const {
  return partial.empty() && !stream &&
         std::all_of(axes.begin(), axes.end(), [](const auto& list) { return list.empty(); });
}

bool Sharding::isSharded(size_t logical_axis) const {
  return logical_axis < axes.size() && !axes[logical_axis].empty();
}

int Sharding::logicalAxisOf(MeshAxis axis) const {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (std::find(axes[i].begin(), axes[i].end(), axis) != axes[i].end()) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

std::string Sharding::str(const DeviceMesh& mesh) const {
  std::string out = "shard(@" + mesh.name;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].empty()) continue;
    out += ", " + std::to_string(i) + ": ";
    if (axes[i].size() > 1) out += '[';
    for (size_t k = 0; k < axes[i].size(); ++k) {
      if (k > 0) out += ", ";
      out += heddle::name(axes[i][k]);
    }
    if (axes[i].size() > 1) out += ']';
  }
  out += ')';
  if (!partial.empty()) {
    out += " partial(";
    for (size_t i = 0; i < partial.size(); ++i) {
      if (i > 0) out += ", ";
      out += fmt::format("{}: {}", heddle::name(partial[i].op), heddle::name(partial[i].axis));
    }
    out += ')';
  }
  if (stream) out += fmt::format(" stream({}: {})", stream->axis, stream->chunks);
  return out;
}

Block blockOf(int64_t n, const DeviceMesh& mesh, const std::vector<MeshAxis>& axes, int64_t rank) {
  Block block{0, n, n};
  for (MeshAxis axis : axes) {
    const int64_t devices = mesh.size(axis);
    const int64_t ceil = block.alloc / devices + (block.alloc % devices != 0);
    const int64_t index = mesh.coordinate(rank, axis);
    // Compare before the multiplication: if the tensor ends before this block, index * ceil may
    // overflow.
    const int64_t begin = ceil == 0 || index > block.valid / ceil ? block.valid : index * ceil;
    block.begin += begin;
    block.valid = std::min(ceil, block.valid - begin);
    block.alloc = ceil;
  }
  return block;
}

Size allocBlock(const Size& n, const DeviceMesh& mesh, const std::vector<MeshAxis>& axes) {
  Size alloc = n;
  for (MeshAxis axis : axes) {
    if (mesh.size(axis) > 1) alloc = Size::ceilDiv(alloc, Size(mesh.size(axis)));
  }
  return alloc;
}

}  // namespace heddle
