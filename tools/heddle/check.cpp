#include "tools/heddle/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/reference/reference.h"

namespace heddle::tools {
namespace {

constexpr int64_t kSample = 4096;
// The largest number of elements of an intermediate value that the reference evaluates for the
// samples of one output.
constexpr int64_t kSampleReads = int64_t{1} << 22;
constexpr int64_t kLeastSample = 64;

double tolerance(DType dtype) {
  switch (dtype) {
    case DType::Bool:
    case DType::U8:
    case DType::I8:
    case DType::I32:
    case DType::I64:
      return 0;
    // A value that is cast to f8 may differ by one rounding, that is, by one unit in the last
    // place.
    case DType::F8E4M3:
      return 0.125;
    case DType::F8E5M2:
      return 0.25;
    case DType::F16:
      return 3e-3;
    case DType::BF16:
      return 2e-2;
    case DType::F32:
      return 2e-5;
    case DType::F64:
      return 1e-11;
  }
  return 0;
}

// Returns, for each value, the length of the longest reduction on which it depends. The length is
// the number of elements that one element of the result reads.
IdVector<ValueId, int64_t> readsOf(const Fusion& fusion, const SizeBindings& sizes) {
  const auto numel = [&](ValueId id) {
    int64_t count = 1;
    for (const Size& size : fusion.tensor(id).sizes()) count *= size.evaluate(lookupIn(sizes));
    return count;
  };
  IdVector<ValueId, int64_t> reads(fusion.values().size(), 1);
  for (const Expression& expr : fusion.exprs()) {
    int64_t& result = reads[expr.outputs[0]];
    for (ValueId id : expr.inputs) result = std::max(result, reads[id]);
    if (expr.op->kind == OpKind::Reduction) {
      const int64_t kept = std::max<int64_t>(1, numel(expr.outputs[0]));
      result = std::max(result, numel(expr.inputs[0]) / kept);
    } else if (expr.op->kind == OpKind::Matmul) {
      const Size inner = fusion.tensor(expr.inputs[0]).sizes().back();
      result = std::max(result, inner.evaluate(lookupIn(sizes)));
    }
  }
  return reads;
}

// Returns the relative tolerance of each value. It is the largest tolerance of the types in which
// the value and its intermediate values are rounded. Ops that only move elements do not round.
IdVector<ValueId, double> tolerancesOf(const Fusion& fusion) {
  IdVector<ValueId, double> loosest(fusion.values().size(), 0);
  for (const Expression& expr : fusion.exprs()) {
    const OpKind kind = expr.op->kind;
    const bool computes = kind == OpKind::Pointwise || kind == OpKind::Reduction ||
                          kind == OpKind::Matmul || kind == OpKind::Scan || kind == OpKind::Scatter;
    for (ValueId out : expr.outputs) {
      double& result = loosest[out];
      for (ValueId id : expr.inputs) result = std::max(result, loosest[id]);
      if (computes && !fusion.value(out).is_scalar) {
        result = std::max(result, tolerance(fusion.tensor(out).dtype));
      }
    }
  }
  return loosest;
}

// Returns indices of samples over the full range, and the first index at which each copy differs.
// The samples are shifted from step to step, so that they do not fall into the same columns.
std::vector<int64_t> sampleOf(int64_t numel, int64_t reads,
                              const std::vector<Gathered::Difference>& differences) {
  std::vector<int64_t> picked;
  const int64_t most = std::clamp(kSampleReads / reads, kLeastSample, kSample);
  const int64_t step = std::max<int64_t>(1, numel / most);
  for (int64_t i = 0; i < numel; i += step) {
    picked.push_back(std::min(numel - 1, i + i / step % step));
  }
  if (numel > 0) picked.push_back(numel - 1);
  for (const Gathered::Difference& one : differences) picked.push_back(one.first);
  std::sort(picked.begin(), picked.end());
  picked.erase(std::unique(picked.begin(), picked.end()), picked.end());
  return picked;
}

std::string position(int64_t linear, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> index(sizes.size());
  for (size_t i = sizes.size(); i-- > 0;) {
    index[i] = linear % sizes[i];
    linear /= sizes[i];
  }
  return str(index);
}

bool isRight(double got, double expected, double allowed) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected)) return got == expected;
  return std::fabs(got - expected) <= allowed;
}

// The reference values of all or some elements of one output.
struct Expected {
  HostTensor values;           // all elements; without data if only some were evaluated
  std::vector<int64_t> at;     // ascending linear indices of the evaluated elements in the output
  std::vector<Scalar> picked;  // picked[i] is the value of element at[i]
  double tolerance = 0;        // relative tolerance
  double largest = 0;          // largest magnitude of a finite element

