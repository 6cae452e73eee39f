#include "host/plan/local_segment.h"

#include <algorithm>

#include "host/unroll/unroll.h"
#include "ir/analysis/shardable_axes.h"
#include "ir/base/check.h"
#include "ir/graph/builder.h"

namespace heddle::host {
namespace {

// Returns the values of the segment's symbols. If a symbol is the size of an operand's axis, the
// operand gives the value. `sizes` gives the values of all other symbols.
SizeBindings symbolsOf(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                       const std::vector<TensorDesc>& outputs, const SizeBindings& sizes) {
  SizeBindings bound;
  const auto bind = [&](ValueId id, const TensorDesc& desc) {
    const Value& value = segment.value(id);
    for (size_t axis = 0; !value.is_scalar && axis < value.tensor.rank(); ++axis) {
      const Size& extent = value.tensor.domain[axis].extent;
      if (extent.kind() == Size::Kind::Symbol) {
        bound.emplace(extent.symbolName(), desc.global.at(axis));
      }
    }
  };
  for (size_t i = 0; i < inputs.size(); ++i) bind(segment.inputs()[i], inputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i) bind(segment.outputs()[i], outputs[i]);
  bound.insert(sizes.begin(), sizes.end());
  return bound;
}

// Builds the segment of one rank, value by value.
class Localiser {
 public:
  Localiser(const Fusion& segment, const SizeBindings& sizes, int64_t rank)
      : segment_(segment), lookup_(lookupIn(sizes)), rank_(rank), builder_(segment.name) {
    new_of_.assign(segment.values().size(), kNoValue);
  }

  Fusion run(const std::vector<TensorDesc>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) addInput(segment_.inputs()[i], inputs[i]);
    for (const Expression& expr : segment_.exprs()) addExpression(expr);
    for (ValueId id : segment_.outputs()) builder_.output(moved(id));
    return std::move(builder_).build();
  }

 private:
  ValueId moved(ValueId id) const { return new_of_.at(id); }

  void addInput(ValueId id, const TensorDesc& desc) {
    const Value& value = segment_.value(id);
    ValueId made = kNoValue;
    if (value.is_scalar) {
      made = builder_.scalarInput(value.name, value.tensor.dtype, value.default_value);
    } else {
      TensorView type;
      type.dtype = value.tensor.dtype;
      for (size_t axis = 0; axis < value.tensor.rank(); ++axis) {
        type.domain.push_back({Size(desc.sizes[axis]), value.tensor.domain[axis].kind});
      }
      made = builder_.input(value.name, type);
    }
    new_of_[id] = made;
  }

  Block blockOfAxis(const TensorView& tensor, size_t axis) const {
    const int64_t n = tensor.domain[axis].extent.evaluate(lookup_);
    if (!tensor.sharding || !tensor.sharding->isSharded(axis)) return {0, n, n};
    const DeviceMesh& mesh = segment_.meshes.at(tensor.sharding->mesh);
    return blockOf(n, mesh, tensor.sharding->axes[axis], rank_);
  }

  // Returns the sizes in attribute `attr` of an op as constants. In the attributes `sizes` and
  // `stops`, the entry of a sharded axis of the result becomes the size of this rank's block.
  std::vector<Size> localSizes(const Expression& expr, std::string_view attr) const {
    const auto& sizes = expr.attr<std::vector<Size>>(attr);
    const TensorView& out = segment_.tensor(expr.outputs[0]);
    std::vector<Size> local;
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      const bool is_block =
          (attr == "sizes" || attr == "stops") && out.sharding && out.sharding->isSharded(axis);
      local.emplace_back(is_block ? blockOfAxis(out, axis).valid : sizes[axis].evaluate(lookup_));
    }
    return local;
  }

  // Adds an iota: the indices within this rank's block plus the unsharded index of the block's
  // first element.
  void addIota(const Expression& expr) {
    const ValueId out = expr.outputs[0];
    const size_t axis = expr.axis();
    const std::string name = builder_.takePendingName();
    builder_.name(name + "_in_block");
    const ValueId index = builder_.iota(localSizes(expr, "sizes"), static_cast<int64_t>(axis));
    builder_.name(name + "_begin");
    const Block block = blockOfAxis(segment_.tensor(out), axis);
    const ValueId begin = builder_.constant(Scalar(block.begin));
    new_of_[out] = builder_.name(name).pointwise("add", {index, begin});
  }

