#include "codegen/bind/candidates.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "codegen/emit/plan_kernel.h"
#include "codegen/families/rows/row_candidates.h"
#include "codegen/families/rows/row_limits.h"
#include "codegen/plan/analysis.h"
#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

// A candidate that differs from the first one in one parameter: the value of `parameter` is
// multiplied by numerator / divisor.
struct Variation {
  const char* parameter;
  int64_t numerator;
  int64_t divisor;
};

constexpr Variation kVariations[] = {
    {"lanes", 1, 2},   {"lanes", 2, 1},          {"unroll", 2, 1},
    {"unroll", 1, 2},  {"block", 2, 1},          {"block", 1, 2},
    {"splits", 2, 1},  {"splits", 1, 2},         {"chunk", 1, 4},
    {"chunk", 4, 1},   {"vector", 1, 2},         {"threads", 2, 1},
    {"threads", 1, 2}, {"rows", 2, 1},           {"rows", 1, 2},
    {"edge", 1, 2},    {"items_per_tile", 1, 4}, {"items_per_tile", 4, 1},
    {"edge", 2, 1},    {"vector", 2, 1},         {"parts", 2, 1},
    {"parts", 1, 2},   {"reduce_threads", 1, 2}, {"reduce_threads", 2, 1},
};

constexpr int64_t kMostThreadsOfReduction = 256;
// In one variant of an outer reduction, a block reads kWide times as many neighbouring items of the
// kept axes.
constexpr int64_t kWide = 4;

// Returns the choices to try after the first candidate, which has the choice `first`.
std::vector<KernelChoice> variantsOf(const KernelChoice& first) {
  std::vector<KernelChoice> variants;
  const auto with = [&](std::string_view parameter, int64_t value) {
    KernelChoice variant = first;
    variant.set(parameter, value);
    variants.push_back(std::move(variant));
  };
  for (const Variation& each : kVariations) {
    const std::optional<int64_t> value = first.find(each.parameter);
    if (value) with(each.parameter, std::max<int64_t>(*value * each.numerator / each.divisor, 1));
  }
  const std::optional<int64_t> parts = first.find("parts");
  const std::optional<int64_t> threads_of_part = first.find("threads");
  if (parts && threads_of_part) {
    // Divided rows: twice as many blocks with half as many threads, and work items of half the
    // size.
    KernelChoice smaller = first;
    smaller.set("parts", *parts * 2);
    smaller.set("threads", *threads_of_part / 2);
    variants.push_back(std::move(smaller));
  }
  const std::optional<int64_t> splits = first.find("splits");
  if (splits) with("splits", 1);
  if (const auto threads = first.find("reduce_threads")) {
    if (splits && *threads > kWide) {
      // Outer reduction: blocks that read longer contiguous pieces of memory. With kWide times as
      // many splits, there are as many blocks as before.
      KernelChoice wide = first;
      wide.set("reduce_threads", *threads / kWide);
      wide.set("splits", *splits * kWide);
      variants.push_back(std::move(wide));
    }
    with("reduce_threads",
         *threads > row_limits::kWarp ? row_limits::kWarp : kMostThreadsOfReduction);
    if (const auto shifted = first.find("shifted")) {
      variants.push_back({"loops", {{"shifted", *shifted == 0 ? 1 : 0}}});
    }
  }
  for (const char* flag : {"looped", "streams", "reversed"}) {
    if (const auto value = first.find(flag)) with(flag, *value == 0 ? 1 : 0);
  }
  if (const auto hold = first.find("hold")) {
    for (const Hold other : kHolds) {
      if (static_cast<int64_t>(other) != *hold) with("hold", static_cast<int64_t>(other));
    }
  }
  // Blocks of a cluster can share a row that one block can hold only in shared memory, or only if
  // it is alone on its multiprocessor, or not at all.
  const int64_t blocks = first.find("cluster").value_or(1);
  const bool is_long = blocks > 1 || first.find("looped").value_or(0) != 0 ||
                       first.find("threads").value_or(0) == row_limits::kMostThreads ||
                       first.find("hold").value_or(0) == static_cast<int64_t>(Hold::Shared);
  const bool is_bundled = first.family == "rows" && !first.find("looped");
  if (is_long || is_bundled || first.family == "divided" || first.family == "sweeps") {
    for (const int64_t cluster : {1, 2, 4, 8}) variants.push_back({"rows", {{"cluster", cluster}}});
  }
  for (const char* family : {"rows", "divided", "squares", "loops", "sweeps"}) {
    if (first.family != family && first.family != "parts") variants.push_back({family, {}});
  }
  return variants;
}

bool areEqual(const KernelPlan& a, const KernelPlan& b) {
  return a.source == b.source && a.stages == b.stages && a.workspace_bytes == b.workspace_bytes;
}

}  // namespace

std::vector<Candidate> candidates(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                                  const std::vector<TensorDesc>& outputs, Target target,
                                  const std::vector<int32_t>& alignments, const RunSizes& run,
                                  const Analysis* analysis) {
  std::vector<Candidate> found;
  const auto add = [&](const KernelChoice* choice) {
    KernelPlan plan =
        planKernel(segment, inputs, outputs, target, alignments, run, analysis, nullptr, choice);
    const auto is_known = [&](const Candidate& known) { return areEqual(known.plan, plan); };
    if (std::any_of(found.begin(), found.end(), is_known)) return;
    const std::optional<KernelChoice> made = parseKernelChoice(plan.candidate);
    HEDDLE_CHECK(made.has_value(), "the parameters '{}' of a kernel do not parse", plan.candidate);
    found.push_back({*made, std::move(plan)});
  };
  add(nullptr);
  for (const KernelChoice& choice : variantsOf(found.front().choice)) add(&choice);
  return found;
}

size_t findCandidate(const std::vector<Candidate>& all, std::string_view asked,
                     std::string_view kernel) {
  size_t index = 0;
  const char* const end = asked.data() + asked.size();
  const auto [stop, error] = std::from_chars(asked.data(), end, index);
  if (error == std::errc() && stop == end && index < all.size()) return index;
  if (const std::optional<KernelChoice> choice = parseKernelChoice(asked)) {
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].choice.includes(*choice)) return i;
    }
  }
  std::string list;
  for (size_t i = 0; i < all.size(); ++i) {
    list += fmt::format("\n  {}: {}", i, print(all[i].choice));
  }
  userError("kernel {} has no candidate '{}' for these sizes; the candidates are{}", kernel, asked,
            list);
}

}  // namespace heddle::codegen
