#include "ir/passes/regrouped_axes.h"

#include <algorithm>

#include "ir/error.h"
#include "ir/mesh_relations.h"
#include "ir/size_quotient.h"
#include "ir/spread_map.h"

namespace heddle {
namespace {

const DeviceMesh& meshOf(const Fusion& fusion, const Sharding& state) {
  return fusion.meshes.at(static_cast<size_t>(state.mesh));
}

void refuseUneven(const Fusion& fusion, const Expression& expr, const SpreadMap::Regrouped& axis,
                  const std::string& source) {
  const Value& input = fusion.value(expr.inputs[0]);
  const Sharding& has = input.tensor.sharding.value();
  const std::vector<MeshAxis>& list = has.axes[axis.input];
  if (!axis.splits || list.empty() || fusion.value(expr.outputs[0]).user_sharding) return;
  const DeviceMesh& mesh = meshOf(fusion, has);
  const int64_t devices = devicesOf(mesh, list);
  for (const Size& extent : {axis.from, axis.to}) {
    const Size left = remainder(extent, devices);
    HEDDLE_USER_CHECK(!left.isConstant() || left.isConstant(0),
                      "{}: {} does not divide evenly over the {} devices of {}; gather the axis "
                      "before, as in `set(%{}) shard(@{})`",
                      source, extent.str(), devices, mesh.str(), input.name, mesh.name);
  }
}

void guardEven(const Size& extent, int64_t devices, const std::string& source,
               const DeviceMesh& mesh, std::vector<SizeGuard>& guards) {
  const Size left = remainder(extent, devices);
  if (left.isConstant(0)) return;
  SizeGuard guard{left, Size(0),
                  fmt::format("{}: {} must divide evenly over {} devices of @{}", source,
                              extent.str(), devices, mesh.name)};
  if (std::find(guards.begin(), guards.end(), guard) == guards.end()) guards.push_back(guard);
}

}  // namespace

void checkRegrouped(const Fusion& fusion, const Expression& reshape, const Sharding& operand,
                    std::vector<SizeGuard>& guards) {
  const DeviceMesh& mesh = meshOf(fusion, operand);
  for (const SpreadMap::Regrouped& axis : spreadMapOf(fusion, reshape).regrouped) {
    const std::vector<MeshAxis>& list = operand.axes[axis.input];
    const std::string source = fmt::format(
        "reshape at line {}: axis {} of %{}, {} elements, has {} as the outermost axis of %{}",
        reshape.line, axis.input, fusion.value(reshape.inputs[0]).name, axis.from.str(),
        axis.to.str(), fusion.value(reshape.outputs[0]).name);
    if (list.empty()) {
      refuseUneven(fusion, reshape, axis, source);
      continue;
    }
    for (const Size& extent : {axis.from, axis.to}) {
      guardEven(extent, devicesOf(mesh, list), source, mesh, guards);
    }
  }
}

}  // namespace heddle
