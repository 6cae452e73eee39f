#pragma once

#include <map>
#include <span>
#include <vector>

#include "ir/graph/fusion.h"
#include "ir/reference/reference.h"
#include "ir/types/host_tensor.h"

namespace heddle {

// Functions that the two reference evaluations share. The dense evaluation computes all elements
// (ir/reference/dense.h). The sparse evaluation computes selected elements
// (ir/reference/sparse.h).

// --- elements ------------------------------------------------------------------------------------

// The number of elements that are converted together. A buffer of this size fits on the stack and
// in the L1 cache.
inline constexpr int64_t kBlock = 512;

// A sequence of elements in memory. Consecutive elements of the sequence are `stride` elements
// apart.
struct ElementRun {
  const std::byte* data = nullptr;
  DType dtype = DType::F32;
  int64_t stride = 1;
};

// These functions convert `count` elements of a run to double or int64, and store them densely in
// `out`. If `compute` is F32 or Bool, the functions first round the elements to this type. They
// round to no other type.
void loadFloats(const ElementRun& run, int64_t count, DType compute, double* out);
void loadInts(const ElementRun& run, int64_t count, DType compute, int64_t* out);
// These functions round `count` values to `dtype` and store them densely.
void storeElements(const double* values, int64_t count, DType dtype, std::byte* out);
void storeElements(const int64_t* values, int64_t count, DType dtype, std::byte* out);

// Evaluates one pointwise expression on sequences of elements (ElementRun).
class ElementCore {
 public:
  ElementCore(const Fusion& fusion, const Expression& expr);
  // Writes `count` results to `out`. Each operand has `count` elements. `count` is at most kBlock.
  void run(std::span<const ElementRun> operands, int64_t count, std::byte* out) const;

 private:
  const OpDef* op_;
  double (*on_floats_)(const double*);
  DType compute_;
  DType result_;
};

// Returns true if the reference computes ops on this type in int64, and false if it computes them
// in double.
inline bool computesInts(DType dtype) { return !isFloat(dtype); }

// The arithmetic in which reductions and matrix products accumulate: double or int64.
template <class T>
struct Arithmetic;
template <>
struct Arithmetic<double> {
  static void load(const ElementRun& run, int64_t count, DType dtype, double* out) {
    loadFloats(run, count, dtype, out);
  }
  static auto combine(const OpDef& op) { return op.on_floats; }
  static double identity(const OpDef& op, DType dtype) {
    return toDouble(identityOf(*op.reduce_op, dtype));
  }
  static double multiplyAdd(double acc, double a, double b) { return acc + a * b; }
};
template <>
struct Arithmetic<int64_t> {
  static void load(const ElementRun& run, int64_t count, DType dtype, int64_t* out) {
    loadInts(run, count, dtype, out);
  }
  static auto combine(const OpDef& op) { return op.on_ints; }
  static int64_t identity(const OpDef& op, DType dtype) {
    return toInt(identityOf(*op.reduce_op, dtype));
  }
  static int64_t multiplyAdd(int64_t acc, int64_t a, int64_t b) {  // wraps
    return static_cast<int64_t>(static_cast<uint64_t>(acc) +
                                static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
};

// These functions apply the activation of a matrix product to a sum that is not rounded yet. An
// integer sum first wraps to `dtype`, the type of the result. The functions return the sum
// unchanged if there is no activation.
double activated(double sum, DType dtype, const Expression& expr);
int64_t activated(int64_t sum, DType dtype, const Expression& expr);

// --- evaluation ----------------------------------------------------------------------------------

struct ReferenceContext {
  const Fusion& fusion;
  const ReferenceInputs& inputs;
  const SizeBindings& sizes;
  // Only for the sparse evaluation: for each value of which it computes only a part, the sizes of
  // this part.
  std::map<ValueId, std::vector<int64_t>> partial_sizes = {};

  int64_t evaluate(const Size& size) const { return size.evaluate(lookupIn(sizes)); }
  std::vector<int64_t> sizesOf(ValueId id) const;
};

// Returns the value of an input. A scalar becomes a 0-d tensor. If a scalar is missing, the
// function returns its default. If a tensor is missing and ReferenceInputs::random_seed is set, the
// function generates the tensor. Throws UserError if an input has no value, or if the type or the
// sizes of a tensor differ from the declaration.
HostTensor inputValue(const ReferenceContext& context, ValueId id);

// Returns, for each value, the last expression that reads it. The evaluation frees the value after
// this expression. The entry of an output is the id after the last expression, so outputs are never
// freed. The entry of a value that nothing reads is invalid.
IdVector<ValueId, ExprId> lastUses(const Fusion& fusion);

// Returns whether the expression is a *leaf*: a Constant or SizeOf, whose value needs no elements
// of an operand.
inline bool isLeaf(const Expression& expr) {
  return expr.op->kind == OpKind::Constant || expr.op->kind == OpKind::SizeOf;
}

// Returns the value of a Constant or SizeOf expression as a 0-d tensor.
HostTensor leafValue(const ReferenceContext& context, const Expression& expr);

// Describes which elements of one operand an expression reads, as linear indices into the dense
// operand. The output element at coordinates c reads the element with the index offset + sum over i
// of c[i] * strides[i]. A reduction or matrix product also has inner axes: the reduced axes. For
// each output element, such an expression reads all elements that follow from this index by steps
// of inner_strides along the inner axes.
struct Access {
  int64_t offset = 0;
  std::vector<int64_t> strides;        // per output axis
  std::vector<int64_t> inner_strides;  // per inner axis
};
struct Accesses {
  std::vector<int64_t> inner_sizes;  // extents of the reduced axes; empty if there are none
  std::vector<Access> operands;
};
// Returns the accesses of an expression. The expression must not be a Constant or SizeOf, and
// isIndexed() (ir/reference/indexed.h) must be false for its kind. Throws UserError if a slice is
// outside of its tensor, or if a reshape changes the number of elements.
Accesses accessesOf(const ReferenceContext& context, const Expression& expr);

std::vector<int64_t> denseStrides(const std::vector<int64_t>& sizes);

}  // namespace heddle
