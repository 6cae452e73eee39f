#include "ir/segment/attention/attention_match.h"

#include <algorithm>
#include <limits>

#include "ir/analysis/kernel_rules.h"
#include "ir/analysis/reshard_step.h"
#include "ir/base/check.h"

namespace heddle {
namespace {

constexpr size_t kMostAxes = 4;
constexpr double kNever = -std::numeric_limits<double>::infinity();
constexpr const char* kMasked = "a mask other than the causal one";

bool sameIndexedBatch(const TensorView& q, const TensorView& each) {
  if (!samePlacement(q.sharding, each.sharding)) return false;
  if (!each.sharding) return true;
  return each.sharding->partial.empty() && !each.sharding->isSharded(each.rank() - 1) &&
         !each.sharding->isSharded(each.rank() - 2);
}

}  // namespace

const Expression* AttentionMatch::definition(ValueId id, std::string_view op) const {
  const ExprId definition = fusion_.value(id).definition;
  if (definition == kNoExpr || fusion_.value(id).is_scalar) return nullptr;
  const Expression& expr = fusion_.expr(definition);
  return expr.op->name == op ? &expr : nullptr;
}

const Expression* AttentionMatch::take(ValueId id, std::string_view op) {
  const Expression* expr = definition(id, op);
  if (expr != nullptr) found_.exprs.push_back(fusion_.value(id).definition);
  return expr;
}

const Expression* AttentionMatch::reader(ValueId id, std::string_view op, size_t position) const {
  const Expression* found = nullptr;
  for (ExprId each : readers_[id]) {
    const Expression& expr = fusion_.expr(each);
    if (expr.op->name != op || expr.inputs.at(position) != id) continue;
    if (found != nullptr && found != &expr) return nullptr;
    found = &expr;
  }
  return found;
}

bool AttentionMatch::isSoftmax(ValueId id) const {
  const Expression* safe = definition(id, "where");
  const Expression* shares = safe == nullptr ? nullptr : definition(safe->inputs[2], "div");
  if (shares == nullptr) return false;
  const Expression* powers = definition(shares->inputs[0], "exp");
  const Expression* sums = definition(shares->inputs[1], "sum");
  return powers != nullptr && sums != nullptr && sums->inputs[0] == powers->outputs[0];
}

bool AttentionMatch::isOverLast(const Expression& expr) const {
  const auto rank = static_cast<int64_t>(fusion_.tensor(expr.inputs[0]).rank());
  const Attr* keeps = expr.find("keepdim");
  return expr.attr<std::vector<int64_t>>("axes") == std::vector<int64_t>{rank - 1} &&
         keeps != nullptr && std::get<bool>(*keeps);
}

std::string AttentionMatch::takeProbabilities(ValueId id) {
  ValueId scores = takeSoftmax(id);
  if (scores == kNoValue) return kOther;
  if (definition(scores, "where") != nullptr) {
    const Expression& select = *take(scores, "where");
    if (!isCausal(select)) return kMasked;
    found_.causal = true;
    scores = select.inputs[1];
  }
  if (definition(scores, "add") != nullptr || definition(scores, "where") != nullptr) {
    return kMasked;
  }
  if (found_.gqa) scores = takeRegrouped(scores, false);
  if (scores == kNoValue) return kOther;
  const Expression* scaled = take(scores, "mul");
  const Expression* raw = scaled == nullptr ? nullptr : take(scaled->inputs[0], "matmul");
  const Expression* turned = raw == nullptr ? nullptr : take(raw->inputs[1], "permute");
  if (turned == nullptr || !turnsLast(*turned) || !raw->attrs.empty()) return kOther;
  wide_q_ = found_.gqa ? takeRegrouped(raw->inputs[0], true) : raw->inputs[0];
  if (wide_q_ == kNoValue) return kOther;
  wide_k_ = turned->inputs[0];
  scale_ = scaled->inputs[1];
  found_.q = takeNarrow(wide_q_);
  found_.k = takeNarrow(wide_k_);
  if (found_.q == kNoValue || found_.k == kNoValue) return kOther;
  return isScale(scale_) ? "" : "its scale is neither a constant nor rsqrt of the width";
}

// Takes the ops of a softmax of x, and returns x, or kNoValue if the ops do not match.
// isSoftmax(id) must be true. The ops are where(top == -inf, 0, e / sum(e)) with e = exp(x -
// where(top == -inf, 0, top)). top is the maximum of each row of x.
ValueId AttentionMatch::takeSoftmax(ValueId id) {
  const Expression& safe = *take(id, "where");
  const Expression* shares = take(safe.inputs[2], "div");
  const Expression* powers = take(shares->inputs[0], "exp");
  const Expression* sums = take(shares->inputs[1], "sum");
  const Expression* moved = take(powers->inputs[0], "sub");
  const Expression* by = moved == nullptr ? nullptr : take(moved->inputs[1], "where");
  const Expression* empty = by == nullptr ? nullptr : take(by->inputs[0], "eq");
  const Expression* top = by == nullptr ? nullptr : take(by->inputs[2], "max");
  const bool fits = empty != nullptr && top != nullptr && isOverLast(*top) && isOverLast(*sums) &&
                    top->inputs[0] == moved->inputs[0] && empty->inputs[0] == top->outputs[0] &&
                    safe.inputs[0] == by->inputs[0] && literal(empty->inputs[1]) == kNever &&
                    literal(safe.inputs[1]) == 0.0 && literal(by->inputs[1]) == 0.0;
  return fits ? moved->inputs[0] : kNoValue;
}

ValueId AttentionMatch::takeRounded(const Expression& wide) {
  const std::vector<ExprId>& readers = readers_[wide.outputs[0]];
  const Expression* rounded = readers.size() == 1 ? &fusion_.expr(readers[0]) : nullptr;
  if (rounded == nullptr || rounded->op->name != "cast") return kNoValue;
  const DType dtype = fusion_.tensor(rounded->outputs[0]).dtype;
  if (dtype != DType::F16 && dtype != DType::BF16) return kNoValue;
  if (fusion_.tensor(wide.outputs[0]).dtype != DType::F32) return kNoValue;
  found_.exprs.push_back(readers[0]);
  return rounded->outputs[0];
}

std::string AttentionMatch::notRounded(const Expression& wide, std::string_view subject) const {
  const DType dtype = fusion_.tensor(wide.outputs[0]).dtype;
  if (dtype == DType::F32) return fmt::format("{} f32, not f16 or bf16", subject);
  return fmt::format("it is computed in {}, not in f32", name(dtype));
}

ValueId AttentionMatch::takeNarrow(ValueId wide) {
  const Expression* cast = take(wide, "cast");
  const bool widens = cast != nullptr && fusion_.tensor(wide).dtype == DType::F32;
  return widens ? cast->inputs[0] : kNoValue;
}

ValueId AttentionMatch::takeRegrouped(ValueId id, bool to_rows) {
  const Expression* reshape = take(id, "reshape");
  if (reshape == nullptr) return kNoValue;
  const ValueId from = reshape->inputs[0];
  regrouped_.push_back(to_rows ? Regrouped{from, id} : Regrouped{id, from});
  return from;
}

bool AttentionMatch::isRegroupedByHeads(const Regrouped& each) const {
  const TensorView& q = fusion_.tensor(found_.q);
  const TensorView& k = fusion_.tensor(found_.k);
  const TensorView& heads = fusion_.tensor(each.heads);
  const TensorView& rows = fusion_.tensor(each.rows);
  const size_t rank = q.rank();
  if (rank < 3 || k.rank() != rank || heads.rank() != rank || rows.rank() != rank) return false;
  const auto extent = [](const TensorView& tensor, size_t axis) {
    return tensor.domain[axis].extent;
  };
  for (size_t i = 0; i < rank; ++i) {
    const bool is_split = i == rank - 3 || i == rank - 2;
    if (!is_split && extent(heads, i) != extent(rows, i)) return false;
    if (is_split && extent(heads, i) != extent(q, i)) return false;
  }
  const Size group = Size::floorDiv(extent(q, rank - 3), extent(k, rank - 3));
  return extent(rows, rank - 3) == extent(k, rank - 3) &&
         extent(rows, rank - 2) == group * extent(q, rank - 2);
}

bool AttentionMatch::turnsLast(const Expression& permute) const {
  auto axes = permute.attr<std::vector<int64_t>>("axes");
  if (axes.size() < 2) return false;
  std::swap(axes[axes.size() - 2], axes[axes.size() - 1]);
  return std::is_sorted(axes.begin(), axes.end());
}

// Takes the ops of the mask, and returns whether `select` is where(column <= row, scores, -inf).
bool AttentionMatch::isCausal(const Expression& select) {
  const auto rank = static_cast<int64_t>(fusion_.tensor(select.outputs[0]).rank());
  const std::optional<double> never = literal(select.inputs[2]);
  const Expression* keep = take(select.inputs[0], "le");
  const ValueId scores = select.outputs[0];
  return keep != nullptr && never == kNever && isIndexOf(scores, keep->inputs[0], rank - 1) &&
         isIndexOf(scores, keep->inputs[1], rank - 2);
}

// Returns whether `id` is a broadcast iota along `axis` with the extent of the scores, and takes
// the iota and the broadcast. The extent is checked because a broadcast iota of one element would
// have index 0 everywhere.
bool AttentionMatch::isIndexOf(ValueId scores, ValueId id, int64_t axis) {
  const Expression* spread = take(id, "broadcast");
  const Expression* iota = spread == nullptr ? nullptr : take(spread->inputs[0], "iota");
  if (iota == nullptr || fusion_.tensor(iota->outputs[0]).rank() != 1 ||
      fusion_.tensor(iota->outputs[0]).domain[0].extent !=
          fusion_.tensor(scores).domain[axis].extent) {
    return false;
  }
  const auto axes = spread->attr<std::vector<int64_t>>("axes");
  return std::find(axes.begin(), axes.end(), axis) == axes.end();
}

const Expression* AttentionMatch::scalar(ValueId id, std::string_view op) const {
  const ExprId definition = fusion_.value(id).definition;
  if (definition == kNoExpr || !fusion_.value(id).is_scalar) return nullptr;
  const Expression& expr = fusion_.expr(definition);
  return expr.op->name == op ? &expr : nullptr;
}

std::optional<double> AttentionMatch::literal(ValueId id) const {
  const Expression* constant = scalar(id, "constant");
  // The literals of an attention are floats.
  const double* value =
      constant == nullptr ? nullptr : std::get_if<double>(constant->find("value"));
  return value == nullptr ? std::nullopt : std::optional(*value);
}

// Returns whether the scale is a literal or the reciprocal square root of the width of q. Sets
// Attention::scale to the literal.
bool AttentionMatch::isScale(ValueId id) {
  found_.scale = literal(id);
  if (found_.scale) return true;
  const Expression* root = scalar(id, "rsqrt");
  const Expression* cast = root == nullptr ? nullptr : scalar(root->inputs[0], "cast");
  const Expression* size = cast == nullptr ? nullptr : scalar(cast->inputs[0], "size");
  if (size == nullptr) return false;
  const size_t axis = size->axis();
  const TensorView& q = fusion_.tensor(found_.q);
  return fusion_.tensor(size->inputs[0]).domain[axis].extent == q.domain.back().extent;
}

bool AttentionMatch::isSameScale(ValueId id) const {
  return id == scale_ || (found_.scale && literal(id) == found_.scale);
}

// Returns whether this axis of `id` is broadcast. One operand determines the extent of the axis.
// The result is true if exactly one of the two, this operand or `id`, has one element along the
// axis. The operands that determine extents are:
//  - q: batch axes, queries, and the width of q, k, dq and dk
//  - k: keys, and with gqa the heads of k, v, dk and dv
//  - v: the width of all other tensors (v, g, o, dv)
bool AttentionMatch::isStretched(ValueId id, size_t axis) const {
  const TensorView& each = fusion_.tensor(id);
  const size_t from_end = each.rank() - axis;
  const bool is_dq = found_.backward && id == found_.results[0];
  const bool is_dk = found_.backward && id == found_.results[1];
  const bool of_keys =
      id == found_.k || id == found_.v || is_dk || (found_.backward && id == found_.results[2]);
  const bool has_width_of_q = id == found_.q || id == found_.k || is_dq || is_dk;
  ValueId decides = found_.q;
  if (from_end == 1 && !has_width_of_q) decides = found_.v;
  if (of_keys && (from_end == 2 || (found_.gqa && from_end == 3))) decides = found_.k;
  return each.domain[axis].extent.isConstant(1) !=
         fusion_.tensor(decides).domain[axis].extent.isConstant(1);
}

std::string AttentionMatch::whyNotIndexed() const {
  const TensorView& q = fusion_.tensor(found_.q);
  for (const Regrouped& each : regrouped_) {
    if (!isRegroupedByHeads(each)) return kOther;
  }
  std::vector<ValueId> tensors = found_.operands();
  tensors.insert(tensors.end(), found_.results.begin(), found_.results.end());
  for (ValueId id : tensors) {
    const TensorView& each = fusion_.tensor(id);
    const std::string& label = fusion_.value(id).name;
    if (each.dtype != q.dtype) return fmt::format("%{} is {}", label, name(each.dtype));
    if (each.rank() < 2 || each.rank() > kMostAxes || each.rank() != q.rank()) {
      return fmt::format("%{} has rank {}, not 2 to {}", label, each.rank(), kMostAxes);
    }
    for (size_t i = 0; i < each.rank(); ++i) {
      if (each.domain[i].kind == IterKind::Broadcast || isStretched(id, i)) {
        return fmt::format("axis {} of %{} is broadcast", i, label);
      }
    }
    if (!sameIndexedBatch(q, each)) {
      return fmt::format(
          "the tokens or the width of %{} are sharded, or its other axes are sharded unlike those "
          "of %{}",
          label, fusion_.value(found_.q).name);
    }
  }
  return {};
}

void AttentionMatch::finish() {
  std::sort(found_.exprs.begin(), found_.exprs.end());
  found_.exprs.erase(std::unique(found_.exprs.begin(), found_.exprs.end()), found_.exprs.end());
  if (found_.why_not.empty()) found_.why_not = whyNotAlone();
}

// Returns the reason why a library call is not enough, or "". A library call does not return
// intermediate values. It is therefore not enough if an intermediate value is an output of the
// fusion, or if an expression outside of the attention reads it.
std::string AttentionMatch::whyNotAlone() const {
  const auto holds = [](const std::vector<ValueId>& ids, ValueId id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  for (ExprId id : found_.exprs) {
    const ValueId value = fusion_.expr(id).outputs[0];
    if (holds(found_.results, value)) continue;
    for (ExprId user : readers_[value]) {
      const bool inside = std::binary_search(found_.exprs.begin(), found_.exprs.end(), user) ||
                          isHostScalar(fusion_, fusion_.expr(user));
      if (!inside) {
        return fmt::format("%{} reads its intermediate value %{}",
                           fusion_.value(fusion_.expr(user).outputs[0]).name,
                           fusion_.value(value).name);
      }
    }
    if (holds(fusion_.outputs(), value)) {
      return fmt::format("its intermediate value %{} is an output of the fusion",
                         fusion_.value(value).name);
    }
  }
  return {};
}

}  // namespace heddle
