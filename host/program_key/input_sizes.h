#pragma once

#include <vector>

#include "host/device/device_tensor.h"
#include "host/plan/size_inputs.h"
#include "ir/base/size.h"
#include "ir/graph/fusion.h"

namespace heddle::host {

// Returns the values of the symbols of a fusion for these inputs. `scalars` are the inputs of the
// fusion whose values decide sizes. Throws the errors of bindSizes() (ir/graph/fusion.h) and of
// SizeInputs::bind(), and UserError if there are too many inputs or if the descriptor of a sharded
// input lacks its unsharded sizes.
SizeBindings sizesOfInputs(const Fusion& fusion, const SizeInputs& scalars,
                           const std::vector<Argument>& inputs);

}  // namespace heddle::host
