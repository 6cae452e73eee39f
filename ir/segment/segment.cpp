#include "ir/segment/segment.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <unordered_map>

#include "ir/analysis/kernel_rules.h"
#include "ir/base/check.h"
#include "ir/segment/choose_cats.h"
#include "ir/segment/choose_views.h"
#include "ir/segment/group_kind.h"
#include "ir/segment/join_independent.h"
#include "ir/segment/library_calls.h"
#include "ir/segment/recompute.h"
#include "ir/segment/segment_graph.h"
#include "ir/segment/settle_orders.h"
#include "ir/segment/siblings.h"

namespace heddle {
namespace {

// The largest number of expressions in a kernel, or in each of its parts (Group::parts). Compile
// time grows faster than linearly with this number, and long kernels need too many registers.
constexpr size_t kMaxKernelExprs = 256;

class Segmenter {
 public:
  // `copies` are expressions that compute a value again for their reader (ir/segment/recompute.h).
  // `views` are the broadcasts and expands that are views (ir/segment/choose_views.h). `cats` are
  // the cats that become groups of their own.
  explicit Segmenter(const Fusion& fusion, std::set<ExprId> copies = {},
                     const std::set<ExprId>& views = {}, std::vector<Cat> cats = {})
      : fusion_(fusion),
        copies_(std::move(copies)),
        cats_(std::move(cats)),
        rules_(fusion),
        readers_(readersOf(fusion)),
        graph_(std::make_unique<SegmentGraph>(fusion)) {
    for (const Expression& expr : fusion.exprs()) {
      kinds_.push_back(isHostScalar(fusion, expr) ? GroupKind::Metadata : kindOf(fusion, expr));
    }
    for (ExprId view : views) kinds_[view] = GroupKind::Metadata;
  }

  // The order of these steps matters. Attentions and cats come first, because kernels must not
  // absorb their expressions. Next, kernels are joined with kernels that read their results,
  // because such a join removes a stored value. Then kernels that only read the same value are
  // joined, which saves less. Inputs, outputs and reasons come last, because they need the final
  // groups.
  SegmentedFusion run(const SegmentOptions& options) {
    if (options.attention) takeAttentions(options);
    takeCats();
    for (ExprId id : fusion_.exprs().ids()) joinProducers(id);
    joinAgain();
    const auto is_kernel = [this](ExprId id) { return isKernel(id); };
    std::ranges::move(joinSiblings(fusion_, *graph_, rules_, readers_, is_kernel),
                      std::back_inserter(joins_));
    listGroups();
    reuseForwards(result_);
    fillBoundaries();
    for (ExprId id : fusion_.exprs().ids()) tellCuts(id);
    tellLoners();
    return std::move(result_);
  }

 private:
  bool isKernel(ExprId id) const {
    return kinds_[id] == GroupKind::Kernel && !isHostScalar(fusion_, fusion_.expr(id));
  }

  // Merges each attention into one group, which becomes a library call. An attention cannot be one
  // group if its operands depend on its results, directly or through other groups. In this case the
  // merging starts again without this attention.
  void takeAttentions(const SegmentOptions& options) {
    for (Attention& one : attentionsOf(fusion_)) {
      const std::string why = one.why_not.empty() ? options.attention(fusion_, one) : one.why_not;
      if (why.empty()) {
        attentions_.push_back(std::move(one));
      } else {
        stays(one, why);
      }
    }
    for (size_t i = 0; i < attentions_.size();) {
      if (mergeAll(attentions_[i++].exprs)) continue;
      stays(attentions_[--i], "its operands depend on its results");
      attentions_.erase(attentions_.begin() + static_cast<ptrdiff_t>(i));
      graph_ = std::make_unique<SegmentGraph>(fusion_);
      i = 0;
    }
    for (size_t i = 0; i < attentions_.size(); ++i) {
      for (ExprId id : attentions_[i].exprs) {
        kinds_[id] = GroupKind::Library;
        attention_of_.try_emplace(id, i);
      }
    }
  }

  // Merges each cat into one group. This always succeeds: no other group can be between two
  // expressions of a cat, because only the cat reads its intermediate values.
  void takeCats() {
    for (size_t i = 0; i < cats_.size(); ++i) {
      const bool merged = mergeAll(cats_[i].exprs);
      HEDDLE_CHECK(merged, "the cat of %{} is not one group", fusion_.value(cats_[i].result).name);
      for (ExprId id : cats_[i].exprs) {
        kinds_[id] = GroupKind::Cat;
        cat_of_.try_emplace(id, i);
      }
    }
  }

