#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "ir/graph/compute_type.h"
#include "tools/random/bounds.h"

namespace heddle::random {
namespace {

constexpr size_t kMostOperands = kMaxOperands;

struct Operand {
  Scalar value;
  double error = 0;
};

// Values that an operand may have, in the type in which the op computes.
struct Samples {
  std::array<double, 16> at;
  size_t count = 0;

  void add(double v) {
    if (count < at.size()) at[count++] = v;
  }
  void addInside(double v, const Operand& of) {
    const double centre = toDouble(of.value);
    if (of.error > 0 && std::fabs(v - centre) <= of.error) add(v);
  }
};

bool isSame(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Returns the distance of `b` from `a`, or kUnknown if it is not finite. Equal infinities and two
// NaN have the distance 0.
double distance(double a, double b) {
  if (isSame(a, b)) return 0;
  const double d = std::fabs(a - b);
  return std::isnan(d) ? kUnknown : d;
}

class PointwiseBound {
 public:
  PointwiseBound(const Fusion& fusion, const Expression& expr)
      : op_(*expr.op),
        compute_(computeTypeOf(fusion, expr)),
        result_(fusion.tensor(expr.outputs[0]).dtype),
        exact_(isExactOp(op_)) {}

  double of(std::vector<Operand>& operands, const Scalar& result) const {
    if (op_.name == "where") return ofWhere(operands, result);
    bool inexact = false;
    for (const Operand& operand : operands) {
      if (operand.error == kUnknown) return kUnknown;
      inexact = inexact || operand.error != 0;
    }
    // The sign of a NaN is not defined by any op.
    if (op_.name == "signbit" && std::isnan(toDouble(operands[0].value))) return kUnknown;
    if (!isFloat(compute_)) return inexact ? ofIntegers(operands) : 0;
    if (exact_ && !inexact) return signOpen(operands, result) ? kZeroOfAnySign : 0;
    return ofFloats(operands, result, inexact);
  }

 private:
  double ofWhere(const std::vector<Operand>& operands, const Scalar& result) const {
    if (operands[0].error != 0) return kUnknown;
    const Operand& chosen = operands[toInt(operands[0].value) != 0 ? 1 : 2];
    if (chosen.error == 0 || chosen.error == kZeroOfAnySign) return chosen.error;
    if (!isFloat(compute_)) return kUnknown;
    return boundAfterRounding(result_, toDouble(chosen.value), chosen.error, toDouble(result));
  }

  // Returns the bound for an op that computes in integers or bools, but has inexact float operands.
  // The bound is 0 if all values within the errors convert to the same integer or bool.
  double ofIntegers(const std::vector<Operand>& operands) const {
    for (const Operand& operand : operands) {
      if (operand.error <= 0) continue;
      const double v = toDouble(operand.value);
      const double low = v - operand.error;
      const double high = v + operand.error;
      const bool same =
          compute_ == DType::Bool ? low > 0 || high < 0 : toInt(Scalar(low)) == toInt(Scalar(high));
      if (!same) return kUnknown;
    }
    return 0;
  }

  // Returns whether the op selects one of several zero operands. The sign of the result may then
  // differ between implementations.
  bool signOpen(const std::vector<Operand>& operands, const Scalar& result) const {
    const bool picks = op_.name == "maximum" || op_.name == "minimum" || op_.name == "fmax" ||
                       op_.name == "fmin" || op_.name == "clamp";
    if (!picks || !isFloat(result_) || toDouble(result) != 0) return false;
    const auto zeros = std::count_if(operands.begin(), operands.end(), [](const Operand& operand) {
      return toDouble(operand.value) == 0;
    });
    return zeros > 1;
  }

  double at(const double* operands) const {
    if (compute_ != DType::F32 || op_.on_singles == nullptr) return op_.on_floats(operands);
    float singles[kMostOperands];
    std::transform(operands, operands + kMostOperands, singles,
                   [](double v) { return static_cast<float>(v); });
    return op_.on_singles(singles);
  }
  double rounded(double v) const {
    return compute_ == DType::F32 ? static_cast<double>(static_cast<float>(v)) : v;
  }

  Samples samplesOf(const std::vector<Operand>& operands, size_t which) const {
    const Operand& operand = operands[which];
    const double v = toDouble(operand.value);
    Samples samples;
    samples.add(rounded(v));
    if (operand.error == 0) return samples;
    if (operand.error == kZeroOfAnySign) {
      samples.add(-v);
      return samples;
    }
    samples.add(rounded(v - operand.error));
    samples.add(rounded(v + operand.error));
    samples.addInside(0.0, operand);
    samples.addInside(-0.0, operand);
    samples.addInside(std::nearbyint(v), operand);
    for (size_t other = 0; other < operands.size(); ++other) {
      if (other == which) continue;
      const double w = toDouble(operands[other].value);
      const double e = std::max(operands[other].error, 0.0);
      for (const double near : {w, w - e, w + e}) samples.addInside(near, operand);
    }
    return samples;
  }

  // Returns the largest distance of a result from `centre`. The results are those for all
  // combinations of samples of the operands.
  double spread(const std::vector<Operand>& operands, double centre) const {
    std::array<Samples, kMostOperands> samples;
    for (size_t i = 0; i < operands.size(); ++i) samples[i] = samplesOf(operands, i);
    for (size_t i = operands.size(); i < kMostOperands; ++i) samples[i].add(0);
    double largest = 0;
    std::array<size_t, kMostOperands> at_sample = {};
    for (bool more = true; more;) {
      double operand[kMostOperands];
      for (size_t i = 0; i < kMostOperands; ++i) operand[i] = samples[i].at[at_sample[i]];
      largest = std::max(largest, distance(centre, at(operand)));
      more = false;
      for (size_t i = 0; i < kMostOperands && !more; ++i) {
        more = ++at_sample[i] < samples[i].count;
        if (!more) at_sample[i] = 0;
      }
    }
    return largest;
  }

  // Returns a second bound for fmod and remainder, which compute a - b q; the larger bound counts.
  // Here q is a / b, rounded to an integer. If q is the same for all values of a and b, the result
  // is linear in a and b. spread() then finds its extremes, and this function returns 0. Otherwise
  // the result may have any value from 0 to b. For all other ops, the function returns 0.
  double sawtooth(const std::vector<Operand>& operands, double centre) const {
    const bool is_fmod = op_.name == "fmod";
    if ((!is_fmod && op_.name != "remainder") || !std::isfinite(centre)) return 0;
    std::set<double> quotients;
    double largest = 0;
    std::set<double> signs;
    for (const double side_a : {-1.0, 1.0}) {
      for (const double side_b : {-1.0, 1.0}) {
        const double a = toDouble(operands[0].value) + side_a * std::max(operands[0].error, 0.0);
        const double b = toDouble(operands[1].value) + side_b * std::max(operands[1].error, 0.0);
        quotients.insert(is_fmod ? std::trunc(a / b) : std::floor(a / b));
        signs.insert(std::copysign(1.0, is_fmod ? a : b));
        largest = std::max(largest, std::fabs(b));
      }
    }
    if (quotients.size() == 1) return 0;
    double farthest = std::fabs(centre);
    for (const double sign : signs) {
      farthest = std::max(farthest, distance(centre, sign * largest));
    }
    return farthest;
  }

  // Returns by how much the result of another implementation of the op may differ for the same
  // operands.
  double ownError(const double* centre, double y) const {
    if (overflowsWithin(centre)) return kUnknown;
    if (!std::isfinite(y)) return 0;
    const double ulp = computeUlp(compute_);
    const double tiny = compute_ == DType::F64 ? 2.3e-308 : 1.2e-38;
    // softplus compares x * beta with its threshold. If the difference is tiny, devices may decide
    // differently. For example, a device may replace a product that is too small for the type by 0.
    const bool is_softplus = op_.name == "softplus";
    if (is_softplus && std::fabs(centre[0] * centre[1] - centre[2]) <= tiny) return kUnknown;
    double moved = 0;
    for (int i = 0; i < op_.arity; ++i) {
      double operands[kMostOperands];
      std::copy(centre, centre + kMostOperands, operands);
      for (const double sign : {-1.0, 1.0}) {
        operands[i] = centre[i] * (1 + sign * kOperandUlps * ulp);
        const double d = distance(y, at(operands));
        // Skip samples beyond the end of the domain, where the op has no value to compare with.
        if (d < kUnknown) moved = std::max(moved, d);
      }
    }
    return moved + kOpUlps * ulp * std::fabs(y) + cancellation(centre) + tiny;
  }

  bool isOneCall() const {
    return op_.text.starts_with("hd::") && op_.text.find("hd::", 4) == op_.text.npos;
  }

  // Returns whether intermediate terms of an op that consists of several operations may overflow.
  bool overflowsWithin(const double* centre) const {
    // softplus calls exp() for values up to its threshold (the third operand). If the threshold is
    // above 80, exp() may be infinite in f32.
    if (op_.name == "softplus" && compute_ == DType::F32 && centre[2] > 80) return true;
    double product = 1;
    for (int i = 0; i < op_.arity; ++i) {
      const double size = std::fabs(centre[i]);
      if (std::isfinite(size)) product *= std::max(size, 1.0);
    }
    return op_.arity > 1 && !isOneCall() && product > (compute_ == DType::F64 ? 1e308 : 3e38);
  }

  // Returns the error that cancellation adds. If an op consists of several operations, intermediate
  // terms may cancel, and each term is about as large as the operands. lgamma counts as such an op,
  // although it is one call.
  double cancellation(const double* centre) const {
    if (isOneCall() && op_.name != "lgamma") return 0;
    double largest = 0;
    for (int i = 0; i < op_.arity; ++i) largest = std::max(largest, std::fabs(centre[i]));
    return std::isfinite(largest) ? 2 * computeUlp(compute_) * largest : 0;
  }

  double ofFloats(const std::vector<Operand>& operands, const Scalar& result, bool inexact) const {
    double centre[kMostOperands] = {};
    for (size_t i = 0; i < operands.size(); ++i) centre[i] = rounded(toDouble(operands[i].value));
    const double y = at(centre);
    double error = inexact ? std::max(spread(operands, y), sawtooth(operands, y)) : 0;
    if (!exact_) error += ownError(centre, y);
    if (!isFloat(result_)) return error == 0 ? 0 : kUnknown;
    if (error == 0) return y == 0 && inexact ? kZeroOfAnySign : 0;
    return boundAfterRounding(result_, y, error, toDouble(result));
  }

  const OpDef& op_;
  DType compute_;
  DType result_;
  bool exact_;
};

}  // namespace

std::vector<double> pointwiseErrors(const ReferenceContext& context, const Expression& expr,
                                    const std::vector<const Bounded*>& operands,
                                    const HostTensor& result) {
  const Accesses accesses = accessesOf(context, expr);
  const PointwiseBound bound(context.fusion, expr);
  std::vector<double> errors(result.numel());
  std::vector<Operand> at(operands.size());
  for (int64_t i = 0; i < result.numel(); ++i) {
    for (size_t k = 0; k < operands.size(); ++k) {
      int64_t place = accesses.operands[k].offset;
      int64_t rest = i;
      for (size_t axis = result.sizes.size(); axis-- > 0; rest /= result.sizes[axis]) {
        place += rest % result.sizes[axis] * accesses.operands[k].strides[axis];
      }
      at[k] = {operands[k]->value.at(place), operands[k]->errors[place]};
    }
    errors[i] = bound.of(at, result.at(i));
  }
  return errors;
}

}  // namespace heddle::random
