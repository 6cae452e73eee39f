#pragma once

#include "ir/composite/terms.h"

// What normalizations share with their gradients and the losses. For the composite_*.cpp files
// only.
namespace heddle::composite {

// The last `dims` axes of `x`; 0 means as many as `weight` has, 1 without one.
Axes lastAxes(FusionBuilder& b, std::string_view op_name, Term x, ValueId weight, int64_t dims);
// A weight over exactly those axes, widened.
Term lastParameter(FusionBuilder& b, std::string_view op_name, Term x, ValueId parameter,
                   const Axes& axes);

// All axes but the channels, axis 1.
Axes channelRest(size_t rank);
// Input of batch_norm: rank 2 or more, more than one element a channel.
Term channelOperand(FusionBuilder& b, std::string_view op_name, ValueId x);
// A weight [c], widened, with broadcast axes around the channels.
Term channelParameter(FusionBuilder& b, std::string_view op_name, Term x, ValueId parameter);

struct Normal {
  Term mean;      // both [...] or [..., 1] as asked
  Term variance;  // biased
  Term scale;     // 1 / sqrt(variance + eps), with the axes of x
  Term normal;    // (x - mean) * scale
  Term n;         // elements behind each mean
};
Normal normalOf(Term wide, const Axes& axes, double eps, bool keepdim = true);

// The machine epsilon of the type in which `dtype` is computed: f32 for the half types, as PyTorch.
double epsilonOf(DType dtype);

// x - max - log(sum(exp(x - max))).
Term logProbabilities(Term wide, const Axes& axes);

}  // namespace heddle::composite
