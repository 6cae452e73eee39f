#include "tools/tune/compare_outputs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "codegen/compile/sha256.h"
#include "ir/base/check.h"
#include "ir/graph/print_values.h"

namespace heddle::tools {
namespace {

// Returns the rounding errors that are tolerated. Sums of many elements have several.
double toleranceOf(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return 1e-9;
    case DType::F32:
      return 1e-3;
    case DType::F16:
      return 1e-2;
    case DType::BF16:
      return 6e-2;
    case DType::F8E4M3:
    case DType::F8E5M2:
      return 0.5;
    default:
      return 0;
  }
}

// Returns whether the result depends on the order in which a candidate adds or multiplies.
bool dependsOnOrder(const Expression& expr) {
  switch (expr.op->kind) {
    case OpKind::Reduction:
      return expr.op->reduce_op != ReduceOp::Max && expr.op->reduce_op != ReduceOp::Min;
    case OpKind::Matmul:
    case OpKind::Scan:
    case OpKind::Scatter:
      return true;
    default:
      return false;
  }
}

// Returns the absolute error that is tolerated in each element of an output.
double boundOf(const HostTensor& wanted) {
  double largest = std::numeric_limits<float>::min();
  for (int64_t e = 0; e < wanted.numel(); ++e) {
    const double value = std::abs(toDouble(wanted.at(e)));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  return toleranceOf(wanted.dtype) * largest;
}

// Infinity minus infinity, and each difference from NaN, is NaN, which is within no bound.
bool agree(double a, double b, double bound) {
  return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= bound;
}

}  // namespace

std::vector<bool> outputsOfFloatSums(const Fusion& segment) {
  std::set<ValueId> derived;
  for (const Expression& expr : segment.exprs()) {
    const bool reads_derived = std::any_of(expr.inputs.begin(), expr.inputs.end(),
                                           [&](ValueId input) { return derived.contains(input); });
    const bool adds = dependsOnOrder(expr) && isFloat(segment.tensor(expr.outputs[0]).dtype);
    if (reads_derived || adds) derived.insert(expr.outputs[0]);
  }
  std::vector<bool> flags;
  for (ValueId output : segment.outputs()) flags.push_back(derived.contains(output));
  return flags;
}

std::string differenceOf(const std::vector<HostTensor>& got, const std::vector<HostTensor>& wanted,
                         const std::vector<bool>& of_float_sums) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    const bool are_floats = isFloat(wanted[i].dtype);
    const bool may_flip = !are_floats && i < of_float_sums.size() && of_float_sums[i];
    const double bound = are_floats ? boundOf(wanted[i]) : 0;
    int64_t left = may_flip ? std::max<int64_t>(1, wanted[i].numel() / 100) : 0;
    for (int64_t e = 0; e < wanted[i].numel(); ++e) {
      const Scalar a = got[i].at(e);
      const Scalar b = wanted[i].at(e);
      if (are_floats ? agree(toDouble(a), toDouble(b), bound) : toInt(a) == toInt(b)) continue;
      if (left-- > 0) continue;
      return fmt::format("element {} of output {} is {}, but {} with another candidate", e, i,
                         printScalar(a), printScalar(b));
    }
  }
  return "";
}

std::string hashOfBits(const std::vector<HostTensor>& outputs) {
  std::string bits;
  for (const HostTensor& output : outputs) {
    const size_t first = bits.size();
    bits.append(output.as<const char>(), static_cast<size_t>(output.bytes()));
    if (!isFloat(output.dtype)) continue;
    const Scalar nan = roundTo(output.dtype, std::numeric_limits<double>::quiet_NaN());
    for (int64_t e = 0; e < output.numel(); ++e) {
      if (std::isnan(toDouble(output.at(e)))) {
        storeElement(bits.data() + first, output.dtype, e, nan);
      }
    }
  }
  return codegen::sha256(bits);
}

}  // namespace heddle::tools
