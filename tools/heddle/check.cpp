#include "tools/heddle/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ir/base/check.h"
#include "ir/reference/sparse.h"

namespace heddle::tools {
namespace {

// The sample of an output has about kSample elements. If the reference would take too long, the
// sample is smaller, but has about kLeastSample elements or more.
constexpr int64_t kSample = 4096;
constexpr int64_t kLeastSample = 64;
// The largest number of operations of the reference for the samples of all outputs. These
// operations take a few seconds on a few cores.
constexpr double kMostOperations = 8.6e9;
// kNoisyRuns is the number of evaluations with rounding noise (ir/reference/noise.h). The bound of
// an element grows by kNoiseFactor times the largest change of the element in these evaluations.
constexpr uint64_t kNoisyRuns = 3;
constexpr double kNoiseFactor = 8;

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

// Returns the relative tolerance of each value: the largest tolerance of the types to which the
// value and its intermediate values are rounded. Ops that only move elements do not round.
IdVector<ValueId, double> tolerancesOf(const Fusion& fusion) {
  IdVector<ValueId, double> loosest(fusion.values().size(), 0);
  for (const Expression& expr : fusion.exprs()) {
    const OpKind kind = expr.op->kind;
    const bool computes =
        kind == OpKind::Pointwise || kind == OpKind::Reduction || roleOf(kind) == OpRole::Library;
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

// Returns about `count` indices that are spread over [0, extent), including 0 and extent - 1. The
// distances between them vary. With equal distances, all indices could be at the same position of a
// block of a kernel, for example if both the distance and the block length are 128.
IndexSet spreadIndices(int64_t extent, int64_t count) {
  if (count >= extent) return IndexSet::all(extent);
  std::vector<int64_t> indices = {extent - 1};
  const int64_t step = extent / count;
  for (int64_t i = 0; i < count; ++i) indices.push_back(i * step + i * 7919 % step);
  return IndexSet::of(std::move(indices));
}

// Returns about `most` elements: every combination of the selected indices of the axes. All indices
// of short axes are selected. For each copy that differs from `output`, the sample includes the
// first element that differs.
Selection sampleOf(const Gathered& output, int64_t most) {
  const std::vector<int64_t>& sizes = output.whole.sizes;
  Selection sample;
  sample.axes.resize(sizes.size());
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return sizes[a] < sizes[b]; });
  auto left = static_cast<double>(most);
  for (size_t i = 0; i < order.size(); ++i) {
    const double share = std::pow(left, 1.0 / static_cast<double>(order.size() - i));
    const int64_t extent = sizes[order[i]];
    const auto count = std::clamp<int64_t>(std::llround(share), 1, std::max<int64_t>(1, extent));
    sample.axes[order[i]] = spreadIndices(extent, count);
    left = std::max(1.0, left / static_cast<double>(count));
  }
  for (const Gathered::Difference& difference : output.differences) {
    int64_t linear = difference.first;
    for (size_t axis = sizes.size(); axis-- > 0; linear /= sizes[axis]) {
      sample.axes[axis].add({linear % sizes[axis], linear % sizes[axis] + 1});
    }
  }
  return sample;
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

// Calls visit(k, linear) for each selected element. k is the number of the element among the
// selected elements, and `linear` is its row-major index in a tensor of the sizes `sizes`.
template <class Visit>
void forSelected(const Selection& selection, const std::vector<int64_t>& sizes, Visit visit) {
  if (sizes.empty()) return visit(0, 0);
  std::vector<std::vector<int64_t>> outer;  // the indices of all axes but the last
  int64_t rows = 1;
  for (size_t axis = 0; axis + 1 < sizes.size(); ++axis) {
    outer.push_back(selection.axes[axis].indices());
    rows *= selection.axes[axis].count();
  }
  int64_t k = 0;
  std::vector<size_t> at(outer.size(), 0);
  for (int64_t row = 0; row < rows; ++row) {
    int64_t first = 0;  // the index of the first element of the row
    for (size_t axis = 0; axis < outer.size(); ++axis) {
      first = first * sizes[axis] + outer[axis][at[axis]];
    }
    first *= sizes.back();
    for (const IndexRange& range : selection.axes.back().ranges()) {
      for (int64_t i = range.begin; i < range.end; ++i) visit(k++, first + i);
    }
    for (size_t axis = outer.size(); axis-- > 0;) {
      if (++at[axis] < outer[axis].size()) break;
      at[axis] = 0;
    }
  }
}

// The reference values of selected elements of one output.
struct Expected {
  Selection selection;
  HostTensor values;                   // the values of the selected elements
  double tolerance = 0;                // relative tolerance
  std::vector<HostTensor> noisy = {};  // the values in each evaluation with rounding noise, if any

  double largest() const {  // returns the largest magnitude of a finite element
    double result = 0;
    for (int64_t k = 0; k < values.numel(); ++k) {
      const double size = std::fabs(toDouble(values.at(k)));
      if (std::isfinite(size)) result = std::max(result, size);
    }
    return result;
  }
  // Returns the largest change of element k by rounding noise, or infinity if the change is NaN.
  // `plain` is the value without noise.
  double change(int64_t k, double plain) const {
    double most = 0;
    for (const HostTensor& each : noisy) {
      const double off = std::fabs(toDouble(each.at(k)) - plain);
      if (std::isnan(off)) return std::numeric_limits<double>::infinity();
      most = std::max(most, off);
    }
    return most;
  }
};

// Compares `got` with `expected` and adds the result to `check`. `local` maps a linear index of the
// output to an index in `got`, or to -1 if `got` does not contain the element.
template <class Local>
void compare(OutputCheck& check, const HostTensor& got, const Expected& expected,
             const Gathered& output, Local local) {
  const double r = expected.tolerance;
  const double largest = expected.largest();
  forSelected(expected.selection, output.whole.sizes, [&](int64_t k, int64_t linear) {
    const int64_t index = local(linear);
    if (index < 0) return;
    ++check.compared;
    const Scalar want = expected.values.at(k);
    const Scalar have = got.at(index);
    const double e = toDouble(want);
    const double g = toDouble(have);
    const bool exact = !std::holds_alternative<double>(want);  // only floats may differ by rounding
    const double allowed = r * (std::fabs(e) + largest) + kNoiseFactor * expected.change(k, e);
    const bool right = exact ? have == want : isRight(g, e, allowed);
    if (std::isfinite(e) && std::isfinite(g)) {
      check.max_error = std::max(check.max_error, std::fabs(g - e));
    }
    if (right || check.wrong++ > 0) return;
    const int holder = check.rank >= 0 ? check.rank : output.holderOf(linear);
    check.first_wrong =
        fmt::format("{}: got {}, expected {}{}", position(linear, output.whole.sizes), g, e,
                    holder < 0 ? "" : fmt::format(", on rank {}", holder));
  });
}

class Checker {
 public:
  Checker(const Fusion& fusion, const Inputs& inputs, const std::vector<Gathered>& outputs,
          const CheckOptions& options)
      : fusion_(fusion),
        sizes_(inputs.sizes),
        outputs_(outputs),
        options_(options),
        tolerances_(tolerancesOf(fusion)) {
    for (size_t i = 0; i < fusion.inputs().size(); ++i) {
      const ValueId id = fusion.inputs()[i];
      if (fusion.value(id).is_scalar) {
        inputs_.scalars[id] = inputs.scalars[i];
      } else if (inputs.tensors[i].data) {
        inputs_.tensors[id] = inputs.tensors[i];
      }
    }
    inputs_.random_seed = inputs.seed;
    for (size_t i = 0; i < outputs.size(); ++i) addChecks(i);
  }

  std::vector<OutputCheck> run() {
    for (const WantedElements& part : options_.mode == "full" ? slices() : sample()) {
      announcePart(part);
      checkPart(part);
    }
    std::vector<OutputCheck> all;
    for (const std::vector<OutputCheck>& of_output : checks_) {
      all.insert(all.end(), of_output.begin(), of_output.end());
    }
    return all;
  }

 private:
  const std::string& nameOf(size_t i) const { return fusion_.value(fusion_.outputs()[i]).name; }

  // Adds an empty check for gathered output `i`, and an empty check for each copy that differs from
  // this output.
  void addChecks(size_t i) {
    std::vector<OutputCheck>& checks = checks_.emplace_back();
    checks.push_back({nameOf(i)});
    std::vector<int64_t> expected;
    for (const Size& size : fusion_.tensor(fusion_.outputs()[i]).sizes()) {
      expected.push_back(size.evaluate(lookupIn(sizes_)));
    }
    fits_.push_back(outputs_[i].whole.sizes == expected);
    if (!fits_.back()) {
      checks[0].first_wrong =
          fmt::format("got sizes {}, expected {}", str(outputs_[i].whole.sizes), str(expected));
      return;
    }
    for (const Gathered::Difference& difference : outputs_[i].differences) {
      checks.push_back({nameOf(i), outputs_[i].blocks[difference.block].rank});
    }
  }

  std::vector<WantedElements> sample() const {
    for (int64_t most = kSample;; most /= 2) {
      WantedElements wanted(outputs_.size());
      for (size_t i = 0; i < outputs_.size(); ++i) {
        if (fits_[i]) wanted[i] = sampleOf(outputs_[i], most);
      }
      if (most <= kLeastSample ||
          referenceCostAt(fusion_, sizes_, wanted).operations <= kMostOperations) {
        return {wanted};
      }
    }
  }

  // Returns the parts in which mode "full" compares the outputs. If the values of the reference fit
  // into most_bytes, one part contains all elements. Otherwise each part is a slice of one output
  // along its longest axis.
  std::vector<WantedElements> slices() const {
    WantedElements all(outputs_.size());
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (fits_[i]) all[i] = Selection::all(outputs_[i].whole.sizes);
    }
    if (referenceCostAt(fusion_, sizes_, all).bytes <= options_.most_bytes) return {all};
    std::vector<WantedElements> slices;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (fits_[i]) addSlices(i, *all[i], slices);
    }
    return slices;
  }

