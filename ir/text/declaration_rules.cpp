#include "ir/text/declaration_rules.h"

#include <algorithm>

#include "ir/base/check.h"
#include "ir/graph/print_values.h"
#include "ir/types/exact_scalar.h"

namespace heddle {
namespace {

constexpr size_t kMostMeshes = 1000;

std::string shardingViolation(const Sharding& sharding, const Meshes& meshes, size_t rank) {
  if (!meshes.has(sharding.mesh)) {
    return fmt::format("its sharding names mesh {} (counted from 0), but there are {}",
                       sharding.mesh, meshes.size());
  }
  if (sharding.axes.size() > rank) {
    return logicalAxisViolation(static_cast<int64_t>(sharding.axes.size()) - 1, rank);
  }
  MeshAxisUse use(meshes[sharding.mesh]);
  std::vector<MeshAxis> used;
  for (const auto& axes : sharding.axes) used.insert(used.end(), axes.begin(), axes.end());
  for (const Sharding::Partial& partial : sharding.partial) used.push_back(partial.axis);
  for (MeshAxis axis : used) {
    if (std::string why = use.use(axis); !why.empty()) return why;
  }
  if (!sharding.stream) return "";
  std::string why = logicalAxisViolation(sharding.stream->axis, rank);
  return why.empty() ? chunksViolation(sharding.stream->chunks) : why;
}

std::string inputLayoutViolation(const Layout& layout, size_t rank) {
  if (layout.needed) return inputOrderViolation("needed");
  if (layout.hint) return inputOrderViolation("hinted");
  if (layout.required) return "an input has an observed order, not a required one";
  if (!layout.observed) return "";
  std::string why = orderViolation(layout.observed->order, rank);
  return why.empty() ? contiguousViolation(layout.observed->contiguous.size(), rank) : why;
}

std::string layoutViolation(const Layout& layout, size_t rank, OrderOf of) {
  if (of == OrderOf::Input) return inputLayoutViolation(layout, rank);
  if (layout.observed) return kContiguousOfValue;
  for (const auto& order : {layout.required, layout.needed, layout.hint}) {
    std::string why = order ? orderViolation(*order, rank) : "";
    if (!why.empty()) return why;
  }
  return "";
}

}  // namespace

std::string meshAxisViolation(const DeviceMesh& mesh, MeshAxis axis) {
  const bool fits = mesh.axes.empty() || (mesh.axes.size() < 3 && mesh.axes.back().axis > axis);
  return fits ? "" : "mesh axes are listed as [x], [y, x] or [z, y, x], the innermost last";
}

std::string meshSizeViolation(int64_t size) {
  return size >= 1 ? "" : fmt::format("a mesh axis has at least 1 device, got {}", size);
}

std::string jobAxesViolation(const DeviceMesh& mesh) {
  const auto from_job =
      std::count_if(mesh.axes.begin(), mesh.axes.end(),
                    [](const DeviceMesh::Axis& axis) { return axis.size == DeviceMesh::kFromJob; });
  return from_job <= 1 ? "" : "only one mesh axis can take its size from the job";
}

std::string meshDevicesViolation(const DeviceMesh& mesh) {
  return knownDevices(mesh) ? "" : fmt::format("mesh @{} has too many devices", mesh.name);
}

std::string meshRanksViolation(const DeviceMesh& mesh) {
  const std::optional<int64_t> count = mesh.sizeIsFromJob() ? std::nullopt : knownDevices(mesh);
  if (!count || static_cast<int64_t>(mesh.ranks.size()) != *count) {
    return fmt::format("mesh @{} lists {} ranks for {} devices", mesh.name, mesh.ranks.size(),
                       count ? fmt::to_string(*count) : "the job's");
  }
  std::set<int64_t> seen;
  for (int64_t rank : mesh.ranks) {
    if (rank < 0) return fmt::format("rank {} is negative", rank);
    if (!seen.insert(rank).second) return fmt::format("rank {} is listed twice", rank);
  }
  return "";
}

std::string meshCountViolation(const Meshes& meshes) {
  return meshes.size() < kMostMeshes
             ? ""
             : fmt::format("this is mesh number {}, and at most {} are allowed", kMostMeshes + 1,
                           kMostMeshes);
}

std::string meshNameViolation(const Meshes& meshes, const std::string& name) {
  const bool used = std::any_of(meshes.begin(), meshes.end(),
                                [&](const DeviceMesh& mesh) { return mesh.name == name; });
  return used ? fmt::format("mesh @{} is defined twice", name) : "";
}

std::string meshViolation(const Meshes& meshes, const DeviceMesh& mesh) {
  if (mesh.axes.empty()) return fmt::format("mesh @{} has 0 axes; it needs 1 to 3", mesh.name);
  DeviceMesh so_far;
  for (const DeviceMesh::Axis& axis : mesh.axes) {
    std::string why = meshAxisViolation(so_far, axis.axis);
    const bool is_number = axis.size != DeviceMesh::kFromJob;
    if (why.empty() && is_number) why = meshSizeViolation(axis.size);
    if (!why.empty()) return why;
    so_far.axes.push_back(axis);
  }
  for (const std::string& why :
       {jobAxesViolation(mesh), meshDevicesViolation(mesh),
        mesh.ranks.empty() ? std::string() : meshRanksViolation(mesh), meshCountViolation(meshes),
        meshNameViolation(meshes, mesh.name)}) {
    if (!why.empty()) return why;
  }
  return "";
}

std::string extentViolation(const IterDomain& axis) {
  if (axis.kind == IterKind::Broadcast) {
    return axis.extent.isConstant(1) ? "" : "the extent of a broadcast axis must be 1";
  }
  const bool is_negative = axis.extent.isConstant() && axis.extent.constant() < 0;
  return is_negative ? fmt::format("the extent {} is negative", axis.extent.constant()) : "";
}

std::string orderViolation(const AxisOrder& order, size_t rank) {
  AxisOrder sorted = order;
  std::sort(sorted.begin(), sorted.end());
  if (sorted == rowMajor(rank)) return "";
  return fmt::format(
      "found order={}, expected each of the {} axes of the tensor once, as in order={}", str(order),
      rank, str(rowMajor(rank)));
}

std::string contiguousViolation(size_t entries, size_t rank) {
  if (entries == rank) return "";
  return fmt::format("contiguous has {} entries for a tensor of rank {}", entries, rank);
}

std::string chunksViolation(int64_t chunks) {
  return chunks >= 1 ? "" : fmt::format("expected at least 1 chunk, got {}", chunks);
}

std::string logicalAxisViolation(int64_t axis, size_t rank) {
  const int64_t from_front = axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
  if (from_front >= 0 && from_front < static_cast<int64_t>(rank)) return "";
  return fmt::format("axis {} is out of range for a tensor of rank {}", axis, rank);
}

std::string inputOrderViolation(const std::string& prefix) {
  return prefix + " order describes computed values only; write order= for an input";
}

std::string MeshAxisUse::use(MeshAxis axis) {
  if (!mesh_.has(axis)) return fmt::format("mesh @{} has no axis {}", mesh_.name, name(axis));
  if (used_.insert(axis).second) return "";
  return fmt::format("mesh axis {} is used twice in one sharding", name(axis));
}

std::string typeViolation(const TensorView& tensor, const Meshes& meshes, OrderOf of) {
  for (const IterDomain& axis : tensor.domain) {
    if (std::string why = extentViolation(axis); !why.empty()) return why;
  }
  const std::string why =
      tensor.sharding ? shardingViolation(*tensor.sharding, meshes, tensor.rank()) : "";
  return why.empty() ? layoutViolation(tensor.layout, tensor.rank(), of) : why;
}

std::string defaultViolation(DType dtype, const Scalar& value) {
  return whyNotScalar(dtype, value).empty()
             ? ""
             : fmt::format("{} is not a value of {}", printScalar(value), name(dtype));
}

Scalar storedDefault(DType dtype, const Scalar& value) {
  return isFloat(dtype) ? Scalar(toDouble(value)) : value;
}

}  // namespace heddle
