#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// Options of the matrix products matmul and linear.
struct ProductOptions {
  std::string activation = "none";  // none, relu, or (only for floats) gelu_tanh
  std::string precision = "full";  // full, or tf32: f32 operands may be rounded to 10 mantissa bits
  std::optional<DType> dtype = {};  // only for f8 operands: the dtype of the result and the bias
};

// Builds a Fusion (ir/graph/fusion.h). Only the builder creates values.
//
// Errors:  every call checks arity, attributes, dtypes and shapes. It throws UserError with the op
//          and the operands. Most errors of ops also contain the source line that line() has set.
// Names:   name() names the next result. A result without a name gets a default name: T0, T1, ...
//          for tensors, S0, S1, ... for scalars. The number is the index of the value among all
//          values. If the name is in use or reserved, `_` is appended.
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
  // Throws UserError if the default value does not fit the type. A float type accepts infinities,
  // NaN, floats that stay finite when they are rounded to the type, and integers that it represents
  // exactly. An integer type accepts integers in its range, and bool accepts bools.
  ValueId scalarInput(std::string name, DType dtype, std::optional<Scalar> default_value = {});
  // Sets the value that the symbol has in a run in which no input determines it. Throws UserError
  // for a second default of the symbol. Also throws for a negative default, unless the symbol is
  // scalarSymbol() of an input, and after 10,000 defaults.
  void sizeDefault(const std::string& symbol, int64_t value);
  // Returns the value of a scalar as a size, for the sizes of ops: sizeFrom(n) + 1. The scalar is
  // an integer input, or is computed from integer inputs and sizes. Such an input may also be a
  // tensor without axes; the caller must then pass it in host memory in every run. Throws UserError
  // for other values.
  Size sizeFrom(ValueId scalar) const;
  // Adds a condition that every run checks: the scalar input equals the size. Throws UserError if
  // `scalar` is not an integer scalar input, or already has such a condition.
  void requireEqual(ValueId scalar, Size size);

  // Sets the name of the result of the next op. C++ evaluates the arguments of a function before it
  // calls the function: in `b.name("y").pointwise("mul", {b.matmul(x, w), s})`, the matmul is
  // therefore appended first and gets the name.
  FusionBuilder& name(std::string value_name);
  FusionBuilder& line(int source_line);  // sets the line of all later values and errors
  // Returns the name that the last call of name() set and that no op has used yet, or "". Then
  // forgets the name. A composite op (ir/composite/composite.h) appends several ops. It must call
  // this function before its first op and give the name to its last op; otherwise the first op
  // would get the name.
  std::string takePendingName() { return std::exchange(pending_name_, ""); }
  void rename(ValueId value, std::string value_name);
  // Declares that a size may be 1 in a run. In such a run, the axes of this size broadcast, as in
  // NumPy. `symbol` is the symbol of a size, such as `n`, or scalarSymbol() of a scalar input.
  // Throws UserError if the fusion already has an op, or if an axis of this extent is sharded.
  void symbolicSize(const std::string& symbol);
  // Reserves a name: the builder never uses it as a default name.
  void keepFree(std::string value_name) { kept_.insert(std::move(value_name)); }

  ValueId constant(Scalar value);
  ValueId sizeOf(ValueId tensor, int64_t axis);
  // Appends an elementwise op.
  //  - Operands of different rank, or with axes of extent 1, are broadcast as in PyTorch.
  //  - If all operands are scalars, the result is a scalar.
  //  - If a 0-d tensor and a tensor with axes have types of the same category (bool, integer or
  //    float), the tensor with axes determines the type. A wider 0-d tensor is first cast to this
  //    type.
  //  - If the common type of the operands is f16 or bf16, i64 and i32 tensors are first cast to
  //    this type, except in `where`.
  ValueId pointwise(std::string_view op_name, std::vector<ValueId> operands);
  ValueId cast(ValueId value, DType dtype);
  // Appends a reduction. Negative axes count from the end, and an empty list means all axes. If
  // `keepdim` is true, the result has a broadcast axis (extent 1) in place of each reduced axis.
  // Otherwise the result lacks the reduced axes.
  ValueId reduce(std::string_view op_name, ValueId value, std::vector<int64_t> axes = {},
                 bool keepdim = false);
  // Inserts broadcast axes of extent 1. `output_axes` are their indices in the result.
  ValueId broadcast(ValueId value, std::vector<int64_t> output_axes);
  // Stretches axes of extent 1 to `sizes` and adds new axes in front. The size -1 keeps the extent
  // of an axis.
  ValueId expand(ValueId value, std::vector<Size> sizes);
  // Gives the elements a new shape and keeps their row-major order. One size may be -1; its value
  // follows from the remaining sizes. `gather_uneven` matters only if the reshape splits a sharded
  // axis unevenly: the number of devices does not divide the extent of the outermost new axis.
  // true: heddle gathers the sharded axis before the reshape, so that every device holds all
  // elements of the axis. false: compiling the fusion may throw UserError.
  ValueId reshape(ValueId value, std::vector<Size> sizes, bool gather_uneven = false);
  // Axis i of the result is axis axes[i] of `value`.
  ValueId permute(ValueId value, std::vector<int64_t> axes);
  // Selects the elements whose index along `axis2` equals the index along `axis1` plus `offset`.
  // The two axes are removed, and the diagonal is the last axis.
  ValueId diagonal(ValueId value, int64_t offset = 0, int64_t axis1 = 0, int64_t axis2 = 1);
  // Returns, along each axis, the elements start, start + step, ... that come before stop. If
  // `steps` is empty, every step is 1. Requires 0 <= start <= stop <= extent and step >= 1.
  ValueId slice(ValueId value, std::vector<Size> starts, std::vector<Size> stops,
                std::vector<int64_t> steps = {});
  // full() and iota() create tensors. full() stores `scalar` in every element. The elements of
  // iota() are i64. Each element is its own index along `axis` in the unsharded tensor.
  ValueId full(ValueId scalar, std::vector<Size> sizes, DType dtype);
  ValueId iota(std::vector<Size> sizes, int64_t axis);
  // Rules of the ops from flip() to scatterAdd() below:
  //  - take() and takeAlongAxis() give NaN (float types) or 0 (other types) for an index out of
  //    range.
  //  - Indices are i64 or i32.
  //  - A tensor without axes counts as a tensor with one axis and one element, as in PyTorch. The
  //    `axis` argument is then 0 or -1.

  // Reverses the elements along each listed axis.
  ValueId flip(ValueId value, std::vector<int64_t> axes);
  // Adds lows[i] elements before and highs[i] elements after the elements of each axis i. The new
  // elements have the value of the scalar `fill`, or 0 if `fill` is kNoValue. A negative number
  // removes elements instead.
  ValueId pad(ValueId value, std::vector<Size> lows, std::vector<Size> highs,
              ValueId fill = kNoValue);
  // Selects elements along `axis`. In the result, the axes of `index` replace `axis`:
  // out[i, j.., k] = value[i, index[j..], k].
  ValueId take(ValueId value, ValueId index, int64_t axis);
  // Computes PyTorch's gather. `index` has the rank of `value`, and the result has the shape of
  // `index`. Along axes other than `axis`, `index` may be smaller than `value` if both extents are
  // numbers. Along an axis where `index` is smaller, the op reads only the first elements of
  // `value`.
  ValueId takeAlongAxis(ValueId value, ValueId index, int64_t axis);
  // Returns the running sum along the axis. Each sum includes the element itself. For integers and
  // bools the result is i64.
  ValueId cumsum(ValueId value, int64_t axis);
  // Returns the indices that sort each line. A line consists of the elements along the axis. The
  // sort is stable, and NaN counts as greater than every number. If `first` is set, the result
  // contains only the first `first` indices of each line. If a line has fewer elements, the result
  // contains all its indices.
  ValueId argsort(ValueId value, int64_t axis = -1, bool descending = false,
                  std::optional<int64_t> first = {});
  // scatter() and scatterAdd() return a copy of `value` in which source[i] is stored (scatter) or
  // added (scatterAdd) at index[i] along `axis`.
  //  - `index` may be smaller than `source` if the extents are numbers. Along an axis where `index`
  //    is smaller, the op reads only the first elements of `source`.
  //  - Along axes other than `axis`, `index` may be smaller than `value` if the extents are
  //    numbers. Elements of `value` beyond the extent of `index` are unchanged.
  //  - With `stretch`, an axis of `index` with extent 1 is stretched to the extent of `source`, as
  //    in PyTorch's index_add. The two rules above about smaller extents then do not apply.
  //  - If several elements have the same index, scatter() keeps the last one in row-major order.
  //    scatterAdd() adds them in row-major order to the element of `value`.
  //  - An index out of range stores nothing.
  ValueId scatter(ValueId value, ValueId index, ValueId source, int64_t axis, bool stretch = false);
  ValueId scatterAdd(ValueId value, ValueId index, ValueId source, int64_t axis,
                     bool stretch = false);
  // Computes PyTorch's matmul. Batch axes are broadcast from the right. If `a` has one axis, it
  // counts as a matrix of one row, and the result has no row axis. If `b` has one axis, it counts
  // as a matrix of one column, and the result has no column axis. The operands must have the same
  // dtype, or both must have f8 types. For floats, matmul accumulates in f32 or wider, applies the
  // activation, and rounds once. Integers wrap. The result has the dtype ProductOptions::dtype if
  // it is set, otherwise the dtype of the operands.
  ValueId matmul(ValueId a, ValueId b, const ProductOptions& options = {});
  // Computes PyTorch's linear: x[..., k] times the transposed w[n, k], plus bias[n]. A bias of one
  // element is added to all elements. If the weight is w[k], the result has no axis n, and a bias
  // is an error. linear rounds once, like matmul.
  ValueId linear(ValueId x, ValueId w, std::optional<ValueId> bias = std::nullopt,
                 const ProductOptions& options = {});
  // Returns a tensor with the elements of `value`. Its sharding or layout may differ from that of
  // `value`. heddle implements this op as a view, a copy or a collective.
  ValueId set(ValueId value);

  // Appends the op of the op table (ir/ops/op.h) with this name. `attrs` are the attributes of the
  // text form. Throws UserError for an unknown attribute, a missing required attribute or a value
  // of the wrong type.
  ValueId apply(std::string_view op_name, std::vector<ValueId> operands,
                std::vector<std::pair<std::string, Attr>> attrs = {});

  // Sets the sharding that the user wants for a value. The passes that choose shardings do not
  // change it. In a job of one rank, heddle ignores all shardings. Throws UserError in these cases:
  //  - The sharding names an axis that the mesh or the tensor lacks, or a mesh that the fusion
  //    lacks.
  //  - It uses a mesh axis twice.
  //  - It splits a broadcast axis, an axis that a reduction kept with `keepdim`, or an axis whose
  //    size may be 1 (symbolicSize()).
  //  - It declares an f8 tensor partial, or an integer or bool tensor partial with avg.
  //  - Its stream split (Sharding::StreamSplit) names an axis that the tensor lacks, or its number
  //    of chunks is not positive.
  //  - The value is a scalar, or already has a different sharding from an earlier call.
  void shard(ValueId value, Sharding sharding);
  // Sets the memory order that a computed value must have. Throws UserError if `order` does not
  // list each axis of the value once. Also throws UserError for an input or a scalar, and if an
  // earlier call set a different order.
  void requireOrder(ValueId value, AxisOrder order);
  // Appends an output. If `order` is set, the output has this memory order, no matter which op
  // computes it. A value may be several outputs with different orders. Throws UserError if the
  // value does not exist. With `order`, also throws if the value is a scalar, or if `order` does
  // not list each axis of the value once. With `reuse`, the output is stored in the memory of an
  // input. The tensor that the caller passes for this input then holds the result, and keeps its
  // memory order. With `reuse`, throws UserError in these cases:
  //  - `reuse->input` is not an input, or the output or the input is a scalar.
  //  - The dtypes or the sizes of the output and the input differ. If only a run can tell whether
  //    two sizes are equal, the function adds a guard (SizeGuard).
  //  - A second output reuses the same input, or `order` is set too.
  void output(ValueId value, std::optional<AxisOrder> order = {},
              std::optional<OutputReuse> reuse = {});
  void output(ValueId value, OutputReuse reuse) { output(value, std::nullopt, reuse); }
  // Sets the memory order that output number `output`, counted from 0, must have. Throws UserError
  // if there is no such output, if it already has a different order, and in the cases of output()
  // with `order`.
  void setStrideOrder(size_t output, AxisOrder order);

  // --- for composites (ir/composite/composite.h) -----------------------------------------------

  // `op_name` is the name of the composite. The functions below put it in their error messages.

  std::string where(std::string_view op_name) const;  // "add" or "add at line 7"
  std::string typeOf(ValueId id) const;               // "%x: f32[t, h]"
  // Returns the tensor of an operand. Throws UserError if the id is not a tensor of this fusion.
  const TensorView& tensorOf(std::string_view op_name, ValueId id) const;
  // Returns the axis as an index from 0; a negative `axis` counts from the end. Throws UserError if
  // the axis is out of range.
  int64_t normalizeAxis(std::string_view op_name, int64_t axis, size_t rank) const;
  // Converts each axis like normalizeAxis(), and returns the axes in ascending order. Throws
  // UserError for a repeated axis. For rank 0, the axes 0 and -1 are valid, and the result is
  // empty.
  std::vector<int64_t> normalizeAxes(std::string_view op_name, std::vector<int64_t> axes,
                                     size_t rank) const;
  // Throws UserError if a size is a negative number.
  void checkSizes(std::string_view op_name, const std::vector<Size>& sizes) const;
  // Checks that axis a_axis of `a` and axis b_axis of `b` have equal extents. If both extents are
  // numbers and differ, the function throws UserError. If they differ and one is symbolic, the
  // function adds a guard (SizeGuard), which compares the extents in every run.
  void agree(std::string_view op_name, ValueId a, size_t a_axis, ValueId b, size_t b_axis);
  // Adds the guard a <= b (SizeGuard) if one of the sizes contains the value of a scalar.
  void guardAtMost(const Size& a, const Size& b, std::string source);

  const Fusion& fusion() const { return fusion_; }
  Fusion& mutableFusion() { return fusion_; }  // for meshes, guards, shardings, layouts
  Fusion build() &&;                           // throws UserError if there is no output

 private:
  using Attrs = std::vector<std::pair<std::string, Attr>>;

  std::string takeName(bool scalar);
  void checkReuse(ValueId value, ValueId input);
  void checkOrder(ValueId value, const AxisOrder& order) const;
  Size scalarStep(ValueId id, const std::map<ValueId, Size>& sizes) const;
  // Adds guards for sizes that contain scalars: no size is negative, and the bytes of the tensor
  // fit in 64 bits.
  void guardSizes(std::string_view op_name, const std::vector<Size>& sizes, DType dtype);
  void resolveOpenSize(std::vector<Size>& sizes, const Size& elements);
  // Returns the dtype of the result. Throws UserError for invalid operands or options of a matrix
  // product.
  DType checkProduct(std::string_view op_name, const std::vector<ValueId>& operands,
                     const ProductOptions& options) const;
  DType productType(std::string_view op_name, const std::vector<ValueId>& operands,
                    const ProductOptions& options) const;
  ValueId linearBias(ValueId w, ValueId bias);
  ValueId withAxis(ValueId value, size_t axis);
  ValueId withoutAxis(ValueId value, size_t axis);
  IterDomain batchAxis(ValueId a, ValueId b, size_t from_right);
  ValueId addInput(Value value);
  // Returns the symbol of which the extent consists; for given(n, m) (Size::given() in
  // ir/base/size.h), this is n. Returns nullptr if the extent is another expression.
  static const std::string* symbolOf(const Size& extent);
  // Returns whether axes with this extent are symbolic.
  bool isSymbolic(const Size& extent) const;
  void markSymbolicAxes(Value& value) const;
  // Returns the axis to which symbolic axes with these extents are broadcast.
  static IterDomain symbolicAxis(const std::vector<Size>& extents);
  ValueId append(const OpDef& op, std::vector<ValueId> inputs, Attrs attrs, Value result);
  ValueId scatterBy(std::string_view op_name, ValueId value, ValueId index, ValueId source,
                    int64_t axis, bool stretch);
  void fitScatter(std::string_view op_name, ValueId value, ValueId& index, ValueId& source,
                  int64_t axis, bool stretch);
  ValueId cutToIndex(std::string_view op_name, ValueId value, ValueId index, int64_t whole_axis);
  ValueId grownTo(ValueId value, ValueId model, int64_t but_axis, Scalar fill);
  // Returns a tensor without axes as a tensor with one axis and one element. Returns every other
  // tensor unchanged.
  ValueId asLine(ValueId value) {
    return fusion_.tensor(value).rank() == 0 ? withAxis(value, 0) : value;
  }
  const TensorView& indexOf(std::string_view op_name, ValueId id) const;
  // Throws UserError for an f8 tensor. Reductions, cumsum, argsort, scatter_add and most
  // elementwise ops do not accept f8.
  void refuseFloat8(std::string_view op_name, ValueId id) const;
  // Considers the tensors among the operands from index `first` on. Throws UserError if one of them
  // has an f8 type and another one has a different type.
  void checkFloat8Operands(std::string_view op_name, const std::vector<ValueId>& operands,
                           int first) const;
  // Appends constants for the trailing operands that a call omitted.
  void addDefaults(const OpDef& op, std::vector<ValueId>& operands);
  ValueId applyStructural(const OpDef& op, const std::vector<ValueId>& operands,
                          const Attrs& attrs);
  // Broadcasts the operands, and returns the axis `axis` of the common shape. Adds a guard
  // (SizeGuard) if the extents can only be compared in a run.
  IterDomain broadcastAxis(std::string_view op_name, const std::vector<ValueId>& tensors,
                           size_t axis);

  Fusion fusion_;
  std::unordered_set<std::string> names_, kept_;
  std::unordered_set<std::string> default_symbols_;
  // For each symbol, the inputs that have an axis with this extent.
  std::unordered_map<std::string, std::vector<ValueId>> inputs_of_symbol_;
  // The name for the result of the next op, set by name(). A function that appends several ops
  // takes the name first, and restores it before its last op.
  std::string pending_name_;
  int line_ = 0;
};

}  // namespace heddle