  // Adds a lookup in this rank's block of a table. The table is sharded along the axis of the op. A
  // later op sums the results of all ranks. If the element is in the block of a different rank,
  // this rank contributes -0.0 (integers: 0), because adding it changes no bit of any sum. An index
  // outside of the unsharded table becomes -1, so that the op treats it as an invalid index.
  void addLookup(const Expression& expr) {
    const TensorView& table = segment_.tensor(expr.inputs[0]);
    const size_t axis = expr.axis();
    const Block block = blockOfAxis(table, axis);
    const std::string name = builder_.takePendingName();
    int made = 0;
    const auto b = [&]() -> FusionBuilder& {
      return builder_.name(fmt::format("{}_lookup{}", name, made++));
    };
    const auto literal = [&](int64_t value) { return b().constant(Scalar(value)); };
    const auto both = [&](ValueId x, ValueId y) { return b().pointwise("logical_and", {x, y}); };
    const auto within = [&](ValueId index, int64_t extent) {
      const ValueId zero = literal(0), end = literal(extent);
      const ValueId low = b().pointwise("ge", {index, zero});
      return both(low, b().pointwise("lt", {index, end}));
    };
    const ValueId wide = b().cast(moved(expr.inputs[1]), DType::I64);
    const ValueId in_table = within(wide, table.domain[axis].extent.evaluate(lookup_));
    // Indices outside of the table are replaced by -1 before the subtraction, so that the
    // subtraction cannot overflow.
    const ValueId begin = literal(block.begin), invalid = literal(-1);
    const ValueId valid = b().pointwise("where", {in_table, wide, invalid});
    const ValueId shifted = b().pointwise("sub", {valid, begin});
    const ValueId index = b().pointwise("where", {in_table, shifted, invalid});
    const ValueId here = within(index, block.valid);
    const ValueId not_here = b().pointwise("logical_not", {here});
    const ValueId elsewhere = both(in_table, not_here);
    const ValueId found = b().apply(expr.op->name, {moved(expr.inputs[0]), index}, expr.attrs);
    const ValueId zero = b().constant(isFloat(table.dtype) ? Scalar(-0.0) : Scalar(int64_t{0}));
    const ValueId none = b().full(zero, builder_.fusion().tensor(found).sizes(), table.dtype);
    std::vector<int64_t> added = axesNotOfIndex(expr);
    const ValueId mask = added.empty() ? elsewhere : b().broadcast(elsewhere, std::move(added));
    new_of_[expr.outputs[0]] = builder_.name(name).pointwise("where", {mask, none, found});
  }

  // Returns the axes of the result that are axes of the table, not of the index tensor. Only a take
  // has such axes.
  std::vector<int64_t> axesNotOfIndex(const Expression& expr) const {
    std::vector<int64_t> axes;
    if (expr.op->name != "take") return axes;
    const auto first = expr.attr<int64_t>("axis");
    const auto end = first + static_cast<int64_t>(segment_.tensor(expr.inputs[1]).rank());
    const auto rank = static_cast<int64_t>(segment_.tensor(expr.outputs[0]).rank());
    for (int64_t i = 0; i < rank; ++i) {
      if (i < first || i >= end) axes.push_back(i);
    }
    return axes;
  }

  void addExpression(const Expression& expr) {
    builder_.name(segment_.value(expr.outputs[0]).name);
    if (expr.op->kind == OpKind::SizeOf) {
      const TensorView& in = segment_.tensor(expr.inputs[0]);
      const size_t axis = expr.axis();
      const int64_t size = in.domain.at(axis).extent.evaluate(lookup_);
      new_of_[expr.outputs[0]] = builder_.constant(Scalar(size));
      return;
    }
    if (expr.op->kind == OpKind::Iota) return addIota(expr);
    if (looksUpInBlocks(segment_, expr)) return addLookup(expr);
    std::vector<ValueId> operands;
    for (ValueId id : expr.inputs) operands.push_back(moved(id));
    std::vector<std::pair<std::string, Attr>> attrs;
    for (const auto& [name, value] : expr.attrs) {
      // Only attributes of type std::vector<Size> contain sizes.
      const bool is_sizes = std::holds_alternative<std::vector<Size>>(value);
      attrs.emplace_back(name, is_sizes ? Attr(localSizes(expr, name)) : value);
    }
    new_of_[expr.outputs[0]] = builder_.apply(expr.op->name, std::move(operands), std::move(attrs));
  }

  const Fusion& segment_;
  Size::Lookup lookup_;
  int64_t rank_;
  FusionBuilder builder_;
  IdVector<ValueId, ValueId> new_of_;
};

}  // namespace

codegen::RunSizes runSizes(const Fusion& segment, const codegen::Analysis& analysis,
                           const std::vector<TensorDesc>& inputs,
                           const std::vector<TensorDesc>& outputs, const SizeBindings& sizes,
                           int64_t rank, int64_t ranks) {
  codegen::RunSizes run;
  if (analysis.generated.empty() && analysis.widths.empty()) return run;
  const SizeBindings bound = symbolsOf(segment, inputs, outputs, sizes);
  for (ValueId id : analysis.generated) {
    const Value& value = segment.value(id);
    run.generated.push_back(
        describe({value.name, false, value.tensor, {}, {}}, segment.meshes, bound, rank, ranks));
  }
  for (const Size& width : analysis.widths) run.widths.push_back(width.evaluate(lookupIn(bound)));
  return run;
}

Fusion localSegment(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                    const std::vector<TensorDesc>& outputs, const SizeBindings& sizes,
                    int64_t rank) {
  const SizeBindings bound = symbolsOf(segment, inputs, outputs, sizes);
  return Localiser(segment, bound, rank).run(inputs);
}

}  // namespace heddle::host
