#pragma once

#include <span>
#include <vector>

#include "ir/graph/fusion.h"
#include "ir/reference/reference.h"
#include "ir/types/host_tensor.h"

namespace heddle {

// What the dense and the sparse reference evaluation share.

// --- elements ------------------------------------------------------------------------------------

// Elements converted at once: small enough for the stack and the first-level cache.
inline constexpr int64_t kBlock = 512;

// `count` elements, `stride` elements apart.
struct ElementRun {
  const std::byte* data = nullptr;
  DType dtype = DType::F32;
  int64_t stride = 1;
};

// Elements as doubles or as int64, rounded to what `compute` holds.
void loadFloats(const ElementRun& run, int64_t count, DType compute, double* out);
void loadInts(const ElementRun& run, int64_t count, DType compute, int64_t* out);
// Rounded to `dtype` and stored densely.
void storeElements(const double* values, int64_t count, DType dtype, std::byte* out);
void storeElements(const int64_t* values, int64_t count, DType dtype, std::byte* out);

// One pointwise expression on runs of elements.
class ElementCore {
 public:
  ElementCore(const Fusion& fusion, const Expression& expr);
  // operands[i] holds `count` <= kBlock elements; writes as many results.
  void run(std::span<const ElementRun> operands, int64_t count, std::byte* out) const;

 private:
  const OpDef* op_;
  double (*on_floats_)(const double*);
  DType compute_;
  DType result_;
};

// Whether an op computes in int64 rather than in double.
inline bool computesInts(DType dtype) { return !isFloat(dtype); }

// What reductions and matmuls accumulate in.
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

// A product's attribute `activation` (none when it is not there), on the sum before it is rounded;
// integers wrap to the result's `dtype` first.
double activated(double sum, DType dtype, const Expression& expr);
int64_t activated(int64_t sum, DType dtype, const Expression& expr);

// --- evaluation ----------------------------------------------------------------------------------

struct ReferenceContext {
  const Fusion& fusion;
  const ReferenceInputs& inputs;
  const SizeBindings& sizes;

  int64_t evaluate(const Size& size) const { return size.evaluate(lookupIn(sizes)); }
  std::vector<int64_t> sizesOf(ValueId id) const;
};

// The input as given, or its default, as a 0-d tensor when it is a scalar. UserError when it is
// missing or is not of the declared type and sizes.
HostTensor inputValue(const ReferenceContext& context, ValueId id);

// A Constant or SizeOf expression as a 0-d tensor.
HostTensor leafValue(const ReferenceContext& context, const Expression& expr);

// Where an expression finds the elements of one operand, in elements of its dense form: output
// coordinate c needs offset + sum(c[i] * strides[i]), and for a reduction or matmul every
// combination of inner steps from there.
struct Access {
  int64_t offset = 0;
  std::vector<int64_t> strides;        // per output axis
  std::vector<int64_t> inner_strides;  // per inner axis
};
struct Accesses {
  std::vector<int64_t> inner_sizes;  // the reduced axes; empty for everything else
  std::vector<Access> operands;
};
// For every kind but Constant and SizeOf. UserError when a slice is outside its tensor.
Accesses accessesOf(const ReferenceContext& context, const Expression& expr);

// Row-major strides of a dense tensor.
std::vector<int64_t> denseStrides(const std::vector<int64_t>& sizes);

}  // namespace heddle
