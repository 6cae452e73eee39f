#include "tools/tune/tune_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/bench/csv.h"
#include "tools/tune/rank_correlation.h"

namespace heddle::tools {
namespace {

std::string microseconds(double seconds) {
  return std::isfinite(seconds) ? fmt::format("{:.3f}", 1e6 * seconds) : "";
}

const char* noteOf(TunedKernel::Origin origin) {
  switch (origin) {
    case TunedKernel::Origin::Stored:
      return ", choice was stored";
    case TunedKernel::Origin::Alike:
      return ", the model expects almost equal times";
    case TunedKernel::Origin::Agreed:
      return ", another rank has chosen";
    case TunedKernel::Origin::Measured:
    case TunedKernel::Origin::Single:
      break;
  }
  return "";
}

std::string rowText(const TunedKernel::Row& row, size_t index, bool is_chosen) {
  const std::string time =
      std::isfinite(row.seconds)
          ? fmt::format("{} us, median of {}", microseconds(row.seconds), row.runs)
          : "not measured";
  return fmt::format("  {} {}: {}; {}, {} us predicted{}{}\n", is_chosen ? "*" : " ", index,
                     row.parameters, row.fault.empty() ? time : row.fault,
                     microseconds(row.predicted),
                     row.registers ? fmt::format(", {} registers", *row.registers) : "",
                     is_chosen ? ", chosen" : "");
}

// Returns the line of tuneSummary() about the first candidates.
std::string firstCandidatesText(const std::vector<TunedKernel>& kernels) {
  constexpr double kNear = 1.05;
  int measured = 0;
  int near = 0;
  double logarithms = 0;
  for (const TunedKernel& kernel : kernels) {
    const double first = kernel.rows.front().seconds;
    if (kernel.origin != TunedKernel::Origin::Measured || !std::isfinite(first)) continue;
    double least = first;
    for (const TunedKernel::Row& row : kernel.rows) least = std::min(least, row.seconds);
    ++measured;
    near += first <= kNear * least ? 1 : 0;
    logarithms += std::log(kernel.rows[kernel.chosen].seconds / first);
  }
  if (measured == 0) return "";
  return fmt::format(
      "first candidates: within 5 % of the fastest in {} of {} kernels; chosen / first time {:.3f} "
      "(geometric mean)\n",
      near, measured, std::exp(logarithms / measured));
}

}  // namespace

std::string tuneText(const TunedFile& file, bool names_path) {
  std::string text = names_path ? fmt::format("file {}\n", file.path) : "";
  for (const TunedKernel& kernel : file.kernels) {
    text += fmt::format("kernel @{}, rank {}{}\n", kernel.name, kernel.rank, noteOf(kernel.origin));
    for (size_t i = 0; i < kernel.rows.size(); ++i) {
      text += rowText(kernel.rows[i], i, i == kernel.chosen);
    }
  }
  return text;
}

std::string tuneCsvHeader() {
  return csvLine({"file", "kernel", "rank", "candidate", "parameters", "us", "predicted", "runs",
                  "registers", "fault", "chosen", "key"});
}

std::string tuneCsv(const TunedFile& file) {
  std::string text;
  for (const TunedKernel& kernel : file.kernels) {
    for (size_t i = 0; i < kernel.rows.size(); ++i) {
      const TunedKernel::Row& row = kernel.rows[i];
      text += csvLine({file.path, kernel.name, fmt::format("{}", kernel.rank), fmt::format("{}", i),
                       row.parameters, microseconds(row.seconds), microseconds(row.predicted),
                       fmt::format("{}", row.runs),
                       row.registers ? fmt::format("{}", *row.registers) : "", row.fault,
                       i == kernel.chosen ? "1" : "0", kernel.key});
    }
  }
  return text;
}

std::string tuneSummary(const std::vector<TunedFile>& files) {
  std::vector<TunedKernel> kernels;
  for (const TunedFile& file : files) {
    kernels.insert(kernels.end(), file.kernels.begin(), file.kernels.end());
  }
  const std::optional<ModelRanks> ranks = modelRanks(kernels);
  std::string text;
  if (ranks) {
    text = fmt::format(
        "rank correlation of predicted and measured times: {:.2f} within a kernel (mean of {}), "
        "{:.2f} over all {} candidates\n",
        ranks->mean, ranks->kernels, ranks->all, ranks->candidates);
  }
  return text + firstCandidatesText(kernels);
}

}  // namespace heddle::tools
