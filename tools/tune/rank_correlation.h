#pragma once

#include <optional>
#include <vector>

#include "tools/tune/tune.h"

namespace heddle::tools {

// Returns Spearman's rank correlation of two lists of the same length: the correlation of the ranks
// of their elements. Equal elements share the mean of their ranks. Returns nullopt if all elements
// of a list are equal.
std::optional<double> rankCorrelation(const std::vector<double>& a, const std::vector<double>& b);

// Describes how well the time model (codegen/bind/time_model.h) ranks the measured candidates of
// some kernels: the rank correlations of predicted and measured times. Predictions that are equal
// after rounding to three digits share a rank.
struct ModelRanks {
  int kernels = 0;     // kernels whose candidates differ in predicted and in measured times
  double mean = 0;     // the mean of the correlations of these kernels
  int candidates = 0;  // measured candidates of all kernels
  double all = 0;      // the correlation over all measured candidates together
};
// Returns nullopt if no kernel has measured candidates that differ in predicted and in measured
// times.
std::optional<ModelRanks> modelRanks(const std::vector<TunedKernel>& kernels);

}  // namespace heddle::tools
