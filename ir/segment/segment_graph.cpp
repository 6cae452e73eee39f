#include "ir/segment/segment_graph.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/pending/disjoint_sets.hpp>
#include <queue>

#include "ir/analysis/kernel_rules.h"
#include "ir/base/check.h"

namespace heddle {
namespace {

// Vertices are expressions. An edge leads from a producer to a reader.
using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS>;

Graph dataflow(const Fusion& fusion) {
  Graph graph(fusion.exprs().size());
  for (ExprId user : fusion.exprs().ids()) {
    if (isHostScalar(fusion, fusion.expr(user))) continue;
    for (ValueId input : fusion.expr(user).inputs) {
      ExprId from = fusion.value(input).definition;
      if (from == kNoExpr || fusion.value(input).is_scalar) continue;
      boost::add_edge(from.index(), user.index(), graph);
    }
  }
  return graph;
}

}  // namespace

// Keeps a topological order of the groups while they merge (after Pearce and Kelly, "A dynamic
// topological sort algorithm for directed acyclic graphs", 2007). Let two groups a and b merge,
// with a before b in the order. The merge moves only groups between them that depend on a, or on
// which b depends.
struct SegmentGraph::Impl {
  explicit Impl(const Fusion& fusion) : graph(dataflow(fusion)), sets(rank.data(), parent.data()) {
    size_t count = fusion.exprs().size();
    rank.assign(count, 0);
    parent.assign(count, 0);
    sets = Sets(rank.data(), parent.data());
    members.resize(count);
    mark.assign(count, 0);
    mark_before.assign(count, 0);
    for (ExprId id : fusion.exprs().ids()) {
      const size_t i = id.index();
      sets.make_set(i);
      in_group.push_back(!isHostScalar(fusion, fusion.expr(id)));
      members[i] = {id};
      position.push_back(i);
    }
  }

  size_t find(size_t expr) { return sets.find_set(expr); }

  template <class Visit>
  void forSuccessors(size_t group, Visit&& visit) {
    for (ExprId member : members[group]) {
      auto [begin, end] = boost::out_edges(member.index(), graph);
      for (auto edge = begin; edge != end; ++edge) {
        size_t next = find(boost::target(*edge, graph));
        if (next != group) visit(next);
      }
    }
  }

  template <class Visit>
  void forPredecessors(size_t group, Visit&& visit) {
    for (ExprId member : members[group]) {
      auto [begin, end] = boost::in_edges(member.index(), graph);
      for (auto edge = begin; edge != end; ++edge) {
        size_t next = find(boost::source(*edge, graph));
        if (next != group) visit(next);
      }
    }
  }

  size_t edgesAfter(size_t group) const {
    size_t edges = 0;
    for (ExprId member : members[group]) edges += boost::out_degree(member.index(), graph);
    return edges;
  }

  size_t edgesBefore(size_t group) const {
    size_t edges = 0;
    for (ExprId member : members[group]) edges += boost::in_degree(member.index(), graph);
    return edges;
  }

  // Returns whether a third group depends on `a`, and `b` depends on this group. Searches forward
  // from `a` and backward from `b` at the same time, until one search is complete. The next step is
  // always in the search that has followed fewer edges. The reason: a value with thousands of
  // readers usually makes only one of the two searches long.
  bool isBetween(size_t a, size_t b) {
    ++epoch;
    std::vector<size_t> forward{a}, backward{b};
    size_t edges_after = edgesAfter(a), edges_before = edgesBefore(b);
    bool found = false;
    while (!found && !forward.empty() && !backward.empty()) {
      const bool is_forward = edges_after < edges_before;
      std::vector<size_t>& stack = is_forward ? forward : backward;
      const size_t group = stack.back();
      stack.pop_back();
      const auto visit = [&](size_t next) {
        const size_t end = is_forward ? b : a;
        if (next == end) found = found || group != (is_forward ? a : b);
        const bool outside =
            is_forward ? position[next] >= position[b] : position[next] <= position[a];
        size_t& seen = is_forward ? mark[next] : mark_before[next];
        if (outside || seen == epoch) return;
        seen = epoch;
        stack.push_back(next);
      };
      if (is_forward) forSuccessors(group, visit);
      if (!is_forward) forPredecessors(group, visit);
      if (stack.empty()) break;
      if (is_forward) edges_after += edgesAfter(stack.back());
      if (!is_forward) edges_before += edgesBefore(stack.back());
    }
    return found;
  }

  // Returns the groups that depend on `a` and precede `b` in the order.
  std::vector<size_t> between(size_t a, size_t b) {
    ++epoch;
    std::vector<size_t> found;
    std::vector<size_t> stack{a};
    while (!stack.empty()) {
      size_t group = stack.back();
      stack.pop_back();
      forSuccessors(group, [&](size_t next) {
        if (position[next] >= position[b] || mark[next] == epoch) return;
        mark[next] = epoch;
        found.push_back(next);
        stack.push_back(next);
      });
    }
    return found;
  }

