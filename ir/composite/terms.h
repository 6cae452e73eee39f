#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/builder.h"

// Helpers for the sources of ir/composite, which write composite ops (ir/composite/composite.h) as
// formulas. A Term is a value in a formula. Most functions at the end of this header check
// operands. Only the sources of ir/composite include this header.
namespace heddle::composite {

// A value of the fusion under construction. The operators and functions below append ops to the
// fusion and return the result. A number in a formula becomes an f64 scalar constant. This constant
// does not widen the type of a float tensor.
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
Term cast(Term a, DType dtype);  // returns `a` if `a` already has the dtype

using Axes = std::vector<int64_t>;
Term sum(Term a, const Axes& axes, bool keepdim = true);
Term max(Term a, const Axes& axes, bool keepdim = true);
Term broadcast(Term a, const Axes& output_axes);
// Returns the number of elements of the unsharded tensor along `axes`, as an i64 scalar. The number
// is the same on every rank.
Term count(Term a, const Axes& axes);
Term mean(Term a, const Axes& axes, bool keepdim = true);

// Returns the value of `size` as an i64 scalar. Requires that the size is 0 or more in every run.
Term sizeScalar(FusionBuilder& b, const Size& size);

// Implements scalarFrom() (ir/composite/composite.h).
Term scalarOf(FusionBuilder& b, const Size& size);

// Returns an i64 tensor of indices: along `axis`, its elements are 0, 1, 2, ... up to sizes[axis] -
// 1. All other axes of the result are broadcast axes, which have the extent 1.
Term positions(FusionBuilder& b, const std::vector<Size>& sizes, int64_t axis);

// Returns all axes of a tensor of this rank except `axis`.
Axes otherAxes(size_t rank, int64_t axis);

// A composite with operands of a half type (f16, bf16) computes in f32 and rounds once, at the end.
// widen() casts an operand to wideType().
bool isHalf(DType dtype);
DType wideType(DType dtype);  // f32 for half types
Term widen(Term a);

// Gives the result of a composite the name that the caller requested with FusionBuilder::name(). If
// a composite has several results, only the result of the first call of operator() gets the name. A
// composite must construct a Result before its first op; otherwise the first op would take the
// name.
class Result {
 public:
  explicit Result(FusionBuilder& b) : b_(b), name_(b.takePendingName()) {}
  ValueId operator()(Term term);
  ValueId operator()(ValueId id) { return (*this)(Term{&b_, id}); }
  // Casts the term to `dtype` first.
  ValueId operator()(Term term, DType dtype) { return (*this)(cast(term, dtype)); }

 private:
  FusionBuilder& b_;
  std::string name_;
};

// --- operands and sizes --------------------------------------------------------------------------
// The functions that check an operand throw UserError with the name of the composite. If the check
// depends on symbolic sizes, most of them add a guard, which checks the sizes in every run.

// Checks that the operand has a float type other than f8, and returns it.
Term floatOperand(FusionBuilder& b, std::string_view op_name, ValueId id);
void refuseFloat8(FusionBuilder& b, std::string_view op_name, ValueId id);
// These functions convert negative axes, which count from the end, to indices from 0. axesOf() also
// sorts the axes, and takes an empty list as all axes. An axis out of range or listed twice throws
// UserError.
Axes axesOf(FusionBuilder& b, std::string_view op_name, Term x, Axes axes);
int64_t axisOf(FusionBuilder& b, std::string_view op_name, Term x, int64_t axis);
// Returns the axis as a list. For a tensor without axes, the axes 0 and -1 are valid, as in
// PyTorch, and the list is empty.
Axes lineOf(FusionBuilder& b, std::string_view op_name, Term x, int64_t axis);
// Checks that both tensors have the same rank and equal extents, without broadcasting.
void sameShape(FusionBuilder& b, std::string_view op_name, Term x, Term y);
// Checks that the tensors can be broadcast to a common shape. The check considers only extents that
// are numbers.
void broadcastable(FusionBuilder& b, std::string_view op_name, Term x, Term y);
// Adds a guard, which checks in every run that `holds` equals `value`. If `holds` is a number, the
// function does nothing, so the caller must compare the two numbers itself. `says` is the message
// of the error, with the op, the operand and the condition.
void guardSize(FusionBuilder& b, const Size& holds, int64_t value, std::string says);
// Checks that an extent is even. If the extent is symbolic, a guard checks it in every run.
void guardEven(FusionBuilder& b, std::string_view op_name, const Size& extent, int64_t axis,
               ValueId operand);
void sameType(FusionBuilder& b, std::string_view op_name, Term x, Term y);
// Checks a scale or bias, and returns it. Axis i of the parameter must have the extent of axis
// `axis` + i of `x`. The parameter must have the dtype of `x`. If `x` has a half type, the
// parameter may also be f32.
Term parameterOf(FusionBuilder& b, std::string_view op_name, Term x, ValueId parameter,
                 int64_t axis);
// Checks that the operand has an integer type, and casts it to i64, the type of indices.
Term indexOperand(FusionBuilder& b, std::string_view op_name, ValueId id);
// Returns the sizes without the size of `axis`.
std::vector<Size> without(const std::vector<Size>& sizes, int64_t axis);

}  // namespace heddle::composite
