#include "ir/segment/segment_graph.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/pending/disjoint_sets.hpp>
#include <queue>

#include "ir/analysis/kernel_rules.h"
#include "ir/base/error.h"

namespace heddle {
namespace {

// Vertices are expressions. An edge leads from a producer to a reader.
using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;

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

// Keeps a topological order of the groups while they are merged. The algorithm follows Pearce and
// Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", 2007. A merge visits
// and moves only the groups between the two merged groups in this order.
struct SegmentGraph::Impl {
  explicit Impl(const Fusion& fusion) : graph(dataflow(fusion)), sets(rank.data(), parent.data()) {
    size_t count = fusion.exprs().size();
    rank.assign(count, 0);
    parent.assign(count, 0);
    sets = Sets(rank.data(), parent.data());
    members.resize(count);
    mark.assign(count, 0);
    for (ExprId id : fusion.exprs().ids()) {
      const size_t i = id.index();
      sets.make_set(i);
      in_group.push_back(!isHostScalar(fusion, fusion.expr(id)));
      members[i] = {id};
      position.push_back(i);
      at.push_back(i);
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

  // Returns the groups that depend on `a` and precede `b` in the order. Sets `cycle` to true if `b`
  // depends on one of these groups.
  std::vector<size_t> between(size_t a, size_t b, bool& cycle) {
    ++epoch;
    std::vector<size_t> found;
    std::vector<size_t> stack{a};
    while (!stack.empty() && !cycle) {
      size_t group = stack.back();
      stack.pop_back();
      forSuccessors(group, [&](size_t next) {
        if (next == b && group != a) cycle = true;
        if (position[next] >= position[b] || mark[next] == epoch) return;
        mark[next] = epoch;
        found.push_back(next);
        stack.push_back(next);
      });
    }
    return found;
  }

  // Reorders the groups at the positions `from` to `to`. The new order is: the groups that do not
  // depend on the merged group, then the merged group, then the groups in `late`, which depend on
  // it.
  void reorder(size_t from, size_t to, size_t merged, std::vector<size_t> late) {
    std::sort(late.begin(), late.end(),
              [&](size_t x, size_t y) { return position[x] < position[y]; });
    std::vector<size_t> stretch;
    for (size_t i = from + 1; i < to; ++i) {
      if (at[i] != kNobody && mark[at[i]] != epoch) stretch.push_back(at[i]);
    }
    stretch.push_back(merged);
    stretch.insert(stretch.end(), late.begin(), late.end());
    for (size_t i = from; i <= to; ++i) at[i] = kNobody;
    size_t next = to + 1 - stretch.size();
    for (size_t group : stretch) {
      at[next] = group;
      position[group] = next++;
    }
  }

  bool merge(size_t a, size_t b) {
    if (position[a] > position[b]) std::swap(a, b);
    bool cycle = false;
    std::vector<size_t> late = between(a, b, cycle);
    if (cycle) return false;
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
    reorder(from, to, merged, std::move(late));
    return true;
  }

  using Sets = boost::disjoint_sets<size_t*, size_t*>;
  static constexpr size_t kNobody = static_cast<size_t>(-1);
  std::vector<size_t> rank;
  std::vector<size_t> parent;
  Graph graph;
  Sets sets;
  std::vector<bool> in_group;
  std::vector<std::vector<ExprId>> members;  // per group id: its expressions
  std::vector<size_t> position;              // per group id: its position in the order
  std::vector<size_t> at;                    // per position: the group id, or kNobody
  std::vector<int> mark;                     // the last epoch in which between() found the group
  int epoch = 0;                             // number of calls of between()
};

SegmentGraph::SegmentGraph(const Fusion& fusion) : impl_(std::make_unique<Impl>(fusion)) {}
SegmentGraph::~SegmentGraph() = default;

ExprId SegmentGraph::groupOf(ExprId expr) { return ExprId(impl_->find(expr.index())); }

const std::vector<ExprId>& SegmentGraph::members(ExprId group) const {
  return impl_->members[group.index()];
}

bool SegmentGraph::merge(ExprId a, ExprId b) {
  HEDDLE_CHECK(groupOf(a) == a && groupOf(b) == b && a != b, "merge of {} and {}", a, b);
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
