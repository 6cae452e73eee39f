#pragma once

#include "ir/composite/terms.h"

// Helpers that normalizations share with their gradients and the losses. Only sources of
// ir/composite include it.
namespace heddle::composite {

// Returns the last `dims` axes of `x`. 0 means as many as `weight` has, or 1 without a weight.
Axes lastAxes(FusionBuilder& b, std::string_view op_name, Term x, ValueId weight, int64_t dims);
// Returns a weight or bias, widened (Term widen()). It must have exactly these axes of `x`.
Term lastParameter(FusionBuilder& b, std::string_view op_name, Term x, ValueId parameter,
                   const Axes& axes);

// Returns all axes except axis 1, the channels.
Axes channelRest(size_t rank);
// Returns the operand of batch_norm. It must have rank 2 or more and more than one element per
// channel. If the sizes are known only at run time, a guard checks this.
Term channelOperand(FusionBuilder& b, std::string_view op_name, ValueId x);
// Returns a weight [c], widened, with broadcast axes in place of all axes except the channels.
Term channelParameter(FusionBuilder& b, std::string_view op_name, Term x, ValueId parameter);

struct Normal {
  Term mean;      // with keepdim, mean and variance keep the reduced axes with extent 1
  Term variance;  // biased
  Term scale;     // 1 / sqrt(variance + eps), with the axes of x
  Term normal;    // (x - mean) * scale
  Term n;         // number of elements that each mean averages
};
// Normalizes `wide` over `axes`.
Normal normalOf(Term wide, const Axes& axes, double eps, bool keepdim = true);

// Returns the machine epsilon of the type in which heddle computes `dtype`: f32 for half types, as
// in PyTorch.
double epsilonOf(DType dtype);

// Returns x - max - log(sum(exp(x - max))).
Term logProbabilities(Term wide, const Axes& axes);

}  // namespace heddle::composite
