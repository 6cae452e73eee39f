#include "ir/passes/sharding/reused_inputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/base/check.h"
#include "ir/graph/rewrite.h"

namespace heddle {
namespace {

bool isMoved(const Fusion& fusion, size_t output) {
  const std::optional<OutputReuse>& reuse = fusion.reuses()[output];
  return reuse &&
         fusion.tensor(fusion.outputs()[output]).sharding != fusion.tensor(reuse->input).sharding;
}

// Returns whether the sharding splits an axis of the tensor that is a broadcast axis.
bool splitsBroadcast(const std::optional<Sharding>& sharding, const TensorView& tensor) {
  for (size_t axis = 0; sharding && axis < tensor.rank(); ++axis) {
    if (tensor.domain[axis].kind == IterKind::Broadcast && sharding->isSharded(axis)) return true;
  }
  return false;
}

// Returns the name of the moved output. If the old value is no input and no other output returns
// it, the moved output gets the user's name, and this function renames the old value.
std::string takeName(FusionRewriter& rewriter, const Fusion& fusion, size_t output) {
  const ValueId old = fusion.outputs()[output];
  const Value& value = fusion.value(old);
  const bool is_only = std::count(fusion.outputs().begin(), fusion.outputs().end(), old) == 1;
  if (!is_only || value.definition == kNoExpr) {
    return rewriter.freeName(value.name + "_in_" +
                             fusion.value(fusion.reuses()[output]->input).name);
  }
  rewriter.builder().rename(rewriter.at(old), rewriter.freeName(value.name + "_local"));
  return value.name;
}

}  // namespace

std::string reuseOf(const Fusion& fusion, ValueId output) {
  for (size_t i = 0; i < fusion.outputs().size(); ++i) {
    const std::optional<OutputReuse>& reuse = fusion.reuses()[i];
    if (!reuse || fusion.outputs()[i] != output) continue;
    const Value& input = fusion.value(reuse->input);
    if (!input.tensor.sharding) continue;
    return fmt::format(
        "; `return %{} in{} %{}` stores it in the input %{}, which has the sharding {}",
        fusion.value(output).name, reuse->required ? "!" : "", input.name, input.name,
        input.tensor.sharding->str(fusion.meshes[input.tensor.sharding->mesh]));
  }
  return "";
}

Fusion shardReusedOutputs(Fusion fusion) {
  for (size_t i = 0; i < fusion.outputs().size(); ++i) {
    const std::optional<OutputReuse>& reuse = fusion.reuses()[i];
    if (!reuse || !fusion.value(reuse->input).user_sharding) continue;
    Value& output = fusion.mutableValue(fusion.outputs()[i]);
    if (output.tensor.sharding || output.definition == kNoExpr) continue;
    std::optional<Sharding> sharding = fusion.tensor(reuse->input).sharding;
    if (splitsBroadcast(sharding, output.tensor)) continue;
    sharding->stream.reset();
    output.tensor.sharding = std::move(sharding);
    output.user_sharding = true;
  }
  return fusion;
}

Fusion moveReusedOutputs(Fusion fusion) {
  std::vector<ValueId> moved(fusion.outputs().size(), kNoValue);
  bool any = false;
  for (size_t i = 0; i < moved.size(); ++i) any = any || isMoved(fusion, i);
  if (!any) return fusion;
  FusionRewriter rewriter(fusion);
  rewriter.inputs();
  for (ExprId id : fusion.exprs().ids()) rewriter.copy(id);
  for (size_t i = 0; i < moved.size(); ++i) {
    if (!isMoved(fusion, i)) continue;
    const Value& value = fusion.value(fusion.outputs()[i]);
    const TensorView& input = fusion.tensor(fusion.reuses()[i]->input);
    ValueId from = rewriter.at(fusion.outputs()[i]);
    if (splitsBroadcast(input.sharding, value.tensor)) {
      // A broadcast axis cannot be sharded. A reshape makes it an axis of one element.
      rewriter.builder().name(rewriter.freeName(value.name + "_reshaped")).line(value.line);
      from = rewriter.builder().reshape(from, value.tensor.sizes());
      rewriter.fusion().setSharding(from, value.tensor.sharding);
    }
    const std::string name = takeName(rewriter, fusion, i);
    rewriter.builder().name(name).line(value.line);
    moved[i] = rewriter.builder().set(from);
    rewriter.fusion().setSharding(moved[i], input.sharding);
    rewriter.fusion().mutableValue(moved[i]).user_sharding = true;
  }
  return std::move(rewriter).finishWith(moved);
}

}  // namespace heddle
