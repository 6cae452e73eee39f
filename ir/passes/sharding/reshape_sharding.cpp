#include "ir/passes/sharding/reshape_sharding.h"

#include <algorithm>

#include "ir/analysis/shardable_axes.h"
#include "ir/base/check.h"
#include "ir/sizes/size_quotient.h"
#include "ir/types/mesh_relations.h"

namespace heddle {
namespace {

const DeviceMesh& meshOf(const Fusion& fusion, const Sharding& state) {
  return fusion.meshes.at(state.mesh);
}

void refuseUneven(const Fusion& fusion, const Expression& expr,
                  const ShardableAxes::Regrouped& axis, const std::string& source) {
  const Value& input = fusion.value(expr.inputs[0]);
  const Sharding& has = input.tensor.sharding.value();
  const std::vector<MeshAxis>& list = has.axes[axis.input];
  if (!axis.splits || list.empty() || fusion.value(expr.outputs[0]).user_sharding) return;
  if (gathersUneven(expr)) return;
  const DeviceMesh& mesh = meshOf(fusion, has);
  const int64_t devices = devicesOf(mesh, list);
  for (const Size& extent : {axis.from, axis.to}) {
    const Size left = remainder(extent, devices);
    HEDDLE_USER_CHECK(!left.isConstant() || left.isConstant(0),
                      "{}: {} does not divide evenly over the {} devices of {}; gather the axis "
                      "before the reshape, as in `set(%{}) shard(@{})`",
                      source, extent.str(), devices, mesh.str(), input.name, mesh.name);
  }
}

void guardEven(const Size& extent, int64_t devices, const std::string& source,
               const std::string& over, std::vector<SizeGuard>& guards) {
  const Size left = remainder(extent, devices);
  if (left.isConstant(0)) return;
  SizeGuard guard{left, Size(0),
                  fmt::format("{}: {} must divide evenly over {}", source, extent.str(), over)};
  if (std::find(guards.begin(), guards.end(), guard) == guards.end()) guards.push_back(guard);
}

}  // namespace

bool gathersUneven(const Expression& reshape) {
  const Attr* gather = reshape.find("gather_uneven");
  return gather != nullptr && std::get<bool>(*gather);
}

void checkReshapeSharding(const Fusion& fusion, const Expression& reshape, const Sharding& operand,
                          const std::vector<bool>& asked, std::vector<SizeGuard>& guards) {
  const DeviceMesh& mesh = meshOf(fusion, operand);
  for (const ShardableAxes::Regrouped& axis : shardableAxesOf(fusion, reshape).regrouped) {
    const std::vector<MeshAxis>& list = operand.axes[axis.input];
    const std::string source = fmt::format(
        "reshape at line {0}: axis {1} of %{2} with {3} elements corresponds to an axis of %{5} "
        "with {4}",
        reshape.line, axis.input, fusion.value(reshape.inputs[0]).name, axis.from.str(),
        axis.to.str(), fusion.value(reshape.outputs[0]).name);
    if (list.empty()) {
      if (asked[axis.input]) refuseUneven(fusion, reshape, axis, source);
      continue;
    }
    const std::string over = fmt::format(
        "{} devices of @{}; or gather the axis before the reshape, as in `set(%{}) shard(@{})`",
        devicesOf(mesh, list), mesh.name, fusion.value(reshape.inputs[0]).name, mesh.name);
    for (const Size& extent : {axis.from, axis.to}) {
      guardEven(extent, devicesOf(mesh, list), source, over, guards);
    }
  }
}

}  // namespace heddle