  void stays(const Attention& one, const std::string& why) {
    result_.notes.push_back(whatItIs(fusion_, one) + " is not one library call: " + why);
  }

  // Merges all expressions in `exprs` into one group. Each expression, in the order of the fusion,
  // is merged with the producers of its operands. Returns false if a group outside of `exprs` would
  // have to run between two of these expressions.
  bool mergeAll(const std::vector<ExprId>& exprs) {
    for (ExprId user : exprs) {
      for (ValueId input : fusion_.expr(user).inputs) {
        const ExprId producer = fusion_.value(input).definition;
        if (!std::binary_search(exprs.begin(), exprs.end(), producer)) continue;
        const ExprId a = graph_->groupOf(producer);
        const ExprId b = graph_->groupOf(user);
        if (a != b && !graph_->merge(a, b)) return false;
      }
    }
    return true;
  }

  const Attention* attentionOf(ExprId id) const {
    const auto found = attention_of_.find(id);
    return found == attention_of_.end() ? nullptr : &attentions_[found->second];
  }

  const Cat* catOf(ExprId id) const {
    const auto found = cat_of_.find(id);
    return found == cat_of_.end() ? nullptr : &cats_[found->second];
  }

  // Merges the group of `user` with the group of each operand, one after the other, if both
  // together can be one kernel.
  void joinProducers(ExprId user) {
    if (!isKernel(user)) return;
    for (ValueId input : fusion_.expr(user).inputs) {
      ExprId producer = fusion_.value(input).definition;
      if (producer == kNoExpr || !isKernel(producer)) continue;
      // A copy computes a value again for its reader. It must not join the kernel of the original,
      // and therefore joins no kernel of an operand that is not a copy.
      if (copies_.contains(user) && !copies_.contains(producer)) continue;
      ExprId a = graph_->groupOf(producer);
      ExprId b = graph_->groupOf(user);
      if (a == b) continue;
      std::string why = whyNotTogether(a, b);
      std::string link = fmt::format("%{} reads %{}", nameOf(user), fusion_.value(input).name);
      if (why.empty() && !graph_->merge(a, b)) why = "another group must run between the two";
      if (why.empty()) {
        joins_.emplace_back(user, link + " in the same iteration space");
      } else {
        refusals_[{producer, user}] = {why, sizesOf(producer, user)};
      }
    }
  }

  // Tries refused pairs again if one of their groups has grown since. For example, the kernel of a
  // pair could not store a value that another group reads. If this other group has joined the pair,
  // the kernel contains all readers, and need not store the value.
  void joinAgain() {
    const std::map<std::pair<ExprId, ExprId>, Refusal> refused = refusals_;
    for (const auto& [pair, refusal] : refused) {
      const auto [producer, user] = pair;
      if (sizesOf(producer, user) != refusal.sizes) joinProducers(user);
    }
  }

  std::pair<size_t, size_t> sizesOf(ExprId producer, ExprId user) {
    return {graph_->members(graph_->groupOf(producer)).size(),
            graph_->members(graph_->groupOf(user)).size()};
  }

  std::string whyNotTogether(ExprId a, ExprId b) {
    const std::vector<ExprId>& x = graph_->members(a);
    const std::vector<ExprId>& y = graph_->members(b);
    if (x.size() + y.size() > kMaxKernelExprs) {
      return fmt::format("the group is full ({} expressions at most)", kMaxKernelExprs);
    }
    std::vector<ExprId> both;
    std::merge(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(both));
    return rules_.violation(both);
  }

  void listGroups() {
    result_.fusion = fusion_;
    result_.group_of.assign(fusion_.exprs().size(), -1);
    for (ExprId id : neededGroups()) {
      Group group;
      group.exprs = graph_->members(id);
      group.kind = kinds_[group.exprs.front()];
      for (ExprId member : group.exprs) {
        result_.group_of[member] = static_cast<int>(result_.groups.size());
      }
      const Attention* attention = attentionOf(group.exprs.front());
      if (attention != nullptr) group.attention = *attention;
      const Cat* cat = catOf(group.exprs.front());
      if (cat != nullptr) group.cat = *cat;
      result_.groups.push_back(std::move(group));
    }
    for (auto& [user, reason] : joins_) {
      if (indexOf(user) >= 0) groupOf(user).joins.push_back(std::move(reason));
    }
  }

