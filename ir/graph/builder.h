#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// Options of matmul and linear.
struct ProductOptions {
  std::string activation = "none";  // or relu; or gelu_tanh, for floats
  std::string precision = "full";   // or tf32: f32 operands may be rounded to 10 bits of mantissa
  std::optional<DType> dtype = {};  // of the result and the bias; for f8 operands
};

// Builds a Fusion. Only the builder creates values.
//
// Errors:  every call checks arity, attributes, dtypes and shapes. It throws UserError with the op,
// the
//          operands and, if line() was called, the source line.
// Names:   name() names the next result. Other values are called T0, T1, ..., and scalars S0, S1,
// ...;
//          the number is the index among all values.
// Threads: not thread-safe. One builder builds one Fusion.
//
//   FusionBuilder b("relu_sum");
//   ValueId x = b.input("x", DType::F32, {Size::symbol("t"), Size::symbol("h")});
//   b.output(b.reduce("sum", b.pointwise("relu", {x}), {0}));
//   Fusion fusion = std::move(b).build();
class FusionBuilder {
 public:
  explicit FusionBuilder(std::string fusion_name = "main");

  MeshId mesh(DeviceMesh mesh);
  ValueId input(std::string name, DType dtype, std::vector<Size> sizes);
  ValueId input(std::string name, TensorView tensor);
  ValueId scalarInput(std::string name, DType dtype, std::optional<Scalar> default_value = {});
  void sizeDefault(const std::string& symbol, int64_t value);

  FusionBuilder& name(std::string value_name);  // names the first output of the next op
  FusionBuilder& line(int source_line);         // the line of all later values and errors
  // Returns the name that was given and not yet used, and drops it. Composites call it, because
  // their result gets the name, not their first op.
  std::string takePendingName() { return std::exchange(pending_name_, ""); }
  void rename(ValueId value, std::string value_name);
  // Reserves a name for a later name(), so that no other value gets it by default.
  void keepFree(std::string value_name) { kept_.insert(std::move(value_name)); }

  ValueId constant(Scalar value);
  ValueId sizeOf(ValueId tensor, int64_t axis);
  // An elementwise op.
  //  - Operands of different rank or with broadcast axes are broadcast as in PyTorch.
  //  - If all operands are scalars, the result is a scalar.
  //  - A 0-d tensor does not widen the type of tensors with axes within its category: it is first
  //    cast to their type. An i64 or i32 tensor with a half type is first cast to the half type.
  ValueId pointwise(std::string_view op_name, std::vector<ValueId> operands);
  ValueId cast(ValueId value, DType dtype);
  // A reduction. Negative axes count from the end, and an empty list means all axes. The result
  // lacks the reduced axes; with keepdim they become broadcast axes.
  ValueId reduce(std::string_view op_name, ValueId value, std::vector<int64_t> axes = {},
                 bool keepdim = false);
  ValueId broadcast(ValueId value, std::vector<int64_t> output_axes);
  // Stretches axes of extent 1 and adds new axes in front. -1 leaves an extent as it is.
  ValueId expand(ValueId value, std::vector<Size> sizes);
  // `gather_uneven` decides about a sharded axis that the reshape splits such that the mesh axes do
  // not divide the outermost factor: true gathers the axis, false makes it an error.
  ValueId reshape(ValueId value, std::vector<Size> sizes, bool gather_uneven = false);
  ValueId permute(ValueId value, std::vector<int64_t> axes);
  // The elements starts, starts + steps, ... before stops of each axis. Without `steps` all are 1.
  ValueId slice(ValueId value, std::vector<Size> starts, std::vector<Size> stops,
                std::vector<int64_t> steps = {});
  // New tensors: `scalar` in every element, or the unsharded index of each element along `axis`
  // (i64).
  ValueId full(ValueId scalar, std::vector<Size> sizes, DType dtype);
  ValueId iota(std::vector<Size> sizes, int64_t axis);
  // Rules of this op and the following ones:
  //  - An index out of range reads NaN for float types and 0 for other types.
  //  - Indices are i64 or i32.
  //  - An op along an axis treats a tensor without axes as a line of one element, whose axis is 0
  //  or
  //    -1, as in PyTorch.
  ValueId flip(ValueId value, std::vector<int64_t> axes);
  // Adds `lows` and `highs` elements of `fill` (default 0) before and after each axis. Negative
  // numbers remove elements.
  ValueId pad(ValueId value, std::vector<int64_t> lows, std::vector<int64_t> highs,
              ValueId fill = kNoValue);
  // The axes of `index` replace `axis`: out[i, j.., k] = value[i, index[j..], k].
  ValueId take(ValueId value, ValueId index, int64_t axis);
  // PyTorch's gather. `index` has the rank of `value` and the shape of the result. Along the other
  // axes it may be smaller than `value` if both sizes are numbers; the rest of `value` is not read.
  ValueId takeAlongAxis(ValueId value, ValueId index, int64_t axis);
  // Sums along the axis up to and including each element. Integers and bools give i64.
  ValueId cumsum(ValueId value, int64_t axis);
  // Stable; NaN is above every number. With `first` each line of the result has only the first so
  // many indices, or all if there are fewer.
  ValueId argsort(ValueId value, int64_t axis = -1, bool descending = false,
                  std::optional<int64_t> first = {});
  // Return `value` with source[i] stored, or added, at index[i] along `axis`.
  //  - If the sizes are numbers, `index` may be smaller than `source`, whose rest is not read.
  //  Along the
  //    other axes it may be smaller than `value`, whose rest is unchanged.
  //  - With `stretch`, an axis of extent 1 of `index` is stretched to that of `source` (index_add).
  //  - If several elements have one index, scatter() keeps the last in row-major order.
  //  scatterAdd()
  //    adds them in this order, starting from the element of `value`.
  //  - An index out of range stores nothing.
  ValueId scatter(ValueId value, ValueId index, ValueId source, int64_t axis, bool stretch = false);
  ValueId scatterAdd(ValueId value, ValueId index, ValueId source, int64_t axis,
                     bool stretch = false);
  // PyTorch's matmul. Batch axes are broadcast from the right. An operand with one axis counts as a
  // row or a column, and the result lacks this axis. Both operands have one dtype, or f8 types. It
  // accumulates in f32 or wider, applies the activation, and rounds once to the dtype of the
  // result: that of the operands, or ProductOptions::dtype for f8.
  ValueId matmul(ValueId a, ValueId b, const ProductOptions& options = {});
  // PyTorch's linear: x[..., k] times w[n, k] transposed, plus bias[n]. A bias of one element
  // counts for every n. A w[k] gives a result without axis n and takes no bias. It rounds once,
  // like matmul.
  ValueId linear(ValueId x, ValueId w, std::optional<ValueId> bias = std::nullopt,
                 const ProductOptions& options = {});
  ValueId set(ValueId value);  // the same values; sharding and layout may differ

