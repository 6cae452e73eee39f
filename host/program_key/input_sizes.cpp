#include "host/program_key/input_sizes.h"

#include <cstddef>
#include <variant>

#include "ir/base/check.h"

namespace heddle::host {
namespace {

bool isSplit(const TensorView& tensor) {
  for (size_t axis = 0; tensor.sharding && axis < tensor.rank(); ++axis) {
    if (tensor.sharding->isSharded(axis)) return true;
  }
  return false;
}

}  // namespace

SizeBindings sizesOfInputs(const Fusion& fusion, const SizeInputs& scalars,
                           const std::vector<Argument>& inputs) {
  HEDDLE_USER_CHECK(inputs.size() <= fusion.inputs().size(), "fusion {} takes {} inputs, got {}",
                    fusion.name, fusion.inputs().size(), inputs.size());
  std::vector<std::vector<int64_t>> global(fusion.inputs().size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto* tensor = std::get_if<Tensor>(&inputs[i]);
    if (tensor == nullptr) continue;
    const bool is_unsharded = tensor->desc.global.empty();
    HEDDLE_USER_CHECK(!is_unsharded || !isSplit(fusion.tensor(fusion.inputs()[i])),
                      "input {} is sharded: its descriptor must give the unsharded sizes (global)",
                      i);
    global[i] = is_unsharded ? tensor->desc.sizes : tensor->desc.global;
  }
  SizeBindings values;
  scalars.bind(inputs, values);
  return bindSizes(fusion, global, values);
}

}  // namespace heddle::host
