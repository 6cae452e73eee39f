#include "ir/analysis/shardable_axes.h"

#include <algorithm>

#include "ir/sizes/size_quotient.h"

namespace heddle {
namespace {

// Returns whether the output may have axes that correspond to no operand axis, although their
// elements come from an operand. These axes cannot be split without moving data.
bool cutsOrRegroups(OpKind kind) {
  return kind == OpKind::Reshape || kind == OpKind::Slice || kind == OpKind::Diagonal ||
         kind == OpKind::Index || kind == OpKind::Scan || kind == OpKind::Scatter;
}

// Returns whether the expression is a matrix product whose reduced axis may be split. Each device
// then computes a partial result, and the partial results are summed later. Results with an f8 type
// cannot be summed.
bool isPartialProduct(const Fusion& fusion, const Expression& expr) {
  return expr.op->kind == OpKind::Matmul && !isFloat8(fusion.tensor(expr.outputs[0]).dtype);
}

// Returns, for each axis of the space, whether it can be split over devices. This requires that
// every device can compute its block of the result from its blocks of the operands. A broadcast
// axis cannot be split.
std::vector<bool> mayBeSplit(const Fusion& fusion, const Expression& expr, const AxisMap& map) {
  std::vector<bool> may(map.space.size(), false);
  bool regroups = cutsOrRegroups(expr.op->kind);
  for (size_t s = 0; s < map.space.size(); ++s) {
    bool read = !regroups;
    for (const std::vector<int>& axes : map.inputs) {
      read = read || std::find(axes.begin(), axes.end(), static_cast<int>(s)) != axes.end();
    }
    bool combines = map.space[s].kind != IterKind::Reduction || isPartialProduct(fusion, expr) ||
                    expr.op->kind == OpKind::Index || expr.op->reduce_op.has_value();
    may[s] = read && combines && map.space[s].kind != IterKind::Broadcast;
  }
  for (size_t i = 0; i < expr.inputs.size(); ++i) {
    for (size_t axis = 0; axis < map.inputs[i].size(); ++axis) {
      const IterDomain& domain = fusion.tensor(expr.inputs[i]).domain[axis];
      int s = map.inputs[i][axis];
      if (s != AxisMap::kNone && domain.kind == IterKind::Broadcast) {
        may[s] = false;
      }
    }
  }
  return may;
}

// --- reshape -------------------------------------------------------------------------------------

// The operand axes [from, from_end) become the result axes [to, to_end).
struct Run {
  size_t from, from_end, to, to_end;
};

// Returns the products of the extents of the first 0, 1, 2, ... axes in [begin, end).
std::vector<Size> products(const std::vector<IterDomain>& domain, size_t begin, size_t end) {
  std::vector<Size> result{Size(1)};
  for (size_t i = begin; i < end; ++i) result.push_back(result.back() * domain[i].extent);
  return result;
}

// Splits a run of regrouped axes into the shortest possible runs. For example, [2, 3, 4] -> [6, 2,
// 2] becomes [2, 3] -> [6] and [4] -> [2, 2].
std::vector<Run> cutRun(const TensorView& in, const TensorView& out, const Run& whole) {
  const std::vector<Size> left = products(in.domain, whole.from, whole.from_end);
  const std::vector<Size> right = products(out.domain, whole.to, whole.to_end);
  std::vector<Run> runs;
  size_t i = 0, j = 0;
  for (size_t a = 1; a + 1 < left.size(); ++a) {
    for (size_t b = j + 1; b + 1 < right.size(); ++b) {
      if (!(left[a] == right[b])) continue;
      runs.push_back({whole.from + i, whole.from + a, whole.to + j, whole.to + b});
      i = a;
      j = b;
      break;
    }
  }
  runs.push_back({whole.from + i, whole.from_end, whole.to + j, whole.to_end});
  return runs;
}

// Returns the run of axes that the reshape regroups. The reshape keeps the axes to the left and to
// the right of this run.
Run regroupedRun(const TensorView& in, const TensorView& out, const std::vector<int>& map) {
  size_t left = 0;
  while (left < map.size() && map[left] == static_cast<int>(left)) ++left;
  size_t right = 0;
  while (right + left < map.size() && map[map.size() - 1 - right] != AxisMap::kNone) ++right;
  return {left, in.rank() - right, left, out.rank() - right};
}

size_t firstMoving(const TensorView& tensor, size_t begin, size_t end) {
  while (begin < end && tensor.domain[begin].extent.isConstant(1)) ++begin;
  return begin;
}

void addRegrouped(const TensorView& in, const TensorView& out, ShardableAxes& shardable) {
  std::vector<int>& map = shardable.map.inputs[0];
  for (const Run& run : cutRun(in, out, regroupedRun(in, out, map))) {
    const size_t from = firstMoving(in, run.from, run.from_end);
    const size_t to = firstMoving(out, run.to, run.to_end);
    if (from == run.from_end || to == run.to_end) continue;
    map[from] = static_cast<int>(to);
    const Size& outer = in.domain[from].extent;
    const Size& result = out.domain[to].extent;
    if (outer == result) continue;
    const bool splits = firstMoving(in, from + 1, run.from_end) == run.from_end;
    const bool merges = firstMoving(out, to + 1, run.to_end) == run.to_end;
    shardable.regrouped.push_back({static_cast<int>(to), from, outer, result, splits, merges});
  }
}

// --- take and take_along_axis --------------------------------------------------------------------

bool readsByValue(const Expression& expr) {
  return expr.op->name == "take" || expr.op->name == "take_along_axis";
}

void addLookup(const TensorView& in, const Expression& expr, ShardableAxes& shardable) {
  if (isFloat8(in.dtype)) return;  // f8 elements cannot be summed
  const size_t axis = expr.axis();
  shardable.map.inputs[0][axis] = static_cast<int>(shardable.map.space.size());
  shardable.map.space.push_back({in.domain[axis].extent, IterKind::Reduction});
}

}  // namespace

// If axes merge, `to` is a multiple of `from`, so checking `from` is enough. If one axis splits,
// `from` is a multiple of `to`, so checking `to` is enough. Otherwise both are checked.
bool ShardableAxes::Regrouped::isEven(int64_t devices) const {
  const bool from_is = remainder(from, devices).isConstant(0);
  const bool to_is = remainder(to, devices).isConstant(0);
  return merges ? from_is : to_is && (splits || from_is);
}

const ShardableAxes::Regrouped* ShardableAxes::regroupedAt(size_t space) const {
  for (const Regrouped& each : regrouped) {
    if (each.space == static_cast<int>(space)) return &each;
  }
  return nullptr;
}

ShardableAxes shardableAxesOf(const Fusion& fusion, const Expression& expr) {
  ShardableAxes shardable{axisMapOf(fusion, expr), {}, {}};
  if (expr.op->kind == OpKind::Reshape) {
    addRegrouped(fusion.tensor(expr.inputs[0]), fusion.tensor(expr.outputs[0]), shardable);
  }
  if (expr.op->kind == OpKind::Scatter) {
    const size_t axis = expr.axis();
    // The axis along which a scatter writes has the same index in the space and in the result.
    shardable.map.inputs[0][axis] = static_cast<int>(axis);
  }
  if (readsByValue(expr)) addLookup(fusion.tensor(expr.inputs[0]), expr, shardable);
  shardable.may = mayBeSplit(fusion, expr, shardable.map);
  return shardable;
}

bool looksUpInBlocks(const Fusion& fusion, const Expression& expr) {
  if (!readsByValue(expr)) return false;
  const size_t axis = expr.axis();
  const std::optional<Sharding>& sharding = fusion.tensor(expr.inputs[0]).sharding;
  return sharding && sharding->isSharded(axis);
}

}  // namespace heddle