  // Returns the needed groups, in the order of execution. A group is needed if the fusion returns
  // one of its results, or if another needed group reads one. A group is not needed if, for
  // example, only the size of a result is used.
  std::vector<ExprId> neededGroups() {
    IdVector<ValueId, bool> needed(fusion_.values().size(), false);
    for (ValueId output : fusion_.outputs()) needed[output] = true;
    std::vector<ExprId> groups;
    const std::vector<ExprId> order = graph_->order();
    for (auto group = order.rbegin(); group != order.rend(); ++group) {
      const std::vector<ExprId>& members = graph_->members(*group);
      const bool is_needed = std::any_of(members.begin(), members.end(), [&](ExprId id) {
        const std::vector<ValueId>& outputs = fusion_.expr(id).outputs;
        return std::any_of(outputs.begin(), outputs.end(), [&](ValueId v) { return needed[v]; });
      });
      if (!is_needed) continue;
      groups.push_back(*group);
      for (ExprId id : members) {
        for (ValueId input : fusion_.expr(id).inputs) needed[input] = true;
      }
    }
    std::reverse(groups.begin(), groups.end());
    return groups;
  }

  Group& groupOf(ExprId id) { return result_.groups[indexOf(id)]; }

  bool isConstant(ValueId id) const {
    ExprId definition = fusion_.value(id).definition;
    return definition != kNoExpr && fusion_.expr(definition).op->kind == OpKind::Constant;
  }

  void fillBoundaries() {
    IdVector<ValueId, bool> is_output(fusion_.values().size(), false);
    for (ValueId output : fusion_.outputs()) is_output[output] = true;
    for (size_t g = 0; g < result_.groups.size(); ++g) {
      Group& group = result_.groups[g];
      std::set<ValueId> seen;
      for (ExprId id : group.exprs) {
        const Expression& expr = fusion_.expr(id);
        for (ValueId input : expr.inputs) {
          ExprId producer = fusion_.value(input).definition;
          bool inside = producer != kNoExpr && indexOf(producer) == static_cast<int>(g);
          if (!inside && !isConstant(input) && seen.insert(input).second) {
            group.inputs.push_back(input);
          }
        }
        for (ValueId output : expr.outputs) {
          const std::vector<ExprId>& readers = readers_[output];
          bool outside = std::any_of(readers.begin(), readers.end(), [&](ExprId user) {
            return indexOf(user) >= 0 && indexOf(user) != static_cast<int>(g);
          });
          if (outside || is_output[output]) group.outputs.push_back(output);
        }
      }
      const ValueId forward = group.attention ? group.attention->forward : kNoValue;
      if (forward != kNoValue && seen.insert(forward).second) group.inputs.push_back(forward);
    }
  }

  int indexOf(ExprId id) const { return result_.group_of[id]; }

  // Adds one reason to Group::cuts for each operand of `user` that another group computes.
  void tellCuts(ExprId user) {
    int to = indexOf(user);
    if (to < 0) return;
    for (ValueId input : fusion_.expr(user).inputs) {
      ExprId producer = fusion_.value(input).definition;
      if (producer == kNoExpr || indexOf(producer) < 0 || indexOf(producer) == to) continue;
      std::string why = whyCut(producer, user);
      if (told_.emplace(input, to, why).second) {
        groupOf(producer).cuts.push_back({input, user, std::move(why)});
      }
    }
  }

  std::string whyCut(ExprId producer, ExprId user) const {
    auto found = refusals_.find({producer, user});
    if (found != refusals_.end()) return found->second.why;
    if (const Cat* cat = catOf(user)) return placeIn(*cat, fusion_.expr(producer).outputs[0]);
    const ExprId other = isKernel(user) ? producer : user;
    if (const Cat* cat = catOf(other))
      return fmt::format("%{} is a cat", nameOf(cat->exprs.back()));
    if (const Attention* attention = attentionOf(other)) {
      return whatItIs(fusion_, *attention) + " is a library call";
    }
    return whatItIs(fusion_, fusion_.expr(other), kinds_[other]);
  }

