#include "ir/segment/join_independent.h"

#include <algorithm>
#include <boost/dynamic_bitset.hpp>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include "ir/analysis/axis_map.h"
#include "ir/base/check.h"
#include "ir/graph/print_values.h"

namespace heddle {
namespace {

// A kernel is compared only with this number of earlier groups: the last ones that it may join.
constexpr size_t kMostOpenLaunches = 4;

// The facts about one group that decide which groups it may join.
struct Facts {
  bool candidate = false;             // a pointwise kernel that may share a launch
  std::vector<size_t> after;          // groups that must run before this group
  std::set<ValueId> reads;            // tensors with axes
  std::set<ValueId> memory;           // inputs of the fusion whose memory the group reads
  boost::dynamic_bitset<> waits_for;  // per collective: whether the group depends on it
  bool feeds_collective = false;      // a collective depends on the group, or the group is one
  bool feeds_library = false;         // a library call depends on the group
  bool allocates = false;             // stores a value in new memory
  bool reads_results = false;         // reads a result of another group
  bool stores_temporary = false;      // stores a value that the fusion does not return
  MeshId mesh = kNoMesh;
  std::string body;  // bodyOf() the group
};

// A group of the result: the old groups of which it consists, and facts about all of them together.
struct Unit {
  std::vector<size_t> groups;
  std::set<std::string> bodies;
  std::set<ValueId> reads;
  size_t body_exprs = 0;  // expressions of all different bodies
  size_t held = 0;        // parts that need additional memory (kMostHeldParts)
};

bool isPointwise(const Fusion& fusion, const Group& group) {
  return group.kind == GroupKind::Kernel &&
         std::none_of(group.exprs.begin(), group.exprs.end(),
                      [&](ExprId id) { return fusion.expr(id).op->kind == OpKind::Reduction; });
}

bool meet(const std::set<ValueId>& a, const std::set<ValueId>& b) {
  const std::set<ValueId>& fewer = a.size() < b.size() ? a : b;
  const std::set<ValueId>& more = a.size() < b.size() ? b : a;
  return std::any_of(fewer.begin(), fewer.end(), [&](ValueId id) { return more.contains(id); });
}

// Returns a text that is equal for groups with the same body (ir/segment/join_independent.h).
std::string bodyOf(const Fusion& fusion, const Group& group) {
  std::unordered_map<ValueId, size_t> number;
  std::string text;
  const auto add = [&](ValueId id) {
    const auto [found, is_new] = number.try_emplace(id, number.size());
    text += fmt::format(" {}", found->second);
    if (!is_new) return;
    const Value& value = fusion.value(id);
    text += fmt::format(":{}", name(value.tensor.dtype));
    for (size_t axis = 0; !value.is_scalar && axis < value.tensor.rank(); ++axis) {
      text += isUnitAxis(value.tensor, axis) ? '1' : 'n';
    }
  };
  for (ExprId id : group.exprs) {
    const Expression& expr = fusion.expr(id);
    text += expr.op->name;
    for (const auto& [key, attr] : expr.attrs) {
      // Attributes of the type std::vector<Size> contain sizes. Parts with the same body may have
      // different sizes.
      if (!std::holds_alternative<std::vector<Size>>(attr)) text += ' ' + printAttr(attr);
    }
    for (ValueId input : expr.inputs) add(input);
    text += " ->";
    add(expr.outputs[0]);
    text += ';';
  }
  for (ValueId output : group.outputs) add(output);
  return text;
}

// Collects the facts about each group.
class FactFinder {
 public:
  explicit FactFinder(const SegmentedFusion& segmented)
      : segmented_(segmented),
        fusion_(segmented.fusion),
        is_output_(fusion_.outputFlags()),
        facts_(segmented.groups.size()) {}

  std::vector<Facts> run() {
    findBases();
    for (size_t g = 0; g < facts_.size(); ++g) describe(g);
    orderByMemory();
    followCollectives();
    return std::move(facts_);
  }

 private:
  const Group& group(size_t g) const { return segmented_.groups[g]; }

  std::optional<size_t> groupOf(ValueId id) const {
    const ExprId definition = fusion_.value(id).definition;
    if (definition == kNoExpr || segmented_.group_of[definition] < 0) return std::nullopt;
    return static_cast<size_t>(segmented_.group_of[definition]);
  }

  // Stores for each view the value whose memory it views, and for each other value the value
  // itself. Operands come before results, so a chain of views takes linear time.
  void findBases() {
    for (ValueId id : fusion_.values().ids()) bases_.push_back(id);
    for (ExprId id : fusion_.exprs().ids()) {
      const Expression& expr = fusion_.expr(id);
      const std::optional<size_t> g = groupOf(expr.outputs[0]);
      if (!g || group(*g).kind != GroupKind::Metadata) continue;
      bases_[expr.outputs[0]] = bases_[expr.inputs[0]];
    }
  }

