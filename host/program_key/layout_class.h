#pragma once

#include <optional>
#include <vector>

#include "host/device/device_tensor.h"
#include "ir/graph/fusion.h"

namespace heddle::host {

// The layouts of the inputs for which a program is compiled: memory order and contiguity, without
// sizes. nullopt means that the executor sets no layout for this input. Reasons: the input is a
// scalar, the fusion gives its layout, the job has several ranks, or the argument is missing or
// does not fit the input. In the last case, a later step reports the error.
using LayoutClass = std::vector<std::optional<Layout::Observed>>;

// Returns the layout class of the inputs. In a job of several ranks, the class contains no layouts,
// and the kernels accept any strides. The reason: the ranks must agree on the program, but each
// rank knows only its own layouts.
LayoutClass classOf(const Fusion& fusion, const std::vector<Argument>& inputs, bool one_rank);

// Returns the fusion with these layouts of its inputs.
Fusion withLayouts(Fusion fusion, const LayoutClass& layouts);

}  // namespace heddle::host
