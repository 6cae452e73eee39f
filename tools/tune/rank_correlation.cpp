#include "tools/tune/rank_correlation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace heddle::tools {
namespace {

std::vector<double> ranksOf(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t first = 0; first < order.size();) {
    size_t last = first;
    while (last + 1 < order.size() && values[order[last + 1]] == values[order[first]]) ++last;
    for (size_t i = first; i <= last; ++i) {
      ranks[order[i]] = static_cast<double>(first + last) / 2;
    }
    first = last + 1;
  }
  return ranks;
}

// Returns the predicted time, rounded to three digits. Predictions that round to the same number
// count as equal.
double threeDigits(double seconds) {
  if (seconds <= 0) return 0;
  const double unit = std::pow(10, std::floor(std::log10(seconds)) - 2);
  return std::round(seconds / unit) * unit;
}

}  // namespace

std::optional<double> rankCorrelation(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = ranksOf(a);
  const std::vector<double> y = ranksOf(b);
  const double mean = (static_cast<double>(x.size()) - 1) / 2;
  double xx = 0;
  double yy = 0;
  double xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
    xy += (x[i] - mean) * (y[i] - mean);
  }
  if (xx == 0 || yy == 0) return std::nullopt;
  return xy / std::sqrt(xx * yy);
}

std::optional<ModelRanks> modelRanks(const std::vector<TunedKernel>& kernels) {
  ModelRanks ranks;
  std::vector<double> all_predicted;
  std::vector<double> all_measured;
  for (const TunedKernel& kernel : kernels) {
    std::vector<double> predicted;
    std::vector<double> measured;
    for (const TunedKernel::Row& row : kernel.rows) {
      if (!std::isfinite(row.seconds)) continue;
      predicted.push_back(threeDigits(row.predicted));
      measured.push_back(row.seconds);
    }
    all_predicted.insert(all_predicted.end(), predicted.begin(), predicted.end());
    all_measured.insert(all_measured.end(), measured.begin(), measured.end());
    const std::optional<double> own = rankCorrelation(predicted, measured);
    if (!own) continue;
    ++ranks.kernels;
    ranks.mean += *own;
  }
  if (ranks.kernels == 0) return std::nullopt;
  ranks.mean /= ranks.kernels;
  ranks.candidates = static_cast<int>(all_measured.size());
  ranks.all = rankCorrelation(all_predicted, all_measured).value_or(0);
  return ranks;
}

}  // namespace heddle::tools
