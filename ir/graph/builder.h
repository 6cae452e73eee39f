#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// Of matmul and linear.
struct ProductOptions {
  std::string activation = "none";  // relu; gelu_tanh for floats
  std::string precision = "full";   // tf32: f32 operands may be rounded to 10 bits of mantissa
  std::optional<DType> dtype = {};  // of the result, bias and all, for f8 operands
};

// The only way to make values. Every call checks arity, attributes, dtypes and shapes and throws
// UserError naming the op, the operands and, when set, the source line. Names: the next result may
// be named with name(); otherwise values are called T0, T1, ... (S0, S1, ... for scalars), where
// the number is the position among all values.
//
//   FusionBuilder b("relu_sum");
//   ValueId x = b.input("x", DType::F32, {Size::symbol("t"), Size::symbol("h")});
//   b.output(b.reduce("sum", b.pointwise("relu", {x}), {0}));
//   Fusion fusion = std::move(b).build();
//
// Not thread-safe; one builder makes one Fusion.
class FusionBuilder {
 public:
  explicit FusionBuilder(std::string fusion_name = "main");

  MeshId mesh(DeviceMesh mesh);
  ValueId input(std::string name, DType dtype, std::vector<Size> sizes);
  ValueId input(std::string name, TensorView tensor);
  ValueId scalarInput(std::string name, DType dtype, std::optional<Scalar> default_value = {});
  void sizeDefault(const std::string& symbol, int64_t value);

  FusionBuilder& name(std::string value_name);  // of the first output of the next op
  FusionBuilder& line(int source_line);         // put on values and errors from here on
  // The name given and not yet used, which is dropped: for composites, whose last op gets it.
  std::string takePendingName() { return std::exchange(pending_name_, ""); }
  void rename(ValueId value, std::string value_name);
  // A name that a later name() may give: values without one are not called so.
  void keepFree(std::string value_name) { kept_.insert(std::move(value_name)); }

  ValueId constant(Scalar value);
  ValueId sizeOf(ValueId tensor, int64_t axis);
  // Operands of different rank or with broadcast axes are broadcast as PyTorch does. With only
  // scalar operands the result is a scalar. A 0-d tensor does not widen the type of tensors with
  // axes within its category: it is cast to it first, as integers are to a half type beside them.
  ValueId pointwise(std::string_view op_name, std::vector<ValueId> operands);
  ValueId cast(ValueId value, DType dtype);
  // Negative axes count from the end, and no axes mean all; the reduced axes vanish or, with
  // keepdim, become broadcast.
  ValueId reduce(std::string_view op_name, ValueId value, std::vector<int64_t> axes = {},
                 bool keepdim = false);
  ValueId broadcast(ValueId value, std::vector<int64_t> output_axes);
  // Axes of extent 1 are stretched, new axes come in front; -1 leaves an extent as it is.
  ValueId expand(ValueId value, std::vector<Size> sizes);
  // `gather_uneven`: a sharded axis that it splits into parts which the devices cannot share evenly
  // is gathered; else that is refused.
  ValueId reshape(ValueId value, std::vector<Size> sizes, bool gather_uneven = false);
  ValueId permute(ValueId value, std::vector<int64_t> axes);
  // Elements starts, starts + steps, ... before stops; no `steps` means 1 everywhere.
  ValueId slice(ValueId value, std::vector<Size> starts, std::vector<Size> stops,
                std::vector<int64_t> steps = {});
  // A new tensor: `scalar` in every element, or the unsharded index of each along `axis` (i64).
  ValueId full(ValueId scalar, std::vector<Size> sizes, DType dtype);
  ValueId iota(std::vector<Size> sizes, int64_t axis);
  // Elements of `value` at other places. A place outside reads nothing: NaN of a float type, 0 of
  // the others. Indices are i64 or i32. Here and below, where an op works along an axis, a tensor
  // without axes is one of one element, whose axis is 0 or -1, as in PyTorch.
  ValueId flip(ValueId value, std::vector<int64_t> axes);
  // `lows` and `highs` elements of `fill` (0) before and after each axis; negative ones cut.
  ValueId pad(ValueId value, std::vector<int64_t> lows, std::vector<int64_t> highs,
              ValueId fill = kNoValue);
  // The axes of `index` take the place of `axis`: out[i, j.., k] = value[i, index[j..], k].
  ValueId take(ValueId value, ValueId index, int64_t axis);
  // PyTorch's gather: `index` has the rank of `value` and is the shape of the result; but along
  // `axis` it may be smaller, where both sizes are numbers, and the rest of `value` is not read.
  ValueId takeAlongAxis(ValueId value, ValueId index, int64_t axis);
  // Sums along the axis up to and with each element; integers and bools give i64.
  ValueId cumsum(ValueId value, int64_t axis);
  // Stable; NaN is above every number. With `first` a line of the result has that many places, or
  // as many as there are.
  ValueId argsort(ValueId value, int64_t axis = -1, bool descending = false,
                  std::optional<int64_t> first = {});
  // `value` with source[i] put at index[i] along `axis`. Where the sizes are numbers, `index` may
  // be smaller than `source`, of which the rest is not read, and but along `axis` smaller than
  // `value`, of which the rest stays. With `stretch` an axis of `index` of extent 1 stands for all
  // of the source's instead (index_add). Of several at one place the last in row-major order wins;
  // of a scatter_add all are added in that order, starting from the element of `value`. An index
  // outside puts nothing.
  ValueId scatter(ValueId value, ValueId index, ValueId source, int64_t axis, bool stretch = false);
  ValueId scatterAdd(ValueId value, ValueId index, ValueId source, int64_t axis,
                     bool stretch = false);
  // PyTorch's matmul: batch axes are broadcast from the right, an operand of one axis stands for a
  // row or a column that the result lacks. Operands have one dtype, or are of f8 types. Accumulates
  // in f32 or wider, applies the activation and rounds once, to the operands' dtype or that of f8.
  ValueId matmul(ValueId a, ValueId b, const ProductOptions& options = {});
  // x[..., k] by w[n, k] transposed, plus bias[n] (one element: for every n): PyTorch's linear. A
  // w[k] gives no axis n and takes no bias. One rounding as matmul.
  ValueId linear(ValueId x, ValueId w, std::optional<ValueId> bias = std::nullopt,
                 const ProductOptions& options = {});
  ValueId set(ValueId value);

