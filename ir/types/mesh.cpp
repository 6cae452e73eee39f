#include "ir/types/mesh.h"

#include <algorithm>

#include "ir/base/check.h"

namespace heddle {

std::string_view name(MeshAxis axis) {
  switch (axis) {
    case MeshAxis::X:
      return "x";
    case MeshAxis::Y:
      return "y";
    case MeshAxis::Z:
      return "z";
  }
  HEDDLE_CHECK(false, "mesh axis {} is not in the enum", static_cast<int>(axis));
}

bool DeviceMesh::has(MeshAxis axis) const {
  return std::any_of(axes.begin(), axes.end(), [&](const Axis& a) { return a.axis == axis; });
}

int64_t DeviceMesh::size(MeshAxis axis) const {
  for (const Axis& a : axes) {
    if (a.axis == axis) return a.size;
  }
  userError("mesh {} has no axis {}", str(), heddle::name(axis));
}

int64_t DeviceMesh::size() const {
  HEDDLE_CHECK(!sizeIsFromJob(), "mesh {} has no size before concretizeMesh()", str());
  std::optional<int64_t> total = knownDevices(*this);
  HEDDLE_USER_CHECK(total.has_value(), "mesh {} has too many devices", str());
  return *total;
}

bool DeviceMesh::sizeIsFromJob() const {
  return std::any_of(axes.begin(), axes.end(), [](const Axis& a) { return a.size == kFromJob; });
}

int64_t DeviceMesh::rankAt(int64_t position) const {
  HEDDLE_CHECK(position >= 0 && position < size(), "position {} is outside mesh {}", position,
               str());
  return ranks.empty() ? position : ranks[position];
}

int64_t DeviceMesh::positionOf(int64_t rank) const {
  if (ranks.empty()) return rank >= 0 && rank < size() ? rank : -1;
  auto found = std::find(ranks.begin(), ranks.end(), rank);
  return found == ranks.end() ? -1 : found - ranks.begin();
}

int64_t DeviceMesh::coordinate(int64_t rank, MeshAxis axis) const {
  int64_t position = positionOf(rank);
  HEDDLE_CHECK(position >= 0, "rank {} is not in mesh {}", rank, str());
  for (auto it = axes.rbegin(); it != axes.rend(); ++it) {
    if (it->axis == axis) return position % it->size;
    position /= it->size;
  }
  userError("mesh {} has no axis {}", str(), heddle::name(axis));
}

std::vector<int64_t> DeviceMesh::team(int64_t rank, const std::vector<MeshAxis>& team_axes) const {
  // Returns the difference between the row-major positions of two neighbours along a mesh axis.
  auto strideOf = [&](MeshAxis axis) {
    int64_t stride = 1;
    for (auto it = axes.rbegin(); it != axes.rend() && it->axis != axis; ++it) stride *= it->size;
    return stride;
  };
  int64_t first = positionOf(rank);
  HEDDLE_CHECK(first >= 0, "rank {} is not in mesh {}", rank, str());
  for (MeshAxis axis : team_axes) first -= coordinate(rank, axis) * strideOf(axis);
  std::vector<int64_t> positions = {first};
  for (MeshAxis axis : team_axes) {
    const int64_t count = size(axis), stride = strideOf(axis);
    std::vector<int64_t> grown;
    grown.reserve(positions.size() * static_cast<size_t>(count));
    for (int64_t position : positions) {
      for (int64_t i = 0; i < count; ++i) grown.push_back(position + i * stride);
    }
    positions = std::move(grown);
  }
  if (ranks.empty()) return positions;  // a position is a rank
  for (int64_t& position : positions) position = rankAt(position);
  return positions;
}

std::string DeviceMesh::str() const {
  std::string out = "@" + name + " = [";
  for (size_t i = 0; i < axes.size(); ++i) {
    if (i > 0) out += ", ";
    out += heddle::name(axes[i].axis);
    out += '=';
    out += axes[i].size == kFromJob ? "ranks" : std::to_string(axes[i].size);
  }
  out += ']';
  if (ranks.empty()) return out;
  out += " ranks=[";
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(ranks[i]);
  }
  return out + "]";
}

std::optional<int64_t> knownDevices(const DeviceMesh& mesh) {
  int64_t count = 1;
  for (const DeviceMesh::Axis& axis : mesh.axes) {
    if (axis.size == DeviceMesh::kFromJob) continue;
    if (__builtin_mul_overflow(count, axis.size, &count) || count > kMaxDevices) return {};
  }
  return count;
}

void concretizeMesh(DeviceMesh& mesh, int64_t job_size) {
  std::optional<int64_t> known = knownDevices(mesh);
  HEDDLE_USER_CHECK(known.has_value(), "mesh {} has too many devices", mesh.str());
  DeviceMesh::Axis* open = nullptr;
  for (DeviceMesh::Axis& axis : mesh.axes) {
    if (axis.size == DeviceMesh::kFromJob) {
      HEDDLE_USER_CHECK(open == nullptr, "mesh {}: only one axis may take its size from the job",
                        mesh.str());
      open = &axis;
    }
  }
  if (open != nullptr) {
    HEDDLE_USER_CHECK(*known > 0 && job_size >= *known && job_size % *known == 0,
                      "mesh {}: the job has {} rank(s), but must have a multiple of {}, the "
                      "product of the other axes",
                      mesh.str(), job_size, *known);
    open->size = job_size / *known;
  }
  HEDDLE_USER_CHECK(mesh.size() <= job_size, "mesh {} needs {} ranks, the job has {}", mesh.str(),
                    mesh.size(), job_size);
  for (int64_t rank : mesh.ranks) {
    HEDDLE_USER_CHECK(rank < job_size, "mesh {} names rank {}, the job has {} rank(s)", mesh.str(),
                      rank, job_size);
  }
}

}  // namespace heddle
