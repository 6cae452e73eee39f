#include "ir/passes/sharding/reshard_path.h"

#include <algorithm>
#include <queue>
#include <set>
#include <tuple>

#include "ir/base/check.h"
#include "ir/graph/size_scalars.h"
#include "ir/sizes/size_reads.h"
#include "ir/types/mesh_relations.h"

namespace heddle {
namespace {

using Key = std::vector<int>;

// Returns a key of the sharding. If two shardings have equal keys, every rank holds the same data
// with both.
Key keyOf(const Sharding& state) {
  Key key{state.mesh.number()};
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
  return static_cast<double>(devicesOf(mesh, axes));
}

bool isPrefix(const std::vector<MeshAxis>& list, const std::vector<MeshAxis>& of) {
  return list.size() <= of.size() && std::equal(list.begin(), list.end(), of.begin());
}

// Returns the fraction of a buffer that each device of a collective sends in a ring algorithm.
// `team` is the number of devices.
double share(double team) { return (team - 1) / team; }

// Returns the sharding without the partial entries over the mesh axes `axes`. Returns nullopt if
// one of these axes has no partial entry, or if the entries have different reductions.
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

// Returns all non-empty subsets of the partial axes. The first subset contains all axes.
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
  sizes_ = defaultSizes(fusion);
  for (const Value& value : fusion.values()) {
    HEDDLE_USER_CHECK(!value.tensor.sharding || !value.tensor.sharding->stream,
                      "%{} has a stream split, which no step adds; was noteStreamSplits skipped?",
                      value.name);
  }
}

double ReshardPaths::bytes(const TensorView& tensor) const {
  double total = static_cast<double>(sizeOf(tensor.dtype));
  for (const IterDomain& axis : tensor.domain) total *= nominal(axis.extent);
  return total;
}

double ReshardPaths::nonemptyBytes(const TensorView& tensor) const {
  double total = static_cast<double>(sizeOf(tensor.dtype));
  for (const IterDomain& axis : tensor.domain) total *= std::max(nominal(axis.extent), 1.0);
  return total;
}

// Returns the extent with the default sizes of the fusion. Symbols without a default count as 4096
// (kNominalExtent). If the extent then cannot be computed, for example because it exceeds 64 bits,
// the function tries smaller values for these symbols. If all of them fail, it returns 4096.
double ReshardPaths::nominal(const Size& extent) const {
  for (int64_t each = kNominalExtent; each > 1; each /= 8) {
    const auto lookup = [&](const std::string& symbol) -> std::optional<int64_t> {
      const auto found = sizes_.find(symbol);
      return found == sizes_.end() ? each : found->second;
    };
    try {
      return static_cast<double>(extent.evaluate(lookup));
    } catch (const UserError&) {
      continue;
    }
  }
  return static_cast<double>(kNominalExtent);
}

void ReshardPaths::noteRead(const TensorView& tensor) const {
  for (const IterDomain& axis : tensor.domain) {
    try {
      SizeReads::note(axis.extent, axis.extent.evaluate(lookupIn(sizes_)));
    } catch (const UserError&) {
      SizeReads::noteOther();
    }
  }
}

std::optional<int64_t> ReshardPaths::byDefaults(const Size& extent) const {
  std::vector<std::string> symbols;
  extent.collectSymbols(symbols);
  for (const std::string& symbol : symbols) {
    if (sizes_.count(symbol) == 0) return std::nullopt;
  }
  return extent.evaluate(lookupIn(sizes_));
}

const DeviceMesh& ReshardPaths::meshOf(const Sharding& state) const {
  return fusion_.meshes.at(state.mesh);
}

// Returns the fraction of a tensor that one device holds.
double ReshardPaths::localShare(const Sharding& state) const {
  double part = 1;
  for (const std::vector<MeshAxis>& list : state.axes) part /= devices(meshOf(state), list);
  return part;
}

// Returns the bytes that one device sends, divided by the bytes of the tensor. Returns -1 if the
// change needs more than one step.
double ReshardPaths::cost(const TensorView& tensor, const Sharding& from,
                          const Sharding& to) const {
  const ReshardStep step = stepBetween(from, to, tensor, fusion_.meshes);
  const double team = devices(step.mesh, step.team);
  switch (step.kind) {
    case ReshardStep::Kind::Same:
    case ReshardStep::Kind::Relayout:
    case ReshardStep::Kind::Slice:
      return 0;
    case ReshardStep::Kind::Gather:
      return localShare(to) * share(team);
    case ReshardStep::Kind::AllReduce:
      return 2 * localShare(from) * share(team);
    case ReshardStep::Kind::ReduceScatter:
    case ReshardStep::Kind::AllToAll:
      return localShare(from) * share(team);
    case ReshardStep::Kind::ScatterFrom:
      return localShare(from) * (step.root_apart ? 1 : share(team));
    case ReshardStep::Kind::Transfer:
    case ReshardStep::Kind::Broadcast:
    case ReshardStep::Kind::GatherTo:
      return localShare(from);
    case ReshardStep::Kind::Compound:
      break;
  }
  return -1;
}

namespace {

void addGathers(const Sharding& state, std::vector<Sharding>& to) {
  for (size_t axis = 0; axis < state.axes.size(); ++axis) {
    for (size_t keep = 0; keep < state.axes[axis].size(); ++keep) {
      to.push_back(state);
      to.back().axes[axis].resize(keep);
    }
  }
}

// Adds the sharding after an all-to-all, for each tensor axis whose innermost mesh axes are
// `added`. The all-to-all moves these mesh axes from this tensor axis to the end of the list of
// tensor axis `axis`.
void addExchanges(const Sharding& state, size_t axis, const std::vector<MeshAxis>& added,
                  std::vector<Sharding>& to) {
  for (size_t other = 0; other < state.axes.size(); ++other) {
    const std::vector<MeshAxis>& list = state.axes[other];
    if (other == axis || list.size() < added.size()) continue;
    if (!std::equal(added.rbegin(), added.rend(), list.rbegin())) continue;
    to.push_back(state);
    to.back().axes[other].resize(list.size() - added.size());
    to.back().axes[axis].insert(to.back().axes[axis].end(), added.begin(), added.end());
  }
}

// Adds the shardings after steps that split the axis further: slices, reduce-scatters and
// all-to-alls. `wanted` is the list of mesh axes that split this axis in the goal. Each step
// appends one or more of the mesh axes that are still missing, in the order of `wanted`. Adds
// nothing if `wanted` does not begin with the mesh axes that split the axis now.
void addCuts(const Sharding& state, size_t axis, const std::vector<MeshAxis>& wanted,
             std::vector<Sharding>& to) {
  const std::vector<MeshAxis>& list = state.axes[axis];
  if (!isPrefix(list, wanted)) return;
  std::vector<MeshAxis> added;
  bool free = true;  // true: `state` uses none of the added mesh axes, so a slice is enough
  for (size_t i = list.size(); i < wanted.size(); ++i) {
    added.push_back(wanted[i]);
    free = free && !uses(state, wanted[i]);
    Sharding cut = state;
    cut.axes[axis].insert(cut.axes[axis].end(), added.begin(), added.end());
    if (free) to.push_back(cut);
    if (std::optional<Sharding> reduced = without(state, added)) {
      reduced->axes[axis] = cut.axes[axis];
      to.push_back(std::move(*reduced));
    }
    addExchanges(state, axis, added, to);
  }
}

}  // namespace

// Returns candidates for the next sharding. cost() rejects candidates that need more than one step.
std::vector<Sharding> ReshardPaths::neighbours(const Sharding& state, const Sharding& goal) const {
  std::vector<Sharding> to;
  addGathers(state, to);
  for (const std::vector<MeshAxis>& team : subsets(state)) {
    if (std::optional<Sharding> reduced = without(state, team)) to.push_back(std::move(*reduced));
  }
  const bool here = state.mesh == goal.mesh;
  const bool alike = here || sameAxes(meshOf(state), meshOf(goal));
  for (size_t axis = 0; alike && axis < state.axes.size(); ++axis) {
    addCuts(state, axis, goal.axes[axis], to);
  }
  if (here) return to;
  to.push_back(goal);
  if (alike) {
    to.push_back(state);
    to.back().mesh = goal.mesh;
  }
  to.push_back(replicated(goal.mesh, state.axes.size()));
  return to;
}

// Runs Dijkstra's algorithm on the graph whose vertices are shardings and whose edges are single
// steps.
ReshardPaths::Path ReshardPaths::find(const TensorView& tensor, const Sharding& from,
                                      const Sharding& to) const {
  Path path;
  if (samePlacement(from, to)) return path;
  struct Node;
  using NodeId = Id<Node>;
  struct Node {
    Sharding state;
    NodeId previous;  // invalid for the start node
  };
  IdVector<NodeId, Node> nodes;
  using Entry = std::tuple<double, int, NodeId>;  // sum of cost(), steps, node
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  queue.emplace(0.0, 0, nodes.push_back({from, NodeId()}));
  std::set<Key> done;
  const Key goal = keyOf(to);
  while (!queue.empty()) {
    auto [share, steps, index] = queue.top();
    queue.pop();
    const Sharding state = nodes[index].state;
    Key key = keyOf(state);
    if (!done.insert(key).second) continue;
    if (key == goal) {
      for (NodeId n = index; nodes[n].previous.valid(); n = nodes[n].previous) {
        path.states.push_back(nodes[n].state);
      }
      std::reverse(path.states.begin(), path.states.end());
      path.states.back() = to;
      path.bytes = share * bytes(tensor);
      return path;
    }
    for (Sharding& next : neighbours(state, to)) {
      if (done.count(keyOf(next)) != 0) continue;
      const double more = cost(tensor, state, next);
      if (more < 0) continue;
      queue.emplace(share + more, steps + 1, nodes.push_back({std::move(next), index}));
    }
  }
  path.possible = false;
  return path;
}

std::vector<ReshardPaths::Path> ReshardPaths::alternatives(const TensorView& tensor,
                                                           const Sharding& from, const Sharding& to,
                                                           size_t most) const {
  const Path best = find(tensor, from, to);
  std::vector<Path> others;
  std::set<Key> seen{keyOf(from)};
  if (!best.states.empty()) seen.insert(keyOf(best.states.front()));
  for (const Sharding& first : neighbours(from, to)) {
    const double more = cost(tensor, from, first);
    if (more < 0 || !seen.insert(keyOf(first)).second) continue;
    Path path = find(tensor, first, to);
    if (!path.possible) continue;
    path.bytes += more * bytes(tensor);
    path.states.insert(path.states.begin(), first);
    others.push_back(std::move(path));
  }
  std::stable_sort(others.begin(), others.end(),
                   [](const Path& a, const Path& b) { return a.bytes < b.bytes; });
  if (others.size() > most) others.resize(most);
  return others;
}

std::string describeStep(const ReshardStep& step) {
  std::string text(name(step.kind));
  if (step.joined >= 0) text += fmt::format(" from axis {} to {}", step.joined, step.axis);
  if (step.joined < 0 && step.axis >= 0) text += fmt::format(" of axis {}", step.axis);
  std::vector<std::string_view> axes;
  for (MeshAxis axis : step.team) axes.push_back(name(axis));
  if (!axes.empty()) text += fmt::format(" over {}", fmt::join(axes, ", "));
  if (step.root >= 0) text += fmt::format(" in {}", step.mesh.str());
  return text;
}

Sharding resolved(Sharding sharding) {
  sharding.partial.clear();
  return sharding;
}

Sharding replicated(MeshId mesh, size_t rank) {
  Sharding sharding;
  sharding.mesh = mesh;
  sharding.axes.resize(rank);
  return sharding;
}

}  // namespace heddle
