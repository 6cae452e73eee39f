#include "tools/tune/tune_report.h"

#include <fmt/format.h>

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

}  // namespace

std::string tuneText(const std::vector<TunedFile>& files) {
  std::string text;
  for (const TunedFile& file : files) {
    if (files.size() > 1) text += fmt::format("file {}\n", file.path);
    for (const TunedKernel& kernel : file.kernels) {
      text +=
          fmt::format("kernel @{}, rank {}{}\n", kernel.name, kernel.rank, noteOf(kernel.origin));
      for (size_t i = 0; i < kernel.rows.size(); ++i) {
        text += rowText(kernel.rows[i], i, i == kernel.chosen);
      }
    }
  }
  return text;
}

std::string tuneCsv(const std::vector<TunedFile>& files) {
  std::string text = csvLine({"file", "kernel", "rank", "candidate", "parameters", "us",
                              "predicted", "runs", "registers", "fault", "chosen", "key"});
  for (const TunedFile& file : files) {
    for (const TunedKernel& kernel : file.kernels) {
      for (size_t i = 0; i < kernel.rows.size(); ++i) {
        const TunedKernel::Row& row = kernel.rows[i];
        text += csvLine({file.path, kernel.name, fmt::format("{}", kernel.rank),
                         fmt::format("{}", i), row.parameters, microseconds(row.seconds),
                         microseconds(row.predicted), fmt::format("{}", row.runs),
                         row.registers ? fmt::format("{}", *row.registers) : "", row.fault,
                         i == kernel.chosen ? "1" : "0", kernel.key});
      }
    }
  }
  return text;
}

std::string modelRanksText(const std::vector<TunedFile>& files) {
  std::vector<TunedKernel> kernels;
  for (const TunedFile& file : files) {
    kernels.insert(kernels.end(), file.kernels.begin(), file.kernels.end());
  }
  const std::optional<ModelRanks> ranks = modelRanks(kernels);
  if (!ranks) return "";
  return fmt::format(
      "rank correlation of predicted and measured times: {:.2f} within a kernel (mean of {}), "
      "{:.2f} over all {} candidates\n",
      ranks->mean, ranks->kernels, ranks->all, ranks->candidates);
}

}  // namespace heddle::tools