  // Any op of the table by name, with the attributes of the text form. An unknown attribute, a
  // missing required one or a wrong type is a UserError.
  ValueId apply(std::string_view op_name, std::vector<ValueId> operands,
                std::vector<std::pair<std::string, Attr>> attrs = {});

  // Sets the user's sharding of a value, which passes never change. UserError if it names an axis
  // that the mesh or the tensor lacks, uses a mesh axis twice, or differs from an earlier sharding.
  void shard(ValueId value, Sharding sharding);
  void strideOrder(ValueId value, AxisOrder order);
  void output(ValueId value);

  // --- for composites (ir/composite/composite.h), whose errors name the op that the caller wrote
  // ---

  std::string where(std::string_view op_name) const;  // "add" or "add at line 7"
  std::string typeOf(ValueId id) const;               // "%x: f32[t, h]"
  // Returns the tensor of an operand. UserError if the id is not a tensor of this fusion.
  const TensorView& tensorOf(std::string_view op_name, ValueId id) const;
  // Returns the axis counted from the front. UserError if it is out of range.
  int64_t normalizeAxis(std::string_view op_name, int64_t axis, size_t rank) const;
  // Returns a list of axes counted from the front and sorted. A repeated axis is an error. For rank
  // 0, the axes 0 and -1 are valid and the result is empty.
  std::vector<int64_t> normalizeAxes(std::string_view op_name, std::vector<int64_t> axes,
                                     size_t rank) const;
  // UserError if a size is a negative number.
  void checkSizes(std::string_view op_name, const std::vector<Size>& sizes) const;
  // Requires that two axes of operands have equal extents: at once if both are known, else by a
  // guard of the fusion.
  void agree(std::string_view op_name, ValueId a, size_t a_axis, ValueId b, size_t b_axis);

  const Fusion& fusion() const { return fusion_; }
  Fusion& mutableFusion() { return fusion_; }  // for passes: meshes, guards, defaults
  Fusion build() &&;                           // UserError if there is no output

 private:
  using Attrs = std::vector<std::pair<std::string, Attr>>;

  std::string takeName(bool scalar);
  // Returns the dtype of the result. UserError for invalid operands or options of a matrix product.
  DType checkProduct(std::string_view op_name, const std::vector<ValueId>& operands,
                     const ProductOptions& options) const;
  DType productType(std::string_view op_name, const std::vector<ValueId>& operands,
                    const ProductOptions& options) const;
  ValueId linearBias(ValueId w, ValueId bias);
  ValueId withAxis(ValueId value, size_t axis);
  ValueId withoutAxis(ValueId value, size_t axis);
  IterDomain batchAxis(ValueId a, ValueId b, size_t from_right);
  ValueId addInput(Value value);
  ValueId append(const OpDef& op, std::vector<ValueId> inputs, Attrs attrs, Value result);
  ValueId scatterBy(std::string_view op_name, ValueId value, ValueId index, ValueId source,
                    int64_t axis, bool stretch);
  void fitScatter(std::string_view op_name, ValueId value, ValueId& index, ValueId& source,
                  int64_t axis, bool stretch);
  ValueId cutToIndex(std::string_view op_name, ValueId value, ValueId index, int64_t whole_axis);
  ValueId grownTo(ValueId value, ValueId model, int64_t but_axis, Scalar fill);
  // Returns a tensor without axes as a line of one element.
  ValueId asLine(ValueId value) {
    return fusion_.tensor(value).rank() == 0 ? withAxis(value, 0) : value;
  }
  const TensorView& indexOf(std::string_view op_name, ValueId id) const;
  // UserError for an f8 tensor, which elementwise ops and reductions do not accept.
  void refuseFloat8(std::string_view op_name, ValueId id) const;
  // UserError if the operands from `first` on mix an f8 type with another type.
  void checkFloat8Operands(std::string_view op_name, const std::vector<ValueId>& operands,
                           int first) const;
  // Appends constants for the trailing operands that a call omitted.
  void addDefaults(const OpDef& op, std::vector<ValueId>& operands);
  ValueId applyStructural(const OpDef& op, const std::vector<ValueId>& operands,
                          const Attrs& attrs);
  // Returns the axis of the result where the operands are broadcast. Adds a guard if only a run can
  // tell whether their extents are equal.
  IterDomain broadcastAxis(std::string_view op_name, const std::vector<ValueId>& tensors,
                           size_t axis);

  Fusion fusion_;
  std::unordered_set<std::string> names_, kept_;
  std::string pending_name_;
  int line_ = 0;
};

}  // namespace heddle
