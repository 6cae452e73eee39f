#pragma once

#include <string>
#include <vector>

#include "ir/analysis/reshape_decisions.h"
#include "ir/graph/fusion.h"

namespace heddle {

// Records what heddle decides about a fusion from the sizes of a run. Runs with equal records can
// share a host program. A record contains no sizes, so a program stays valid for many sizes. A
// record has two parts:
//  - For each symbolic size (a size with a `?`, Fusion::symbolic_sizes): whether it is 1. If it is
//    1, the axes of this size broadcast. Otherwise they are ordinary axes.
//  - For each reshape whose sizes contain the values of scalars, such as `%n`: its splits and
//    merges.
struct SizeDecisions {
  struct Decision {
    std::string symbol;
    bool is_one = false;
    bool operator==(const Decision&) const = default;
  };
  std::vector<Decision> decisions;  // in the order of Fusion::symbolic_sizes
  std::vector<ReshapeDecision> reshapes;
  bool operator==(const SizeDecisions&) const = default;
  // Returns one line per symbolic size and per reshape, such as "n = 1: broadcast\n",
  // "m: iteration\n" or "reshape %y: split axis 0 into 2\n".
  std::string str() const;
};

// Returns the decisions for the sizes of a run. `sizes` should also contain the values of the
// scalars that sizes use, such as `%n`. A reshape that needs a missing value stays undecided
// (ReshapeDecision::Kind::Open). Throws UserError if a symbolic size has no value. Exception: a
// symbolic size that is the value of a scalar needs no value if no size of the fusion contains this
// scalar.
// scalar.
SizeDecisions decideSizes(const Fusion& fusion, const SizeBindings& sizes);

// Returns the fusion with the decisions applied. The result has no symbolic sizes.
//  - A symbolic size that is 1 becomes the constant 1. FusionBuilder (ir/graph/builder.h) then
//    broadcasts the axes of this size. The result has no default for this size. Exception: the
//    default of a size that is the value of a scalar becomes 1.
//  - All other symbolic sizes become ordinary symbols, and their axes do not broadcast. If an op
//    needs two such axes to have equal sizes, FusionBuilder adds a guard, a condition that every
//    run checks.
//  - If a reshape whose sizes depend on scalars both splits and merges axes, it becomes two
//    reshapes. Usually the first one only splits axes, and the second one only merges axes. If no
//    such splits exist, the first one merges a group of axes that the second one splits. Guards
//    check in every run that the sizes allow these splits and merges.
//  - Annotations are copied, remapped or dropped (Fusion::inheritAnnotations()).
//  - If a symbolic size is the value of a scalar %n, and is 1, a guard requires %n == 1 in every
//    run.
// Throws UserError if FusionBuilder rejects an op with the decided sizes.
Fusion concretizeSizes(Fusion fusion, const SizeDecisions& decisions);

// Derives the decisions about symbolic sizes from `sizes` and applies only these. Reshapes do not
// change, so the result is valid for all values of the scalars that are not symbolic sizes. Returns
// the same fusion if it has no symbolic size.
Fusion concretizeSizes(Fusion fusion, const SizeBindings& sizes);

}  // namespace heddle