  // Returns a text that states how the value becomes a piece of the cat.
  std::string placeIn(const Cat& cat, ValueId value) const {
    const std::string& result = fusion_.value(cat.result).name;
    const auto piece = std::find_if(cat.pieces.begin(), cat.pieces.end(),
                                    [&](const Cat::Piece& each) { return each.value == value; });
    if (piece->why_copied.empty()) return fmt::format("it is stored as a slice of %{}", result);
    return fmt::format("it is copied into %{}: {}", result, piece->why_copied);
  }

  // Adds a reason to Group::cuts of each kernel that reads no result of another group, and whose
  // results no other group reads. The function adds no reason if there is only one kernel.
  void tellLoners() {
    std::vector<bool> bound(result_.groups.size(), false);
    size_t kernels = 0;
    for (const Group& group : result_.groups) kernels += group.kind == GroupKind::Kernel ? 1 : 0;
    for (ExprId user : fusion_.exprs().ids()) {
      for (ValueId input : fusion_.expr(user).inputs) {
        ExprId producer = fusion_.value(input).definition;
        if (producer == kNoExpr || indexOf(producer) < 0) continue;
        int from = indexOf(producer);
        int to = indexOf(user);
        if (to < 0 || from == to) continue;
        bound[from] = bound[to] = true;
      }
    }
    for (size_t g = 0; g < result_.groups.size() && kernels > 1; ++g) {
      if (result_.groups[g].kind != GroupKind::Kernel || bound[g]) continue;
      result_.groups[g].cuts.push_back(
          {kNoValue, kNoExpr, "no value connects this group with another group"});
    }
  }

  std::string nameOf(ExprId id) const { return fusion_.value(fusion_.expr(id).outputs[0]).name; }

  const Fusion& fusion_;
  const std::set<ExprId> copies_;
  const std::vector<Cat> cats_;
  KernelRules rules_;
  const IdVector<ValueId, std::vector<ExprId>> readers_;
  std::unique_ptr<SegmentGraph> graph_;
  IdVector<ExprId, GroupKind> kinds_;
  std::vector<Attention> attentions_;
  std::unordered_map<ExprId, size_t> attention_of_;  // indices into attentions_
  std::unordered_map<ExprId, size_t> cat_of_;        // indices into cats_
  std::vector<std::pair<ExprId, std::string>> joins_;
  struct Refusal {
    std::string why;
    std::pair<size_t, size_t> sizes;  // number of expressions in the groups of producer and user
  };
  std::map<std::pair<ExprId, ExprId>, Refusal> refusals_;  // by (producer, user)
  std::set<std::tuple<ValueId, int, std::string>> told_;   // value, reading group, reason
  SegmentedFusion result_;
};

}  // namespace

SegmentedFusion segment(const Fusion& fusion, const SegmentOptions& options) {
  return splitCalls(segmentForAllSizes(fusion, options), options);
}

SegmentedFusion segmentForAllSizes(const Fusion& fusion, const SegmentOptions& options) {
  SegmentedFusion segmented = Segmenter(fusion).run(options);
  if (const std::optional<Fusion> computed = computeGeneratedPieces(segmented)) {
    segmented = Segmenter(*computed).run(options);
  }
  // Runs several rounds, because the copies of one round bring values into a kernel. From these
  // values, the kernel may be able to compute a further value again.
  constexpr int kMostRounds = 2;
  std::set<ExprId> copies;
  for (int round = 0; round < kMostRounds; ++round) {
    Recomputed again = recomputeAcrossCuts(segmented, copies);
    if (again.copies.empty()) break;
    copies = again.copies;
    segmented = Segmenter(again.fusion, std::move(again.copies)).run(options);
  }
  // A kernel that does not store an expand, because the expand is a view, may store a broadcast
  // instead. This broadcast can also be a view, so the choice is repeated until it finds no more
  // views.
  ChosenViews views = chooseViews(segmented, {});
  for (size_t known = 0; views.exprs.size() > known; views = chooseViews(segmented, views.exprs)) {
    known = views.exprs.size();
    segmented = Segmenter(segmented.fusion, copies, views.exprs).run(options);
  }
  ChosenCats chosen = chooseCats(segmented);
  if (!chosen.cats.empty()) {
    segmented =
        Segmenter(segmented.fusion, copies, views.exprs, std::move(chosen.cats)).run(options);
  }
  for (std::vector<std::string>* notes : {&views.notes, &chosen.notes}) {
    std::ranges::move(*notes, std::back_inserter(segmented.notes));
  }
  settleOrders(segmented);
  joinIndependent(segmented);
  return segmented;
}

}  // namespace heddle
