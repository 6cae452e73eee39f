#include "host/unroll/scope.h"

#include <algorithm>
#include <numeric>

#include "ir/base/check.h"
#include "ir/sizes/scalar_values.h"

namespace heddle::host {
namespace {

// Returns the block of axis `i` with `n` elements on a rank. If the rank is outside of the mesh,
// the block of an axis in the sharding is empty. An axis that the sharding does not list is always
// complete.
Block blockOn(int64_t n, size_t i, const Sharding& sharding, const DeviceMesh& mesh, int64_t rank,
              bool is_in_mesh) {
  if (i >= sharding.axes.size()) return {0, n, n};
  if (!is_in_mesh) return {n, 0, 0};
  return sharding.axes[i].empty() ? Block{0, n, n} : blockOf(n, mesh, sharding.axes[i], rank);
}

}  // namespace

Scope::Scope(const Meshes& meshes, const SizeBindings& sizes, int64_t rank, int64_t ranks)
    : meshes_(meshes), rank_(rank), ranks_(ranks), values_(sizes) {
  HEDDLE_USER_CHECK(ranks > 0 && rank >= 0 && rank < ranks, "rank {} of {} ranks", rank, ranks);
  values_["rank"] = rank;
  values_["ranks"] = ranks;
  for (DeviceMesh& mesh : meshes_) {
    concretizeMesh(mesh, ranks);
    for (const DeviceMesh::Axis& axis : mesh.axes) {
      const std::string symbol = fmt::format("@{}.{}", mesh.name, name(axis.axis));
      values_[symbol] = axis.size;
      if (mesh.positionOf(rank) < 0) continue;
      values_[symbol + ".index"] = mesh.coordinate(rank, axis.axis);
    }
  }
}

std::vector<int64_t> Scope::members(const Team& team) const {
  std::vector<int64_t> out;
  if (!team.mesh.valid()) {
    out.resize(ranks_);
    std::iota(out.begin(), out.end(), 0);
    return out;
  }
  const DeviceMesh& mesh = meshes_.at(team.mesh);
  HEDDLE_USER_CHECK(mesh.positionOf(rank_) >= 0,
                    "rank {} is not in mesh {} of the team: write `on @{}:` before the instruction",
                    rank_, mesh.str(), mesh.name);
  if (!team.axes.empty()) return mesh.team(rank_, team.axes);
  for (int64_t i = 0; i < mesh.size(); ++i) out.push_back(mesh.rankAt(i));
  return out;
}

int64_t Scope::teamSize(const Team& team) const {
  if (!team.mesh.valid()) return ranks_;
  if (!isIn(team.mesh))
    return static_cast<int64_t>(members(team).size());  // throws: this rank is not in the mesh
  const DeviceMesh& mesh = meshes_.at(team.mesh);
  if (team.axes.empty()) return mesh.size();
  int64_t size = 1;
  for (MeshAxis axis : team.axes) size *= mesh.size(axis);
  return size;
}

int64_t Scope::evaluate(const Size& size) const {
  if (size.isConstant()) return size.constant();
  if (size.kind() == Size::Kind::Symbol) {
    const auto found = values_.find(size.symbolName());
    if (found != values_.end()) return found->second;  // otherwise the call below reports the error
  }
  return size.evaluate([this](const std::string& symbol) -> std::optional<int64_t> {
    const auto found = values_.find(symbol);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  });
}

std::vector<int64_t> Scope::evaluate(const std::vector<Size>& sizes) const {
  std::vector<int64_t> out;
  for (const Size& size : sizes) out.push_back(evaluate(size));
  return out;
}

// Determines the sizes from the sharding, then the allocated sizes, then the strides, because each
// of them depends on the one before.
TensorDesc Scope::describe(const Slot& slot) const {
  TensorDesc desc;
  desc.dtype = slot.tensor.dtype;
  const std::optional<Sharding>& sharding = slot.tensor.sharding;
  desc.held = !sharding || isIn(sharding->mesh);
  for (auto* list : {&desc.global, &desc.sizes, &desc.alloc, &desc.offset}) {
    list->reserve(slot.tensor.rank());
  }
  for (size_t i = 0; i < slot.tensor.rank(); ++i) {
    const int64_t n = evaluate(slot.tensor.domain[i].extent);
    HEDDLE_USER_CHECK(n >= 0, "axis {} of %{} has the size {} = {}{}", i, slot.name,
                      slot.tensor.domain[i].extent.str(), n,
                      scalarValuesIn({slot.tensor.domain[i].extent}, values_));
    const Block block = sharding
                            ? blockOn(n, i, *sharding, meshes_.at(sharding->mesh), rank_, desc.held)
                            : Block{0, n, n};
    desc.global.push_back(n);
    desc.sizes.push_back(block.valid);
    desc.alloc.push_back(block.alloc);
    desc.offset.push_back(block.begin);
  }
  if (!slot.alloc.empty() && desc.held) {
    desc.alloc = evaluate(slot.alloc);
    for (size_t i = 0; i < desc.alloc.size(); ++i) {
      HEDDLE_USER_CHECK(i < desc.sizes.size() && desc.alloc[i] >= desc.sizes[i],
                        "%{} allocates {} for sizes {}", slot.name, str(desc.alloc),
                        str(desc.sizes));
    }
  }
  int64_t elements = heddle::sizeOf(desc.dtype);
  for (int64_t n : desc.alloc) {
    HEDDLE_USER_CHECK(!__builtin_mul_overflow(elements, n == 0 ? 1 : n, &elements),
                      "%{} of {} does not fit in 64 bits{}", slot.name, str(desc.alloc),
                      scalarValuesIn(slot.tensor.sizes(), values_));
  }
  const Layout& layout = slot.tensor.layout;
  if (layout.required || layout.needed || layout.hint) {
    desc.strides = stridesFor(desc.alloc, slot.tensor.allocationOrder());
    return desc;
  }
  desc.strides.resize(desc.alloc.size());  // row-major: equal to the result of stridesFor()
  int64_t stride = 1;
  for (size_t i = desc.alloc.size(); i-- > 0;) {
    desc.strides[i] = stride;
    stride *= std::max<int64_t>(desc.alloc[i], 1);
  }
  return desc;
}

void Scope::trackLate(const LateInputs& late, std::map<int32_t, LateRange>& ranges) {
  late_ = late;
  ranges_ = &ranges;
  for (const auto& [symbol, input] : late) ranges.emplace(input, LateRange{});
}

std::vector<View::LateTerm> Scope::lateTermsOf(const Size& size) const {
  std::vector<View::LateTerm> terms;
  if (!size.hasScalar()) return terms;
  for (const auto& [symbol, input] : late_) {
    const std::optional<int64_t> growth = growthOf(size, symbol, values_);
    HEDDLE_CHECK(growth.has_value(), "the late input {} is not linear in {}", symbol, size.str());
    if (*growth != 0) terms.push_back({input, *growth});
  }
  return terms;
}

int64_t Scope::lateValue(int32_t input) const {
  for (const auto& [symbol, position] : late_) {
    if (position == input) return values_.at(symbol);
  }
  HEDDLE_CHECK(false, "input {} is not late", input);
}

void Scope::restrictLate(const Size& size) const {
  if (late_.empty() || !size.hasScalar()) return;
  for (const auto& [symbol, input] : late_) {
    const std::optional<int64_t> growth = growthOf(size, symbol, values_);
    if (growth && *growth != 0) {
      ranges_->at(input).restrict(evaluate(size), *growth, values_.at(symbol));
    }
  }
}

void Scope::check(const std::vector<SizeGuard>& guards) const { checkGuards(guards, values_); }

TensorDesc describe(const Slot& slot, const Meshes& meshes, const SizeBindings& sizes, int64_t rank,
                    int64_t ranks) {
  return Scope(meshes, sizes, rank, ranks).describe(slot);
}

}  // namespace heddle::host
