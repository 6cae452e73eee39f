#include "ir/analysis/shardable_axes.h"

#include <algorithm>

#include "ir/base/size_quotient.h"

namespace heddle {
namespace {

// Whether the output has axes along which no operand moves, but of which the elements come from
// one.
bool cutsOrRegroups(OpKind kind) {
  return kind == OpKind::Reshape || kind == OpKind::Slice || kind == OpKind::Index ||
         kind == OpKind::Scan || kind == OpKind::Scatter;
}

// A product whose parts can be added up, which those of an f8 type cannot.
bool isPartialProduct(const Fusion& fusion, const Expression& expr) {
  return expr.op->kind == OpKind::Matmul && !isFloat8(fusion.tensor(expr.outputs[0]).dtype);
}

// Those whose blocks every operand along them can give. A broadcast axis has no blocks.
std::vector<bool> spreadable(const Fusion& fusion, const Expression& expr, const AxisMap& map) {
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
        may[static_cast<size_t>(s)] = false;
      }
    }
  }
  return may;
}

// --- reshape -------------------------------------------------------------------------------------

// One run of axes [from, from_end) that becomes [to, to_end).
struct Run {
  size_t from, from_end, to, to_end;
};

// Products of the first 0, 1, 2, ... axes from `begin` to `end`.
std::vector<Size> products(const std::vector<IterDomain>& domain, size_t begin, size_t end) {
  std::vector<Size> result{Size(1)};
  for (size_t i = begin; i < end; ++i) result.push_back(result.back() * domain[i].extent);
  return result;
}

// Cuts the axes in between [from, from_end) and [to, to_end) where the products are the same.
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

// The axes that do not keep their place lie between those that do on both sides.
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

void addRegrouped(const TensorView& in, const TensorView& out, ShardableAxes& spread) {
  std::vector<int>& map = spread.map.inputs[0];
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
    spread.regrouped.push_back({static_cast<int>(to), from, outer, result, splits, merges});
  }
}

// --- reads by value ------------------------------------------------------------------------------

bool readsByValue(const Expression& expr) {
  return expr.op->name == "take" || expr.op->name == "take_along_axis";
}

void addLookup(const TensorView& in, const Expression& expr, ShardableAxes& spread) {
  if (isFloat8(in.dtype)) return;  // can only be moved
  const size_t axis = expr.axis();
  spread.map.inputs[0][axis] = static_cast<int>(spread.map.space.size());
  spread.map.space.push_back({in.domain[axis].extent, IterKind::Reduction});
}

}  // namespace

// An extent that is merged or split into is a multiple of the other.
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
  ShardableAxes spread{axisMapOf(fusion, expr), {}, {}};
  if (expr.op->kind == OpKind::Reshape) {
    addRegrouped(fusion.tensor(expr.inputs[0]), fusion.tensor(expr.outputs[0]), spread);
  }
  if (expr.op->kind == OpKind::Scatter) {
    const size_t axis = expr.axis();
    spread.map.inputs[0][axis] = static_cast<int>(axis);  // of the space: the result's
  }
  if (readsByValue(expr)) addLookup(fusion.tensor(expr.inputs[0]), expr, spread);
  spread.may = spreadable(fusion, expr, spread.map);
  return spread;
}

bool looksUpInBlocks(const Fusion& fusion, const Expression& expr) {
  if (!readsByValue(expr)) return false;
  const size_t axis = expr.axis();
  const std::optional<Sharding>& sharding = fusion.tensor(expr.inputs[0]).sharding;
  return sharding && sharding->isSharded(axis);
}

}  // namespace heddle
