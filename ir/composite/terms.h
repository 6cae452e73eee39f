#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/builder.h"

// Terms, which let composite ops be written as formulas, and checks of operands. Only the sources
// of ir/composite include this header.
namespace heddle::composite {

// A value of the fusion under construction. Operators append ops to the fusion. A number in a
// formula becomes an f64 scalar constant, which does not widen the type of a float tensor.
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
Term cast(Term a, DType dtype);  // returns `a` if it has the dtype

using Axes = std::vector<int64_t>;
Term sum(Term a, const Axes& axes, bool keepdim = true);
Term max(Term a, const Axes& axes, bool keepdim = true);
Term broadcast(Term a, const Axes& output_axes);
// Returns the unsharded number of elements along `axes` as an i64 scalar. It is equal on every
// rank.
Term count(Term a, const Axes& axes);
Term mean(Term a, const Axes& axes, bool keepdim = true);

// Returns a size as an i64 scalar.
Term sizeScalar(FusionBuilder& b, const Size& size);

// Returns the index along `axis` of each element of a tensor of `sizes` (i64). All other axes of
// the result are broadcast axes.
Term positions(FusionBuilder& b, const std::vector<Size>& sizes, int64_t axis);

// A composite whose operands have a half type (f16, bf16) computes in f32 from the first op to the
// last and rounds once, at the end.
bool isHalf(DType dtype);
DType wideType(DType dtype);  // f32 for half types
Term widen(Term a);

// Gives the name that the caller requested to the result of a composite. A composite must construct
// it before its first op; otherwise that op takes the name.
class Result {
 public:
  explicit Result(FusionBuilder& b) : b_(b), name_(b.takePendingName()) {}
  ValueId operator()(Term term);
  ValueId operator()(ValueId id) { return (*this)(Term{&b_, id}); }
  // Rounds the term to `dtype` first.
  ValueId operator()(Term term, DType dtype) { return (*this)(cast(term, dtype)); }

 private:
  FusionBuilder& b_;
  std::string name_;
};

// --- checks, which throw UserError with the name of the composite --------------------------------

// Checks that the operand has a float type other than f8.
Term floatOperand(FusionBuilder& b, std::string_view op_name, ValueId id);
void refuseFloat8(FusionBuilder& b, std::string_view op_name, ValueId id);
// Return axes counted from the front. axesOf() sorts them, and an empty list means all axes. An
// axis out of range or listed twice is an error.
Axes axesOf(FusionBuilder& b, std::string_view op_name, Term x, Axes axes);
int64_t axisOf(FusionBuilder& b, std::string_view op_name, Term x, int64_t axis);
// Returns the axis as a list. For a tensor without axes the list is empty: as in PyTorch, 0 and -1
// are valid there.
Axes lineOf(FusionBuilder& b, std::string_view op_name, Term x, int64_t axis);
// Checks that both have the same rank and extents, without broadcasting.
void sameShape(FusionBuilder& b, std::string_view op_name, Term x, Term y);
// Checks that the tensors can be broadcast. It considers only extents that are numbers.
void broadcastable(FusionBuilder& b, std::string_view op_name, Term x, Term y);
// Adds a guard that `holds` equals `value` at run time. If `holds` is a number, it does nothing,
// and the caller must compare. `says` names the op, the operand and the condition.
void guardSize(FusionBuilder& b, const Size& holds, int64_t value, std::string says);
// Checks that an extent is even, at once or by a guard.
void guardEven(FusionBuilder& b, std::string_view op_name, const Size& extent, int64_t axis,
               ValueId operand);
void sameType(FusionBuilder& b, std::string_view op_name, Term x, Term y);
// Checks a scale or bias. Its axes must match the axes of `x` from `axis` on. Its dtype must be
// that of `x`, or f32 if `x` has a half type.
Term parameterOf(FusionBuilder& b, std::string_view op_name, Term x, ValueId parameter,
                 int64_t axis);
// Checks that the operand has an integer type, and casts it to i64, the type of indices.
Term indexOperand(FusionBuilder& b, std::string_view op_name, ValueId id);
// Returns the sizes without that of `axis`.
std::vector<Size> without(const std::vector<Size>& sizes, int64_t axis);

}  // namespace heddle::composite
