#pragma once

#include "ir/composite/terms.h"

// Helpers that normalizations share with their gradients and with the losses. Only sources of
// ir/composite include this header.
namespace heddle::composite {

// Returns the last `dims` axes of `x`. dims = 0 means as many axes as `weight` has, or one axis if
// there is no weight.
Axes lastAxes(FusionBuilder& b, std::string_view op_name, Term x, ValueId weight, int64_t dims);
// Returns a weight or bias, widened by widen() (ir/composite/terms.h). The parameter must have
// exactly the axes `axes` of `x`.
Term lastParameter(FusionBuilder& b, std::string_view op_name, Term x, ValueId parameter,
                   const Axes& axes);

// Returns all axes of a tensor with `rank` axes, except axis 1 (the channels).
Axes channelRest(size_t rank);
// Checks the operand of batch_norm and returns it. The operand must have at least two axes, and
// must not have exactly one element per channel. If sizes are symbolic, a guard checks this in
// every run.
Term channelOperand(FusionBuilder& b, std::string_view op_name, ValueId x);
// Returns a weight or bias [c], widened, where c is the number of channels. The result has
// broadcast axes in place of all other axes of `x`.
Term channelParameter(FusionBuilder& b, std::string_view op_name, Term x, ValueId parameter);

struct Normal {
  Term mean;      // with keepdim, mean and variance keep the reduced axes with extent 1
  Term variance;  // biased
  Term scale;     // 1 / sqrt(variance + eps), with as many axes as x
  Term normal;    // (x - mean) * scale
  Term n;         // number of elements that each mean averages
};
// Normalizes `wide` over `axes`. `wide` must be a result of widen().
Normal normalOf(Term wide, const Axes& axes, double eps, bool keepdim = true);

// Returns the machine epsilon of the type in which heddle computes with `dtype`. For half types
// this type is f32, as in PyTorch.
double epsilonOf(DType dtype);

// Returns the logarithm of the softmax of x = `wide` over `axes`:
// x - max - log(sum(exp(x - max))).
Term logProbabilities(Term wide, const Axes& axes);

}  // namespace heddle::composite