  void addSlices(size_t i, const Selection& all, std::vector<WantedElements>& slices) const {
    const std::vector<int64_t>& sizes = outputs_[i].whole.sizes;
    const auto longest = std::max_element(sizes.begin(), sizes.end());
    const size_t axis = longest - sizes.begin();
    int64_t length = sizes.empty() ? 1 : std::max<int64_t>(1, *longest);
    const auto slice = [&](int64_t begin) {
      WantedElements wanted(outputs_.size());
      wanted[i] = all;
      if (!sizes.empty()) {
        wanted[i]->axes[axis] = IndexSet();
        wanted[i]->axes[axis].add({begin, std::min(begin + length, sizes[axis])});
      }
      return wanted;
    };
    const auto bytes = [&] { return referenceCostAt(fusion_, sizes_, slice(0)).bytes; };
    for (double before = bytes(); length > 1 && before > options_.most_bytes;) {
      length /= 2;
      const double now = bytes();
      // Shorter slices hardly save memory if every slice needs the same complete intermediate
      // values. The reference would only compute these values more often.
      if (now > 0.75 * before) break;
      before = now;
    }
    for (int64_t begin = 0; begin == 0 || begin < sizes[axis]; begin += length) {
      slices.push_back(slice(begin));
      if (sizes.empty()) break;
    }
  }