  bool isWhole() const { return values.data != nullptr; }
  int64_t count() const { return isWhole() ? values.numel() : static_cast<int64_t>(at.size()); }
  int64_t index(int64_t k) const { return isWhole() ? k : at[static_cast<size_t>(k)]; }
  Scalar value(int64_t k) const {
    return isWhole() ? values.at(k) : picked[static_cast<size_t>(k)];
  }
  void findLargest() {
    for (int64_t k = 0; k < count(); ++k) {
      const double size = std::fabs(toDouble(value(k)));
      if (std::isfinite(size)) largest = std::max(largest, size);
    }
  }
};

// Compares `got` with `expected`. `local` maps a linear index of the output to an index in `got`,
// or to -1 if `got` does not contain the element.
template <class Local>
void compare(OutputCheck& check, const HostTensor& got, const Expected& expected,
             const Gathered& output, Local local) {
  const double r = expected.tolerance;
  for (int64_t k = 0; k < expected.count(); ++k) {
    const int64_t linear = expected.index(k);
    const int64_t index = local(linear);
    if (index < 0) continue;
    ++check.compared;
    const Scalar want = expected.value(k);
    const Scalar have = got.at(index);
    const double e = toDouble(want);
    const double g = toDouble(have);
    const bool exact = std::holds_alternative<double>(want);
    const bool right = exact ? isRight(g, e, r * (std::fabs(e) + expected.largest)) : have == want;
    if (std::isfinite(e) && std::isfinite(g)) {
      check.max_error = std::max(check.max_error, std::fabs(g - e));
    }
    if (right || check.wrong++ > 0) continue;
    const int holder = check.rank >= 0 ? check.rank : output.holderOf(linear);
    check.first_wrong =
        fmt::format("{}: got {}, expected {}{}", position(linear, output.whole.sizes), g, e,
                    holder < 0 ? "" : fmt::format(", on rank {}", holder));
  }
}

// Checks the gathered output and then each copy that differs from the gathered output.
void checkOutput(std::vector<OutputCheck>& checks, const std::string& name, const Gathered& output,
                 Expected& expected) {
  expected.findLargest();
  OutputCheck whole{name};
  compare(whole, output.whole, expected, output, [](int64_t linear) { return linear; });
  checks.push_back(whole);
  for (const Gathered::Difference& difference : output.differences) {
    const Block& block = output.blocks[difference.block];
    OutputCheck copy{name, block.rank};
    compare(copy, block.data, expected, output,
            [&](int64_t linear) { return indexInBlock(block, linear, output.whole.sizes); });
    checks.push_back(copy);
  }
}

}  // namespace

std::vector<OutputCheck> checkOutputs(const Fusion& fusion, const Inputs& inputs,
                                      const std::vector<Gathered>& outputs,
                                      const std::string& mode) {
  ReferenceInputs reference;
  for (size_t i = 0; i < fusion.inputs().size(); ++i) {
    const ValueId id = fusion.inputs()[i];
    if (fusion.value(id).is_scalar) {
      reference.scalars[id] = inputs.scalars[i];
    } else {
      reference.tensors[id] = inputs.tensors[i];
    }
  }
  const auto nameOf = [&](size_t i) { return fusion.value(fusion.outputs()[i]).name; };
  std::vector<OutputCheck> checks;
  const IdVector<ValueId, double> tolerances = tolerancesOf(fusion);
  const auto boundOf = [&](size_t i) {
    const ValueId id = fusion.outputs()[i];
    return std::max(tolerances[id], tolerance(fusion.tensor(id).dtype));
  };
  if (mode == "full") {
    const std::vector<HostTensor> values = evaluateReference(fusion, reference, inputs.sizes);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::vector<int64_t>& sizes = outputs[i].whole.sizes;
      Expected expected{values[i], {}, {}, boundOf(i)};
      if (values[i].sizes == sizes) {
        checkOutput(checks, nameOf(i), outputs[i], expected);
        continue;
      }
      checks.push_back({nameOf(i)});
      checks.back().first_wrong =
          fmt::format("got sizes {}, expected {}", str(sizes), str(values[i].sizes));
    }
    return checks;
  }
  std::vector<std::vector<int64_t>> wanted;
  const IdVector<ValueId, int64_t> reads = readsOf(fusion, inputs.sizes);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int64_t of_one = reads[fusion.outputs()[i]];
    wanted.push_back(sampleOf(outputs[i].whole.numel(), of_one, outputs[i].differences));
  }
  const auto values = evaluateReferenceAt(fusion, reference, inputs.sizes, wanted);
  for (size_t i = 0; i < outputs.size(); ++i) {
    Expected expected{{}, wanted[i], values[i], boundOf(i)};
    checkOutput(checks, nameOf(i), outputs[i], expected);
  }
  return checks;
}

}  // namespace heddle::tools
