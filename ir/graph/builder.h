#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// Options of the matrix products matmul and linear.
struct ProductOptions {
  std::string activation = "none";  // none, relu, or (only for floats) gelu_tanh
  std::string precision = "full";   // full, or tf32: may round f32 operands to 10 mantissa bits
  std::optional<DType> dtype = {};  // only for f8 operands: the dtype of the result and the bias
};

// Builds a Fusion. Only the builder creates values.
//
// Errors:  every call checks arity, attributes, dtypes and shapes. It throws UserError with the op,
//          the operands and, if line() was called, the source line.
// Names:   name() names the next result. A tensor without a name is called T0, T1, ..., a scalar
//          S0, S1, ...; the number is its index among all values.
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

  FusionBuilder& name(std::string value_name);  // the name of the next op's first result
  FusionBuilder& line(int source_line);         // the line of all later values and errors
  // Returns the name that the last name() gave and that no op has used yet, and forgets it. A
  // composite calls this before its first op, because the name is meant for its result.
  std::string takePendingName() { return std::exchange(pending_name_, ""); }
  void rename(ValueId value, std::string value_name);
  // Reserves a name for a later call of name(). No value gets it as its default name.
  void keepFree(std::string value_name) { kept_.insert(std::move(value_name)); }

  ValueId constant(Scalar value);
  ValueId sizeOf(ValueId tensor, int64_t axis);
  // Appends an elementwise op.
  //  - Operands of different rank or with broadcast axes are broadcast as in PyTorch.
  //  - If all operands are scalars, the result is a scalar.
  //  - If tensors with axes and a 0-d tensor have the same category (bool, integer or float), the
  //    0-d tensor is first cast to their type.
  //  - If an i64 or i32 tensor meets an f16 or bf16 tensor, it is first cast to f16 or bf16.
  ValueId pointwise(std::string_view op_name, std::vector<ValueId> operands);
  ValueId cast(ValueId value, DType dtype);
  // Appends a reduction. Negative axes count from the end, and an empty list means all axes. The
  // result has no reduced axes, or broadcast axes in their place if `keepdim` is true.
  ValueId reduce(std::string_view op_name, ValueId value, std::vector<int64_t> axes = {},
                 bool keepdim = false);
  ValueId broadcast(ValueId value, std::vector<int64_t> output_axes);
  // Stretches axes of extent 1 and adds new axes in front. -1 leaves an extent as it is.
  ValueId expand(ValueId value, std::vector<Size> sizes);
  // Regroups the elements in row-major order. `gather_uneven` matters only if the reshape splits a
  // sharded axis and the number of devices does not divide the outermost of the new axes. true: the
  // axis is gathered. false: this is an error.
  ValueId reshape(ValueId value, std::vector<Size> sizes, bool gather_uneven = false);
  ValueId permute(ValueId value, std::vector<int64_t> axes);
  // Returns, along each axis, the elements start, start + step, ... that come before stop. An empty
  // list `steps` means steps of 1.
  ValueId slice(ValueId value, std::vector<Size> starts, std::vector<Size> stops,
                std::vector<int64_t> steps = {});
  // Create tensors. full() puts `scalar` into every element. iota() puts the unsharded index along
  // `axis` into each element (i64).
  ValueId full(ValueId scalar, std::vector<Size> sizes, DType dtype);
  ValueId iota(std::vector<Size> sizes, int64_t axis);
  // Rules of the ops from flip() to scatterAdd():
  //  - An index out of range reads NaN for float types and 0 for other types.
  //  - Indices are i64 or i32.
  //  - A tensor without axes counts as a tensor with one axis and one element, as in PyTorch. The
  //    axis is 0 or -1.
  ValueId flip(ValueId value, std::vector<int64_t> axes);
  // Adds `lows` and `highs` elements of `fill` (default 0) before and after each axis. Negative
  // numbers remove elements.
  ValueId pad(ValueId value, std::vector<int64_t> lows, std::vector<int64_t> highs,
              ValueId fill = kNoValue);
  // Selects elements along `axis`. In the result, the axes of `index` replace `axis`:
  // out[i, j.., k] = value[i, index[j..], k].
  ValueId take(ValueId value, ValueId index, int64_t axis);
  // Computes PyTorch's gather. `index` has the rank of `value`, and the result has the shape of
  // `index`. Along axes other than `axis`, `index` may be smaller than `value` if both extents are
  // numbers. The rest of `value` is then not read.
  ValueId takeAlongAxis(ValueId value, ValueId index, int64_t axis);
  // Returns the running sum along the axis, which includes the element itself. Integers and bools
  // give i64.
  ValueId cumsum(ValueId value, int64_t axis);
  // Returns the indices that sort each line along the axis. The sort is stable, and NaN is above
  // every number. If `first` is given, each line of the result has only its first `first` indices,
  // or all of them if there are fewer.
  ValueId argsort(ValueId value, int64_t axis = -1, bool descending = false,
                  std::optional<int64_t> first = {});
  // Return a copy of `value` in which source[i] is stored (scatter) or added (scatterAdd) at
  // index[i] along `axis`.
  //  - `index` may be smaller than `source` if the extents are numbers. The rest of `source` is
  //    then not read.
  //  - Along axes other than `axis`, `index` may be smaller than `value` if the extents are
  //    numbers. The rest of `value` is then unchanged.
  //  - With `stretch`, an axis of `index` with extent 1 is stretched to the extent of `source`
  //    (index_add).
  //  - If several elements have the same index, scatter() keeps the last one in row-major order.
  //    scatterAdd() adds them in row-major order to the element of `value`.
  //  - An index out of range stores nothing.
  ValueId scatter(ValueId value, ValueId index, ValueId source, int64_t axis, bool stretch = false);
  ValueId scatterAdd(ValueId value, ValueId index, ValueId source, int64_t axis,
                     bool stretch = false);
  // Computes PyTorch's matmul. Batch axes are broadcast from the right. An operand with one axis
  // counts as a row (a) or a column (b), and the result lacks this axis. The operands must have the
  // same dtype, or both must have f8 types. matmul accumulates in f32 or wider, applies the
  // activation, and rounds once. The dtype of the result is that of the operands, or
  // ProductOptions::dtype for f8 operands.
  ValueId matmul(ValueId a, ValueId b, const ProductOptions& options = {});
  // Computes PyTorch's linear: x[..., k] times the transposed w[n, k], plus bias[n]. A bias of one
  // element is added for every n. If w is w[k], the result has no axis n, and a bias is an error.
  // linear rounds once, like matmul.
  ValueId linear(ValueId x, ValueId w, std::optional<ValueId> bias = std::nullopt,
                 const ProductOptions& options = {});
  ValueId set(ValueId value);  // the same values; sharding and layout may differ

  // Appends the op of the op table (ir/ops/op.h) with this name. `attrs` are the attributes of the
  // text form. UserError for an unknown attribute, a missing required one or a wrong type.
  ValueId apply(std::string_view op_name, std::vector<ValueId> operands,
                std::vector<std::pair<std::string, Attr>> attrs = {});

  // Sets the sharding that the user wants for a value. Passes never change it. UserError in these
  // cases:
  //  - It names an axis that the mesh or the tensor lacks.
  //  - It uses a mesh axis twice.
  //  - The value already has a different sharding.
  void shard(ValueId value, Sharding sharding);
  void strideOrder(ValueId value, AxisOrder order);
  void output(ValueId value);

  // --- for composites (ir/composite/composite.h) -------------------------------------------
  // Their errors name the op that the caller wrote: `op_name`.

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
  // Throws UserError if a size is a negative number.
  void checkSizes(std::string_view op_name, const std::vector<Size>& sizes) const;
  // Requires that two axes of operands have equal extents. If both extents are numbers, different
  // ones are a UserError now. Otherwise a guard of the fusion compares them at run time.
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
  // Returns a tensor without axes as a tensor with one axis and one element, others unchanged.
  ValueId asLine(ValueId value) {
    return fusion_.tensor(value).rank() == 0 ? withAxis(value, 0) : value;
  }
  const TensorView& indexOf(std::string_view op_name, ValueId id) const;
  // Throws UserError for an f8 tensor. Elementwise ops and reductions do not accept f8.
  void refuseFloat8(std::string_view op_name, ValueId id) const;
  // Throws UserError if the operands from index `first` on mix an f8 type with another type.
  void checkFloat8Operands(std::string_view op_name, const std::vector<ValueId>& operands,
                           int first) const;
  // Appends constants for the trailing operands that a call omitted.
  void addDefaults(const OpDef& op, std::vector<ValueId>& operands);
  ValueId applyStructural(const OpDef& op, const std::vector<ValueId>& operands,
                          const Attrs& attrs);
  // Returns axis `axis` of the result of broadcasting the operands. Adds a guard if the extents can
  // only be compared at run time.
  IterDomain broadcastAxis(std::string_view op_name, const std::vector<ValueId>& tensors,
                           size_t axis);

  Fusion fusion_;
  std::unordered_set<std::string> names_, kept_;
  std::unordered_set<std::string> default_symbols_;
  std::string pending_name_;
  int line_ = 0;
};

}  // namespace heddle
