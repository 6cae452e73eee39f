#include "ir/passes/merge_scalars.h"

#include <bit>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "ir/analysis/kernel_rules.h"
#include "ir/graph/rewrite.h"

namespace heddle {
namespace {

class ScalarMerger {
 public:
  explicit ScalarMerger(const Fusion& fusion)
      : fusion_(fusion), rewriter_(fusion), is_output_(fusion.outputFlags()) {}

  Fusion run() {
    rewriter_.inputs();
    for (ExprId id : fusion_.exprs().ids()) {
      if (!isHostScalar(fusion_, fusion_.expr(id)) || !merge(id)) rewriter_.copy(id);
    }
    return std::move(rewriter_).finish();
  }

 private:
  // Two scalars are equal if their keys, attributes and dtypes are equal. A key consists of the op,
  // the text of an extent, the bits of a constant, and the operands. If the extent of a `size` op
  // is a constant or a symbol, the text of the extent replaces the operands in the key. The
  // attributes then do not matter. Comparing the texts of longer extents would take too much time.
  // The key of a constant contains its bits, because 0.0 and -0.0 are equal numbers but different
  // constants.
  using Key = std::tuple<const OpDef*, std::optional<std::string>, std::optional<int64_t>,
                         std::vector<ValueId>>;

  Key keyOf(const Expression& expr) const {
    if (const Size* extent = shortExtent(expr)) return {expr.op, extent->str(), {}, {}};
    std::vector<ValueId> operands;
    for (ValueId input : expr.inputs) operands.push_back(rewriter_.at(input));
    return {expr.op, {}, bitsOf(expr), std::move(operands)};
  }

  static std::optional<int64_t> bitsOf(const Expression& expr) {
    if (expr.op->kind != OpKind::Constant) return {};
    const Attr& value = *expr.find("value");
    // A constant is a float, an integer or a bool (literalValue()).
    if (const auto* number = std::get_if<double>(&value)) return std::bit_cast<int64_t>(*number);
    if (const auto* number = std::get_if<int64_t>(&value)) return *number;
    return std::get<bool>(value) ? 1 : 0;
  }

  const Size* shortExtent(const Expression& expr) const {
    if (expr.op->kind != OpKind::SizeOf) return nullptr;
    const Size& extent = fusion_.tensor(expr.inputs[0]).domain[expr.axis()].extent;
    const bool is_short = extent.isConstant() || extent.kind() == Size::Kind::Symbol;
    return is_short ? &extent : nullptr;
  }

  // Replaces the result of the expression by an earlier scalar that is equal. Returns false if
  // there is no such scalar, or if the result is an output of the fusion.
  bool merge(ExprId id) {
    const Expression& expr = fusion_.expr(id);
    const ValueId result = expr.outputs[0];
    const bool is_size = shortExtent(expr) != nullptr;
    std::vector<ExprId>& same = made_[keyOf(expr)];
    for (ExprId other : same) {
      const Expression& first = fusion_.expr(other);
      const bool is_equal = is_size || first.attrs == expr.attrs;
      const DType type = fusion_.value(result).tensor.dtype;
      if (!is_equal || is_output_[result]) continue;
      if (fusion_.value(first.outputs[0]).tensor.dtype != type) continue;
      rewriter_.stand(result, rewriter_.at(first.outputs[0]));
      return true;
    }
    same.push_back(id);
    return false;
  }

  const Fusion& fusion_;
  FusionRewriter rewriter_;
  const IdVector<ValueId, bool> is_output_;
  std::map<Key, std::vector<ExprId>> made_;
};

}  // namespace

Fusion mergeScalars(const Fusion& fusion) { return ScalarMerger(fusion).run(); }

}  // namespace heddle
