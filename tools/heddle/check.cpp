#include "tools/heddle/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/reference.h"

namespace heddle::tools {
namespace {

constexpr int64_t kSample = 4096;
// Elements that one sampled output may make the reference evaluate of each value on the way.
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
    // What is cast to them may differ by a rounding: one unit in the last place.
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

// The longest reduction behind each value: how many elements one element of it reads.
std::vector<int64_t> readsOf(const Fusion& fusion, const SizeBindings& sizes) {
  const auto numel = [&](ValueId id) {
    int64_t count = 1;
    for (const Size& size : fusion.tensor(id).sizes()) count *= size.evaluate(lookupIn(sizes));
    return count;
  };
  std::vector<int64_t> reads(fusion.values().size(), 1);
  for (const Expression& expr : fusion.exprs()) {
    int64_t& result = reads[static_cast<size_t>(expr.outputs[0])];
    for (ValueId id : expr.inputs) result = std::max(result, reads[static_cast<size_t>(id)]);
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

// Spread over the whole range with a stride that is no multiple of usual row lengths.
std::vector<int64_t> sampleOf(int64_t numel, int64_t reads) {
  std::vector<int64_t> picked;
  const int64_t most = std::clamp(kSampleReads / reads, kLeastSample, kSample);
  const int64_t step = std::max<int64_t>(1, numel / most);
  for (int64_t i = 0; i < numel; i += step) {
    picked.push_back(std::min(numel - 1, i + i / step % step));
  }
  if (numel > 0) picked.push_back(numel - 1);
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

// `expected` yields the reference value of the k-th compared element, `at` its linear index.
template <class At, class Expected>
void compare(OutputCheck& check, const HostTensor& got, int64_t count, At at, Expected expected) {
  double largest = 0;
  for (int64_t k = 0; k < count; ++k) {
    const double value = std::fabs(toDouble(expected(k)));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  const double r = tolerance(got.dtype);
  check.compared = count;
  for (int64_t k = 0; k < count; ++k) {
    const Scalar want = expected(k);
    const Scalar have = got.at(at(k));
    const double e = toDouble(want);
    const double g = toDouble(have);
    const bool exact = std::holds_alternative<double>(want);
    const bool right = exact ? isRight(g, e, r * (std::fabs(e) + largest)) : have == want;
    if (std::isfinite(e) && std::isfinite(g)) {
      check.max_error = std::max(check.max_error, std::fabs(g - e));
    }
    if (right) continue;
    if (check.wrong++ == 0) {
      check.first_wrong = fmt::format("{}: got {}, expected {}", position(at(k), got.sizes), g, e);
    }
  }
}

}  // namespace

std::vector<OutputCheck> checkOutputs(const Fusion& fusion, const Inputs& inputs,
                                      const std::vector<HostTensor>& outputs,
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
  std::vector<OutputCheck> checks(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    checks[i].name = fusion.value(fusion.outputs()[i]).name;
  }
  if (mode == "full") {
    const std::vector<HostTensor> expected = evaluateReference(fusion, reference, inputs.sizes);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (expected[i].sizes != outputs[i].sizes) {
        checks[i].first_wrong =
            fmt::format("got sizes {}, expected {}", str(outputs[i].sizes), str(expected[i].sizes));
        continue;
      }
      compare(
          checks[i], outputs[i], outputs[i].numel(), [](int64_t k) { return k; },
          [&](int64_t k) { return expected[i].at(k); });
    }
    return checks;
  }
  std::vector<std::vector<int64_t>> wanted;
  const std::vector<int64_t> reads = readsOf(fusion, inputs.sizes);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int64_t of_one = reads[static_cast<size_t>(fusion.outputs()[i])];
    wanted.push_back(sampleOf(outputs[i].numel(), of_one));
  }
  const auto expected = evaluateReferenceAt(fusion, reference, inputs.sizes, wanted);
  for (size_t i = 0; i < outputs.size(); ++i) {
    compare(
        checks[i], outputs[i], static_cast<int64_t>(wanted[i].size()),
        [&](int64_t k) { return wanted[i][static_cast<size_t>(k)]; },
        [&](int64_t k) { return expected[i][static_cast<size_t>(k)]; });
  }
  return checks;
}

}  // namespace heddle::tools
