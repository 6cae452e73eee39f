#include "ir/cats/cat.h"

#include <algorithm>
#include <set>

#include "ir/analysis/kernel_rules.h"

namespace heddle {
namespace {

// Recognizes a cat (cat.h). The form of a cat of a, b and c along an axis is shown below. `index`
// is the index of the element along the axis. ends[0] is the extent of a, and ends[1] the extent of
// a plus the extent of b.
//
//   where(index < ends[0], indexed(a), where(index < ends[1], indexed(b), indexed(c)))
//
// indexed(p) extends a piece p to the extent of the result:
//   pad(p, ...)                    if the lengths of the padding on both sides are numbers
//   take(p, iota, axis)            otherwise, for the first piece
//   take(p, iota - start, axis)    otherwise, for all other pieces
class CatMatch {
 public:
  CatMatch(const Fusion& fusion, const IdVector<ValueId, std::vector<ExprId>>& readers,
           const IdVector<ValueId, bool>& is_output)
      : fusion_(fusion), readers_(readers), is_output_(is_output) {}

  // Matches the cat whose result the `where` expression `last` computes.
  std::optional<Cat> match(ExprId last) {
    cat_.result = fusion_.expr(last).outputs[0];
    const Expression* choice = take(cat_.result, "where");
    if (!takeIndex(*choice)) return std::nullopt;
    Size start(0);
    ValueId rest = cat_.result;
    while ((choice = take(rest, "where")) != nullptr) {
      const std::optional<Size> end = endOf(choice->inputs[0]);
      if (!end || !takePiece(choice->inputs[1], start, *end)) return std::nullopt;
      start = *end;
      rest = choice->inputs[2];
    }
    if (!takePiece(rest, start, extentOf(cat_.result)) || cat_.pieces.size() < 2) {
      return std::nullopt;
    }
    cat_.exprs.assign(taken_.begin(), taken_.end());
    if (!isClosed()) return std::nullopt;
    return std::move(cat_);
  }

 private:
  // Adds the expression that computes the tensor `id` to the cat and returns it, if its op is `op`.
  // Otherwise returns nullptr. In this class, to take an expression means to add it to the cat.
  const Expression* take(ValueId id, std::string_view op) {
    const ExprId definition = fusion_.value(id).definition;
    if (definition == kNoExpr || fusion_.expr(definition).op->name != op) return nullptr;
    taken_.insert(definition);
    return &fusion_.expr(definition);
  }

  Size extentOf(ValueId id) const { return fusion_.tensor(id).domain[cat_.axis].extent; }

  // Takes the comparison of `where`, and finds the axis of the cat. All comparisons of a cat read
  // the same index tensor: an iota, with a broadcast axis for each other axis of the result.
  // Returns false if the comparison reads anything else.
  bool takeIndex(const Expression& where) {
    const Expression* before = take(where.inputs[0], "lt");
    if (before == nullptr || fusion_.value(before->inputs[0]).is_scalar) return false;
    index_ = before->inputs[0];
    const size_t rank = fusion_.tensor(cat_.result).rank();
    if (fusion_.tensor(index_).rank() != rank) return false;
    const Expression* broadcast = take(index_, "broadcast");
    std::set<int64_t> others;
    if (broadcast != nullptr) {
      const auto& axes = broadcast->attr<std::vector<int64_t>>("axes");
      others.insert(axes.begin(), axes.end());
    }
    if (others.size() + 1 != rank) return false;
    while (others.contains(static_cast<int64_t>(cat_.axis))) ++cat_.axis;
    return isIota(broadcast == nullptr ? index_ : broadcast->inputs[0]);
  }

  // Takes the value `id` if it is an iota. Returns whether it is an iota with one axis, which has
  // the extent of the result along the axis of the cat.
  bool isIota(ValueId id) {
    const Expression* iota = take(id, "iota");
    return iota != nullptr && fusion_.tensor(id).rank() == 1 &&
           fusion_.tensor(id).domain[0].extent == extentOf(cat_.result);
  }

  // Returns the scalar as a size if a `size` op or an integer constant computes it. Otherwise
  // returns nullopt.
  std::optional<Size> sizeIn(ValueId id) const {
    const Value& value = fusion_.value(id);
    if (!value.is_scalar || value.definition == kNoExpr) return std::nullopt;
    const Expression& expr = fusion_.expr(value.definition);
    if (expr.op->kind == OpKind::SizeOf) {
      return fusion_.tensor(expr.inputs[0]).domain[expr.axis()].extent;
    }
    if (expr.op->kind != OpKind::Constant) return std::nullopt;
    // The start and the end of a piece are integers.
    const auto* number = std::get_if<int64_t>(expr.find("value"));
    return number == nullptr ? std::nullopt : std::optional<Size>(*number);
  }