  // Returns the groups on which `b` depends and that follow `a` in the order.
  std::vector<size_t> needed(size_t a, size_t b) {
    ++epoch;
    std::vector<size_t> found;
    std::vector<size_t> stack{b};
    while (!stack.empty()) {
      size_t group = stack.back();
      stack.pop_back();
      forPredecessors(group, [&](size_t next) {
        if (position[next] <= position[a] || mark[next] == epoch) return;
        mark[next] = epoch;
        found.push_back(next);
        stack.push_back(next);
      });
    }
    return found;
  }

  // Moves the groups `early` before the merged group and the groups `late` after it. All of them
  // share the positions that they had before: early groups get the lowest positions, late groups
  // the highest. Early groups therefore move only towards the front, and late groups only towards
  // the back. The order stays correct for all other groups.
  void reorder(std::vector<size_t> early, size_t merged, std::vector<size_t> late, size_t from,
               size_t to) {
    std::vector<size_t> free{from, to};
    for (std::vector<size_t>* groups : {&early, &late}) {
      std::sort(groups->begin(), groups->end(),
                [&](size_t x, size_t y) { return position[x] < position[y]; });
      for (size_t group : *groups) free.push_back(position[group]);
    }
    std::sort(free.begin(), free.end());
    for (size_t i = 0; i < early.size(); ++i) position[early[i]] = free[i];
    position[merged] = free[early.size()];
    for (size_t i = 0; i < late.size(); ++i) position[late[i]] = free[early.size() + 2 + i];
  }

  bool merge(size_t a, size_t b) {
    if (position[a] > position[b]) std::swap(a, b);
    if (isBetween(a, b)) return false;
    std::vector<size_t> late = between(a, b);
    std::vector<size_t> early = needed(a, b);
    size_t from = position[a];
    size_t to = position[b];
    sets.link(a, b);
    size_t merged = find(a);
    size_t other = merged == a ? b : a;
    std::vector<ExprId> all;
    std::merge(members[a].begin(), members[a].end(), members[b].begin(), members[b].end(),
               std::back_inserter(all));
    members[merged] = std::move(all);
    members[other].clear();
    reorder(std::move(early), merged, std::move(late), from, to);
    return true;
  }

  using Sets = boost::disjoint_sets<size_t*, size_t*>;
  std::vector<size_t> rank;
  std::vector<size_t> parent;
  Graph graph;
  Sets sets;
  std::vector<bool> in_group;
  // A group is represented by one of its expressions, whose id is the id of the group.
  std::vector<std::vector<ExprId>> members;  // per representative
  std::vector<size_t> position;              // position of each representative in the order
  std::vector<size_t> mark;         // the number of the last search that has found the group
  std::vector<size_t> mark_before;  // the same for backward searches of isBetween()
  size_t epoch = 0;
};

SegmentGraph::SegmentGraph(const Fusion& fusion) : impl_(std::make_unique<Impl>(fusion)) {}
SegmentGraph::~SegmentGraph() = default;

ExprId SegmentGraph::groupOf(ExprId expr) { return ExprId(impl_->find(expr.index())); }

const std::vector<ExprId>& SegmentGraph::members(ExprId group) const {
  return impl_->members[group.index()];
}

bool SegmentGraph::merge(ExprId a, ExprId b) {
  HEDDLE_CHECK(groupOf(a) == a && groupOf(b) == b && a != b,
               "merge({}, {}) needs two different groups", a, b);
  return impl_->merge(a.index(), b.index());
}

// The order is computed only from the final groups, so that it does not depend on the order of
// merges.
std::vector<ExprId> SegmentGraph::order() {
  std::vector<size_t> waits(impl_->members.size(), 0);
  auto first = [&](size_t group) { return impl_->members[group].front(); };
  auto later = [&](size_t a, size_t b) { return first(a) > first(b); };
  std::priority_queue<size_t, std::vector<size_t>, decltype(later)> ready(later);
  std::vector<size_t> groups;
  for (size_t i = 0; i < impl_->members.size(); ++i) {
    if (impl_->find(i) == i && impl_->in_group[i]) groups.push_back(i);
  }
  for (size_t group : groups) {
    impl_->forSuccessors(group, [&](size_t next) { ++waits[next]; });
  }
  for (size_t group : groups) {
    if (waits[group] == 0) ready.push(group);
  }
  std::vector<ExprId> order;
  while (!ready.empty()) {
    size_t group = ready.top();
    ready.pop();
    order.push_back(ExprId(group));
    impl_->forSuccessors(group, [&](size_t next) {
      if (--waits[next] == 0) ready.push(next);
    });
  }
  HEDDLE_CHECK(order.size() == groups.size(), "only {} of {} groups can run, because of a cycle",
               order.size(), groups.size());
  return order;
}

}  // namespace heddle