  // Any op of the table by name, as the text form writes it. Attributes the op does not have,
  // required ones that are missing, and wrong types are UserErrors.
  ValueId apply(std::string_view op_name, std::vector<ValueId> operands,
                std::vector<std::pair<std::string, Attr>> attrs = {});

  // The user's sharding of a value; passes never change it. UserError when it names an axis the
  // mesh or the tensor lacks, uses a mesh axis twice, or differs from an earlier one.
  void shard(ValueId value, Sharding sharding);
  void strideOrder(ValueId value, AxisOrder order);
  void output(ValueId value);

  // --- for ops made of others (ir/composite/composite.h), whose errors name the op the caller
  // wrote
  // ---------
  std::string where(std::string_view op_name) const;  // "add" or "add at line 7"
  std::string typeOf(ValueId id) const;               // "%x: f32[t, h]"
  // The tensor of an operand; UserError when the id is not a tensor of this fusion.
  const TensorView& tensorOf(std::string_view op_name, ValueId id) const;
  // Counted from the front; UserError when out of range.
  int64_t normalizeAxis(std::string_view op_name, int64_t axis, size_t rank) const;
  // The same of a list: in order, none twice. A tensor without axes has 0 and -1, which are none.
  std::vector<int64_t> normalizeAxes(std::string_view op_name, std::vector<int64_t> axes,
                                     size_t rank) const;
  // UserError when a size is a negative number.
  void checkSizes(std::string_view op_name, const std::vector<Size>& sizes) const;
  // Two axes of operands have equal extents: checked here, or by a guard when a run knows.
  void agree(std::string_view op_name, ValueId a, size_t a_axis, ValueId b, size_t b_axis);

  const Fusion& fusion() const { return fusion_; }
  Fusion& mutableFusion() { return fusion_; }  // for passes that rebuild: meshes, guards, defaults
  Fusion build() &&;                           // verifies that there is an output

 private:
  using Attrs = std::vector<std::pair<std::string, Attr>>;

  std::string takeName(bool scalar);
  // Of the result; UserError for operands and options that no product has.
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
  // A tensor without axes as a line of one element.
  ValueId asLine(ValueId value) {
    return fusion_.tensor(value).rank() == 0 ? withAxis(value, 0) : value;
  }
  const TensorView& indexOf(std::string_view op_name, ValueId id) const;
  // UserError: f8 types take part in casts and moves only.
  void refuseFloat8(std::string_view op_name, ValueId id) const;
  // UserError when an f8 tensor, from operand `first` on, stands beside another type.
  void checkFloat8Operands(std::string_view op_name, const std::vector<ValueId>& operands,
                           int first) const;
  // Constants for the trailing operands that a call left out.
  void addDefaults(const OpDef& op, std::vector<ValueId>& operands);
  ValueId applyStructural(const OpDef& op, const std::vector<ValueId>& operands,
                          const Attrs& attrs);
  // The extent where all operands meet on one axis; adds a guard when it cannot be decided here.
  IterDomain broadcastAxis(std::string_view op_name, const std::vector<ValueId>& tensors,
                           size_t axis);

  Fusion fusion_;
  std::unordered_set<std::string> names_, kept_;
  std::string pending_name_;
  int line_ = 0;
};

}  // namespace heddle