  // Takes the condition `index < end` that chooses a piece, and returns `end`, the end of the
  // piece.
  std::optional<Size> endOf(ValueId condition) {
    const Expression* before = take(condition, "lt");
    if (before == nullptr || before->inputs[0] != index_) return std::nullopt;
    return sizeIn(before->inputs[1]);
  }

  bool takePiece(ValueId indexed, const Size& start, const Size& stop) {
    ValueId piece = kNoValue;
    if (const Expression* pad = take(indexed, "pad")) {
      if (isPadded(*pad, start)) piece = pad->inputs[0];
    } else if (const Expression* lookup = take(indexed, "take")) {
      if (isMoved(*lookup, start)) piece = lookup->inputs[0];
    }
    if (piece == kNoValue || !fits(piece) || start + extentOf(piece) != stop) return false;
    cat_.pieces.push_back({piece, start, stop, {}});
    return true;
  }

  // Returns whether the pad puts the piece at `start` and extends no axis except the axis of the
  // cat. The padding after the piece is not checked: it follows from the extent of the result.
  bool isPadded(const Expression& pad, const Size& start) const {
    const auto& lows = pad.attr<std::vector<Size>>("lows");
    const auto& highs = pad.attr<std::vector<Size>>("highs");
    for (size_t i = 0; i < lows.size(); ++i) {
      const bool fits =
          i == cat_.axis ? start == lows[i] : lows[i].isConstant(0) && highs[i].isConstant(0);
      if (!fits) return false;
    }
    return true;
  }

  bool isMoved(const Expression& lookup, const Size& start) {
    if (lookup.axis() != cat_.axis) return false;
    const Expression* moved = take(lookup.inputs[1], "sub");
    if (moved == nullptr) return start.isConstant(0) && isIota(lookup.inputs[1]);
    return isIota(moved->inputs[0]) && sizeIn(moved->inputs[1]) == start;
  }

  // Returns whether the elements of the piece are elements of the result without any change. The
  // ops of a cat can also convert the piece to another dtype, or repeat its elements along axes
  // other than the axis of the cat. Such pieces do not fit.
  bool fits(ValueId piece) const {
    const TensorView& mine = fusion_.tensor(piece);
    const TensorView& result = fusion_.tensor(cat_.result);
    if (mine.rank() != result.rank() || mine.dtype != result.dtype) return false;
    for (size_t i = 0; i < mine.rank(); ++i) {
      const bool stretches = mine.domain[i].kind == IterKind::Broadcast &&
                             result.domain[i].kind != IterKind::Broadcast;
      if (i != cat_.axis && stretches) return false;
    }
    return true;
  }

  // Returns whether all values of the cat except the result are intermediate: only expressions of
  // the cat read them, and the fusion does not return them.
  bool isClosed() const {
    return std::all_of(taken_.begin(), taken_.end(), [&](ExprId id) {
      const ValueId value = fusion_.expr(id).outputs[0];
      const std::vector<ExprId>& readers = readers_[value];
      return value == cat_.result ||
             (!is_output_[value] && std::all_of(readers.begin(), readers.end(), [&](ExprId reader) {
               return taken_.contains(reader);
             }));
    });
  }

  const Fusion& fusion_;
  const IdVector<ValueId, std::vector<ExprId>>& readers_;
  const IdVector<ValueId, bool>& is_output_;
  Cat cat_;
  ValueId index_ = kNoValue;
  std::set<ExprId> taken_;
};

}  // namespace

std::vector<Cat> catsOf(const Fusion& fusion) {
  const IdVector<ValueId, std::vector<ExprId>> readers = readersOf(fusion);
  const IdVector<ValueId, bool> is_output = fusion.outputFlags();
  std::vector<Cat> cats;
  std::set<ExprId> taken;
  // Visits the expressions from the last to the first, so that the outer `where` of a cat comes
  // before the inner `where` expressions of this cat.
  for (ExprId id : fusion.exprs().ids().reversed()) {
    if (fusion.expr(id).op->name != "where" || taken.contains(id)) continue;
    std::optional<Cat> cat = CatMatch(fusion, readers, is_output).match(id);
    if (!cat) continue;
    taken.insert(cat->exprs.begin(), cat->exprs.end());
    cats.push_back(std::move(*cat));
  }
  std::reverse(cats.begin(), cats.end());
  return cats;
}

}  // namespace heddle