  void describe(size_t g) {
    Facts& facts = facts_[g];
    facts.candidate = isPointwise(fusion_, group(g));
    for (ValueId id : group(g).inputs) {
      const Value& value = fusion_.value(id);
      if (const std::optional<size_t> from = groupOf(id)) facts.after.push_back(*from);
      if (value.is_scalar) continue;
      if (value.tensor.rank() > 0) facts.reads.insert(id);
      const ValueId base = bases_[id];
      if (fusion_.value(base).definition == kNoExpr)
        facts.memory.insert(base);
      else
        facts.reads_results = true;
    }
    if (!facts.candidate) return;
    facts.body = bodyOf(fusion_, group(g));
    const std::optional<Sharding>& sharding = fusion_.tensor(group(g).outputs.front()).sharding;
    if (sharding) facts.mesh = sharding->mesh;
    facts.allocates = true;
    facts.stores_temporary = std::any_of(group(g).outputs.begin(), group(g).outputs.end(),
                                         [&](ValueId id) { return !is_output_[id]; });
  }

  // A group that reads an input must run before the group that stores a result there. If the reader
  // comes later in the list, a pass of the host program moves it before the other group. Neither of
  // the two groups may then join other groups, because the pass could no longer move it.
  void orderByMemory() {
    std::map<ValueId, std::vector<size_t>> readers;
    for (size_t g = 0; g < facts_.size(); ++g) {
      if (group(g).kind == GroupKind::Metadata) continue;
      for (ValueId id : facts_[g].memory) readers[id].push_back(g);
    }
    std::vector<size_t> stored(facts_.size(), 0);  // results in reused inputs
    for (size_t i = 0; i < fusion_.outputs().size(); ++i) {
      const std::optional<OutputReuse>& reuse = fusion_.reuses()[i];
      const std::optional<size_t> writer = groupOf(bases_[fusion_.outputs()[i]]);
      if (!reuse || !writer) continue;
      ++stored[*writer];
      for (size_t reader : readers[reuse->input]) {
        if (reader < *writer) facts_[*writer].after.push_back(reader);
        if (reader > *writer) facts_[*writer].candidate = facts_[reader].candidate = false;
      }
    }
    for (size_t g = 0; g < facts_.size(); ++g) {
      facts_[g].allocates = facts_[g].allocates && stored[g] < group(g).outputs.size();
    }
  }

  void followCollectives() {
    std::vector<size_t> number(facts_.size(), 0);
    size_t collectives = 0;
    for (size_t g = 0; g < facts_.size(); ++g) {
      if (group(g).kind == GroupKind::Communication) number[g] = ++collectives;
    }
    for (size_t g = 0; g < facts_.size() && collectives > 0; ++g) {
      boost::dynamic_bitset<>& waits = facts_[g].waits_for;
      waits.resize(collectives);
      for (size_t before : facts_[g].after) waits |= facts_[before].waits_for;
      if (number[g] > 0) waits[number[g] - 1] = true;
    }
    for (size_t g = facts_.size(); g-- > 0;) {
      facts_[g].feeds_collective = facts_[g].feeds_collective || number[g] > 0;
      const bool is_library = group(g).kind == GroupKind::Library;
      for (size_t before : facts_[g].after) {
        Facts& facts = facts_[before];
        facts.feeds_collective = facts.feeds_collective || facts_[g].feeds_collective;
        facts.feeds_library = facts.feeds_library || facts_[g].feeds_library || is_library;
      }
    }
  }

  const SegmentedFusion& segmented_;
  const Fusion& fusion_;
  const IdVector<ValueId, bool> is_output_;
  IdVector<ValueId, ValueId> bases_;
  std::vector<Facts> facts_;
};

class IndependentJoiner {
 public:
  explicit IndependentJoiner(SegmentedFusion& segmented)
      : segmented_(segmented), facts_(FactFinder(segmented).run()), unit_of_(facts_.size()) {}

  void run() {
    for (size_t g = 0; g < facts_.size(); ++g) {
      if (facts_[g].candidate && join(g)) continue;
      unit_of_[g] = units_.size();
      units_.emplace_back();
      add(units_.back(), g, false);
      if (!facts_[g].candidate) continue;
      if (open_.size() == kMostOpenLaunches) open_.erase(open_.begin());
      open_.push_back(unit_of_[g]);
    }
    if (units_.size() < facts_.size()) rebuild();
  }

 private:
  const Group& group(size_t g) const { return segmented_.groups[g]; }

  // Adds the group to the last unit that accepts it, and returns true. Tries units with the same
  // body first. If no unit accepts the group, returns false, and stores the first reason, if there
  // is one, in Group::cuts.
  bool join(size_t g) {
    std::optional<std::pair<size_t, Apart>> refused;
    for (const bool same_body : {true, false}) {
      for (auto open = open_.rbegin(); open != open_.rend(); ++open) {
        Unit& unit = units_[*open];
        if (unit.bodies.contains(facts_[g].body) != same_body || !isIndependent(*open, g)) continue;
        const std::optional<Apart> why = whyApart(*open, g);
        if (why && !refused) refused = {*open, *why};
        if (why) continue;
        unit_of_[g] = *open;
        add(unit, g, *open + 1 < units_.size());
        return true;
      }
    }
    if (refused) {
      const ExprId other = group(units_[refused->first].groups.front()).exprs.front();
      segmented_.groups[g].cuts.push_back({kNoValue, other, std::string(text(refused->second))});
    }
    return false;
  }

