#include "host/lower/view_of.h"

#include "host/lower/cat_slices.h"
#include "ir/analysis/reshard_step.h"
#include "ir/base/check.h"

namespace heddle::host {

Alias::View viewOf(const Fusion& fusion, const Expression& expr) {
  switch (expr.op->kind) {
    case OpKind::Reshape:
      return Alias::Reshape{};
    case OpKind::Permute:
      return Alias::Permute{expr.attr<std::vector<int64_t>>("axes")};
    case OpKind::Slice:
      return sliceOf(expr);
    case OpKind::Diagonal:
      return Alias::Diagonal{expr.attr<int64_t>("axis1"), expr.attr<int64_t>("axis2")};
    case OpKind::Set:
      if (reshardStepOf(fusion, expr).kind == ReshardStep::Kind::Slice) return Alias::Shard{};
      return Alias::Same{};
    case OpKind::Broadcast:
      return Alias::Expand{expr.attr<std::vector<int64_t>>("axes")};
    case OpKind::Expand:
      return Alias::Expand{
          rowMajor(fusion.tensor(expr.outputs[0]).rank() - fusion.tensor(expr.inputs[0]).rank())};
    case OpKind::Constant:
    case OpKind::SizeOf:
    case OpKind::Pointwise:
    case OpKind::Reduction:
    case OpKind::Full:
    case OpKind::Iota:
    case OpKind::Index:
    case OpKind::Matmul:
    case OpKind::Scan:
    case OpKind::Scatter:
      break;
  }
  HEDDLE_CHECK(false, "op {} is not a view", expr.op->name);
}

}  // namespace heddle::host