  void announcePart(const WantedElements& part) const {
    if (!options_.announce) return;
    for (size_t i = 0; i < part.size(); ++i) {
      if (!part[i]) continue;
      options_.announce(fmt::format("comparing {} of {} elements of %{} with the reference",
                                    part[i]->count(), outputs_[i].whole.numel(), nameOf(i)));
    }
  }

  // Compares one part. If an element is wrong, repeats the comparison with the larger bounds of
  // checkOutputs(), which need three more evaluations.
  void checkPart(const WantedElements& part) {
    std::vector<Expected> expected = evaluate(part);
    const std::vector<std::vector<OutputCheck>> before = checks_;
    if (compareAll(part, expected)) return;
    checks_ = before;
    for (uint64_t seed = 1; seed <= kNoisyRuns; ++seed) {
      const RoundingNoise noise(seed);
      const auto values = evaluateReferenceAt(fusion_, inputs_, sizes_, part, &noise);
      for (size_t i = 0; i < part.size(); ++i) expected[i].noisy.push_back(values[i]);
    }
    compareAll(part, expected);
  }

  std::vector<Expected> evaluate(const WantedElements& part) const {
    const std::vector<HostTensor> values = evaluateReferenceAt(fusion_, inputs_, sizes_, part);
    std::vector<Expected> expected;
    for (size_t i = 0; i < part.size(); ++i) {
      const ValueId id = fusion_.outputs()[i];
      const double r = std::max(tolerances_[id], tolerance(fusion_.tensor(id).dtype));
      expected.push_back({part[i].value_or(Selection()), values[i], r});
    }
    return expected;
  }

  // Compares all outputs of one part. Returns true if no element was wrong.
  bool compareAll(const WantedElements& part, const std::vector<Expected>& expected) {
    bool right = true;
    for (size_t i = 0; i < part.size(); ++i) {
      if (!part[i]) continue;
      const Gathered& output = outputs_[i];
      std::vector<OutputCheck>& checks = checks_[i];
      const int64_t wrong = checks[0].wrong;
      compare(checks[0], output.whole, expected[i], output, [](int64_t linear) { return linear; });
      right = right && checks[0].wrong == wrong;
      for (size_t d = 0; d < output.differences.size(); ++d) {
        const Block& block = output.blocks[output.differences[d].block];
        const int64_t wrong_before = checks[d + 1].wrong;
        compare(checks[d + 1], block.data, expected[i], output,
                [&](int64_t linear) { return indexInBlock(block, linear, output.whole.sizes); });
        right = right && checks[d + 1].wrong == wrong_before;
      }
    }
    return right;
  }

  const Fusion& fusion_;
  const SizeBindings& sizes_;
  const std::vector<Gathered>& outputs_;
  const CheckOptions& options_;
  const IdVector<ValueId, double> tolerances_;
  ReferenceInputs inputs_;
  std::vector<std::vector<OutputCheck>> checks_;  // per output
  std::vector<bool> fits_;                        // per output: whether its sizes are right
};

}  // namespace

std::vector<OutputCheck> checkOutputs(const Fusion& fusion, const Inputs& inputs,
                                      const std::vector<Gathered>& outputs,
                                      const CheckOptions& options) {
  return Checker(fusion, inputs, outputs, options).run();
}

}  // namespace heddle::tools