  // Returns whether all groups on which `g` depends run before the unit.
  bool isIndependent(size_t unit, size_t g) const {
    return std::all_of(facts_[g].after.begin(), facts_[g].after.end(),
                       [&](size_t before) { return unit_of_[before] < unit; });
  }

  std::optional<Apart> whyApart(size_t u, size_t g) const {
    const Unit& unit = units_[u];
    const Facts& facts = facts_[g];
    const Facts& first = facts_[unit.groups.front()];
    if (meet(unit.reads, facts.reads)) return Apart::SharedTensor;
    if (facts.mesh != first.mesh) return Apart::Devices;
    if (facts.feeds_collective || first.feeds_collective) return Apart::Delay;
    if (facts.waits_for != first.waits_for) return Apart::Collectives;
    if (facts.waits_for.any() && (facts.feeds_library || first.feeds_library))
      return Apart::Overlap;
    size_t between = 0;
    for (size_t i = units_.size(); i-- > u + 1;) {
      const size_t other = units_[i].groups.front();
      if (group(other).kind == GroupKind::Metadata) continue;
      if (facts_[other].feeds_collective) return Apart::Delay;
      if (++between > kMostGroupsBetween) return Apart::Distance;
    }
    if (unit.held + (isHeld(facts, between > 0) ? 1 : 0) > kMostHeldParts) return Apart::Memory;
    const bool full = unit.groups.size() >= kMostParts ||
                      (!unit.bodies.contains(facts.body) && !hasRoomForBody(unit, g));
    return full ? std::optional(Apart::Full) : std::nullopt;
  }

  bool hasRoomForBody(const Unit& unit, size_t g) const {
    return unit.bodies.size() < kMostBodies &&
           unit.body_exprs + group(g).exprs.size() <= kMostBodyExprs;
  }

  static bool isHeld(const Facts& facts, bool moves) {
    return (facts.allocates && facts.reads_results) || (facts.stores_temporary && moves);
  }

  void add(Unit& unit, size_t g, bool moves) {
    const Facts& facts = facts_[g];
    unit.groups.push_back(g);
    if (unit.bodies.insert(facts.body).second) unit.body_exprs += group(g).exprs.size();
    unit.reads.insert(facts.reads.begin(), facts.reads.end());
    unit.held += isHeld(facts, moves) ? 1 : 0;
  }

  void rebuild() {
    std::vector<Group> groups;
    for (const Unit& unit : units_) {
      Group made = std::move(segmented_.groups[unit.groups.front()]);
      if (unit.groups.size() > 1) made.parts.push_back(made.exprs);
      for (size_t i = 1; i < unit.groups.size(); ++i) {
        append(made, std::move(segmented_.groups[unit.groups[i]]));
      }
      std::sort(made.exprs.begin(), made.exprs.end());
      if (unit.groups.size() > 1) {
        std::erase_if(made.cuts, [](const Cut& cut) { return cut.other == kNoExpr; });
      }
      for (ExprId id : made.exprs) segmented_.group_of[id] = static_cast<int>(groups.size());
      groups.push_back(std::move(made));
    }
    segmented_.groups = std::move(groups);
  }

  void append(Group& made, Group part) const {
    const Fusion& fusion = segmented_.fusion;
    made.joins.push_back(fmt::format("%{} and %{} are independent and share a launch",
                                     fusion.value(made.outputs.front()).name,
                                     fusion.value(part.outputs.front()).name));
    for (ValueId id : part.inputs) {
      if (std::find(made.inputs.begin(), made.inputs.end(), id) == made.inputs.end()) {
        made.inputs.push_back(id);
      }
    }
    made.parts.push_back(part.exprs);
    std::ranges::move(part.exprs, std::back_inserter(made.exprs));
    std::ranges::move(part.outputs, std::back_inserter(made.outputs));
    std::ranges::move(part.joins, std::back_inserter(made.joins));
    std::ranges::move(part.cuts, std::back_inserter(made.cuts));
  }

  SegmentedFusion& segmented_;
  const std::vector<Facts> facts_;
  std::vector<size_t> unit_of_;  // per group
  std::vector<Unit> units_;      // in the order of execution
  std::vector<size_t> open_;     // units that a later kernel may join
};

}  // namespace

std::string_view text(Apart why) {
  switch (why) {
    case Apart::SharedTensor:
      return "both read the same tensor";
    case Apart::Devices:
      return "they run on different devices";
    case Apart::Delay:
      return "a collective could start later";
    case Apart::Collectives:
      return "they depend on different collectives";
    case Apart::Overlap:
      return "a library call that may overlap with a collective reads a result";
    case Apart::Distance:
      return "too many groups run between them";
    case Apart::Memory:
      return "too many values would be in memory at the same time";
    case Apart::Full:
      return "the launch has as many parts as it may have, or as many different bodies";
  }
  return {};
}

void joinIndependent(SegmentedFusion& segmented) { IndependentJoiner(segmented).run(); }

}  // namespace heddle
