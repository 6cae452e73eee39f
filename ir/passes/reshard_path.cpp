#include "ir/passes/reshard_path.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

#include "ir/error.h"
#include "ir/set_step.h"

namespace heddle {
namespace {

using Key = std::vector<int>;

// Equal for states that place the data alike.
Key keyOf(const Sharding& state) {
  Key key;
  for (const std::vector<MeshAxis>& list : state.axes) {
    for (MeshAxis axis : list) key.push_back(static_cast<int>(axis));
    key.push_back(-1);
  }
  std::vector<std::pair<int, int>> partial;
  for (const Sharding::Partial& each : state.partial) {
    partial.emplace_back(static_cast<int>(each.axis), static_cast<int>(each.op));
  }
  std::sort(partial.begin(), partial.end());
  for (auto [axis, op] : partial) {
    key.push_back(axis);
    key.push_back(op);
  }
  return key;
}

bool uses(const Sharding& state, MeshAxis axis) {
  return state.logicalAxisOf(axis) >= 0 ||
         std::any_of(state.partial.begin(), state.partial.end(),
                     [&](const Sharding::Partial& partial) { return partial.axis == axis; });
}

double devices(const DeviceMesh& mesh, const std::vector<MeshAxis>& axes) {
  double count = 1;
  for (MeshAxis axis : axes) count *= static_cast<double>(mesh.size(axis));
  return count;
}

bool isPrefix(const std::vector<MeshAxis>& list, const std::vector<MeshAxis>& of) {
  return list.size() <= of.size() && std::equal(list.begin(), list.end(), of.begin());
}

// The share of a buffer that a ring sends to the others.
double share(double team) { return (team - 1) / team; }

// The state with those partial entries gone; nullopt when they mix reductions or are no entries.
std::optional<Sharding> without(Sharding state, const std::vector<MeshAxis>& axes) {
  std::optional<ReduceOp> op;
  for (MeshAxis axis : axes) {
    auto found = std::find_if(state.partial.begin(), state.partial.end(),
                              [&](const Sharding::Partial& each) { return each.axis == axis; });
    if (found == state.partial.end() || (op && *op != found->op)) return std::nullopt;
    op = found->op;
    state.partial.erase(found);
  }
  return state;
}

// All non-empty subsets of the partial axes, the largest first.
std::vector<std::vector<MeshAxis>> subsets(const Sharding& state) {
  std::vector<std::vector<MeshAxis>> result;
  size_t count = state.partial.size();
  for (size_t bits = (size_t{1} << count) - 1; bits > 0; --bits) {
    std::vector<MeshAxis> subset;
    for (size_t i = 0; i < count; ++i) {
      if ((bits >> i & 1) != 0) subset.push_back(state.partial[i].axis);
    }
    result.push_back(std::move(subset));
  }
  return result;
}

}  // namespace

ReshardPaths::ReshardPaths(const Fusion& fusion) : fusion_(fusion) {
  for (const auto& [symbol, value] : fusion.size_defaults) sizes_[symbol] = value;
}

double ReshardPaths::bytes(const TensorView& tensor) const {
  double total = static_cast<double>(sizeOf(tensor.dtype));
  auto lookup = [&](const std::string& symbol) -> std::optional<int64_t> {
    auto found = sizes_.find(symbol);
    return found == sizes_.end() ? kNominalExtent : found->second;
  };
  for (const IterDomain& axis : tensor.domain) {
    total *= static_cast<double>(axis.extent.evaluate(lookup));
  }
  return total;
}

double ReshardPaths::localBytes(const TensorView& tensor, const Sharding& state,
                                const DeviceMesh& mesh) const {
  double total = bytes(tensor);
  for (const std::vector<MeshAxis>& list : state.axes) total /= devices(mesh, list);
  return total;
}

std::vector<ReshardPaths::Edge> ReshardPaths::edges(const TensorView& tensor, const Sharding& state,
                                                    const Sharding& goal,
                                                    const DeviceMesh& mesh) const {
  std::vector<Edge> result;
  double here = localBytes(tensor, state, mesh);
  for (size_t axis = 0; axis < state.axes.size(); ++axis) {
    const std::vector<MeshAxis>& list = state.axes[axis];
    for (size_t keep = 0; keep < list.size(); ++keep) {
      Sharding to = state;
      to.axes[axis].resize(keep);
      std::vector<MeshAxis> team(list.begin() + static_cast<std::ptrdiff_t>(keep), list.end());
      result.push_back({to, localBytes(tensor, to, mesh) * share(devices(mesh, team))});
    }
  }
  for (const std::vector<MeshAxis>& team : subsets(state)) {
    std::optional<Sharding> to = without(state, team);
    if (to) result.push_back({*to, 2 * here * share(devices(mesh, team))});
  }
  for (size_t axis = 0; axis < state.axes.size(); ++axis) {
    const std::vector<MeshAxis>& list = state.axes[axis];
    const std::vector<MeshAxis>& wanted = goal.axes[axis];
    if (!isPrefix(list, wanted)) continue;
    std::vector<MeshAxis> added;
    bool free = true;  // none of the added axes is in use: a slice
    for (size_t i = list.size(); i < wanted.size(); ++i) {
      added.push_back(wanted[i]);
      free = free && !uses(state, wanted[i]);
      Sharding to = state;
      to.axes[axis].insert(to.axes[axis].end(), added.begin(), added.end());
      if (free) result.push_back({to, 0});
      std::optional<Sharding> reduced = without(state, added);
      if (!reduced) continue;
      reduced->axes[axis] = to.axes[axis];
      result.push_back({*reduced, here * share(devices(mesh, added))});
    }
  }
  return result;
}

ReshardPaths::Path ReshardPaths::find(const TensorView& tensor, const Sharding& from,
                                      const Sharding& to) const {
  Path path;
  if (samePlacement(from, to)) return path;
  const DeviceMesh& mesh = fusion_.meshes.at(static_cast<size_t>(to.mesh));
  struct Node {
    Sharding state;
    int previous;
    double bytes;
    int steps;
  };
  std::vector<Node> nodes{{from, -1, 0, 0}};
  using Entry = std::tuple<double, int, int>;  // bytes, steps, node: earlier found first
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  queue.emplace(0.0, 0, 0);
  std::map<Key, bool> done;
  const Key goal = keyOf(to);
  while (!queue.empty()) {
    auto [bytes, steps, index] = queue.top();
    queue.pop();
    Sharding state = nodes[static_cast<size_t>(index)].state;
    Key key = keyOf(state);
    if (done[key]) continue;
    done[key] = true;
    if (key == goal) {
      for (int n = index; n > 0; n = nodes[static_cast<size_t>(n)].previous) {
        path.states.push_back(nodes[static_cast<size_t>(n)].state);
      }
      std::reverse(path.states.begin(), path.states.end());
      path.states.back() = to;
      path.bytes = bytes;
      return path;
    }
    for (Edge& edge : edges(tensor, state, to, mesh)) {
      if (done.count(keyOf(edge.to)) != 0) continue;
      nodes.push_back({std::move(edge.to), index, bytes + edge.bytes, steps + 1});
      queue.emplace(bytes + edge.bytes, steps + 1, static_cast<int>(nodes.size()) - 1);
    }
  }
  path.possible = false;
  return path;
}

Sharding resolved(Sharding sharding) {
  sharding.partial.clear();
  return sharding;
}

Sharding replicated(int mesh, size_t rank) {
  Sharding sharding;
  sharding.mesh = mesh;
  sharding.axes.resize(rank);
  return sharding;
}

}  // namespace heddle
