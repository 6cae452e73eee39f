#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/builder.h"

// How composite ops are written: formulas over terms. For the composite_*.cpp files only.
namespace heddle::composite {

// A value of the fusion under construction; operators append ops to it. A number beside a term
// becomes an f64 scalar constant, which does not widen the type of a float tensor.
struct Term {
  FusionBuilder* b = nullptr;
  ValueId id = kNoValue;

  const TensorView& tensor() const { return b->fusion().tensor(id); }
  DType dtype() const { return tensor().dtype; }
  size_t rank() const { return tensor().rank(); }
  Size extent(int64_t axis) const { return tensor().domain[static_cast<size_t>(axis)].extent; }
};

Term constant(FusionBuilder& b, Scalar value);
Term call(std::string_view op_name, std::vector<Term> operands);

Term operator+(Term a, Term c);
Term operator-(Term a, Term c);
Term operator*(Term a, Term c);
Term operator/(Term a, Term c);
Term operator+(Term a, double c);
Term operator-(Term a, double c);
Term operator*(Term a, double c);
Term operator-(double a, Term c);
inline Term call(std::string_view op_name, Term a) { return call(op_name, std::vector<Term>{a}); }
inline Term exp(Term a) { return call("exp", a); }
inline Term log(Term a) { return call("log", a); }
inline Term rsqrt(Term a) { return call("rsqrt", a); }
Term where(Term condition, Term a, Term c);
Term cast(Term a, DType dtype);  // itself when it has the dtype

using Axes = std::vector<int64_t>;
Term sum(Term a, const Axes& axes, bool keepdim = true);
Term max(Term a, const Axes& axes, bool keepdim = true);
Term broadcast(Term a, const Axes& output_axes);
// The unsharded number of elements along `axes`, an i64 scalar: equal on every rank.
Term count(Term a, const Axes& axes);
Term mean(Term a, const Axes& axes, bool keepdim = true);

// A size as an i64 scalar.
Term sizeScalar(FusionBuilder& b, const Size& size);

// The index along `axis` of each element of a tensor of `sizes`, with broadcast axes but for that
// one: i64.
Term positions(FusionBuilder& b, const std::vector<Size>& sizes, int64_t axis);

// Half types compute in f32 from the first op to the last and are rounded once, at the end.
bool isHalf(DType dtype);
DType wideType(DType dtype);  // f32 for half types
Term widen(Term a);

// The name asked for goes to the result of a composite and not to its first op.
class Result {
 public:
  explicit Result(FusionBuilder& b) : b_(b), name_(b.takePendingName()) {}
  ValueId operator()(Term term);
  ValueId operator()(ValueId id) { return (*this)(Term{&b_, id}); }
  // The same rounded to `dtype`.
  ValueId operator()(Term term, DType dtype) { return (*this)(cast(term, dtype)); }

 private:
  FusionBuilder& b_;
  std::string name_;
};

// --- checks: UserErrors that name the op the caller wrote
// ------------------------------------------

// Of a float type in which ops compute: not f8.
Term floatOperand(FusionBuilder& b, std::string_view op_name, ValueId id);
void refuseFloat8(FusionBuilder& b, std::string_view op_name, ValueId id);
// Counted from the front, sorted; none given means all. UserError when one is out of range or
// twice.
Axes axesOf(FusionBuilder& b, std::string_view op_name, Term x, Axes axes);
int64_t axisOf(FusionBuilder& b, std::string_view op_name, Term x, int64_t axis);
// The same as a list, which is empty of a tensor without axes: PyTorch lets 0 and -1 mean none.
Axes lineOf(FusionBuilder& b, std::string_view op_name, Term x, int64_t axis);
// Same rank and extents, no broadcasting.
void sameShape(FusionBuilder& b, std::string_view op_name, Term x, Term y);
// UserError when axes, counted from the right, are of different numbers of elements and neither
// is 1.
void broadcastable(FusionBuilder& b, std::string_view op_name, Term x, Term y);
// Sizes that must have a value which `holds` is only for: a guard, unless it is known. The caller
// refuses what is known to be wrong; `says` names the op, the operand and what it must be.
void guardSize(FusionBuilder& b, const Size& holds, int64_t value, std::string says);
// The same: an extent is even.
void guardEven(FusionBuilder& b, std::string_view op_name, const Size& extent, int64_t axis,
               ValueId operand);
void sameType(FusionBuilder& b, std::string_view op_name, Term x, Term y);
// A scale or bias over the axes of `x` from `axis` to `axis + rank of parameter`; of the dtype of
// `x`, or f32 beside a half type.
Term parameterOf(FusionBuilder& b, std::string_view op_name, Term x, ValueId parameter,
                 int64_t axis);
// i32, i8 and u8 become the i64 that indices are.
Term indexOperand(FusionBuilder& b, std::string_view op_name, ValueId id);
std::vector<Size> without(const std::vector<Size>& sizes, int64_t axis);

}  // namespace heddle::composite
