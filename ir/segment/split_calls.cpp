// Implements splitCalls() (ir/segment/library_calls.h).
#include <algorithm>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>

#include "ir/base/check.h"
#include "ir/graph/rewrite.h"
#include "ir/passes/orders/order_notes.h"
#include "ir/segment/group_kind.h"
#include "ir/segment/library_calls.h"

namespace heddle {
namespace {

// Replaces the ids of a group by the ids of another fusion.
class GroupIds {
 public:
  using Map = std::function<ValueId(ValueId)>;  // kNoValue: the other fusion lacks the value
  GroupIds(const Fusion& from, const Fusion& to, Map map)
      : from_(from), to_(to), map_(std::move(map)) {}

  Group operator()(Group group) const {
    replace(group.exprs);
    for (std::vector<ExprId>& part : group.parts) replace(part);
    for (std::vector<ValueId>* values : {&group.inputs, &group.outputs}) replace(*values);
    for (Cut& cut : group.cuts) replace(cut);
    if (group.attention) {
      Attention& one = *group.attention;
      replace(one.exprs);
      replace(one.results);
      for (ValueId* id : {&one.q, &one.k, &one.v, &one.grad, &one.forward}) *id = at(*id);
    }
    if (group.cat) {
      replace(group.cat->exprs);
      group.cat->result = at(group.cat->result);
      for (Cat::Piece& piece : group.cat->pieces) piece.value = at(piece.value);
    }
    return group;
  }

  // Replaces the ids of a cut. If the other fusion lacks the value or the expression, the id
  // becomes kNoValue or kNoExpr.
  void replace(Cut& cut) const {
    cut.value = at(cut.value);
    cut.other = at(cut.other);
  }

 private:
  ValueId at(ValueId id) const { return id == kNoValue ? kNoValue : map_(id); }
  ExprId at(ExprId id) const {
    if (id == kNoExpr) return kNoExpr;
    const ValueId result = at(from_.expr(id).outputs[0]);
    return result == kNoValue ? kNoExpr : to_.value(result).definition;
  }
  void replace(std::vector<ValueId>& ids) const {
    for (ValueId& id : ids) id = at(id);
  }
  void replace(std::vector<ExprId>& ids) const {
    for (ExprId& id : ids) id = at(id);
    std::sort(ids.begin(), ids.end());
  }

  const Fusion& from_;
  const Fusion& to_;
  Map map_;
};

// A library call whose ops are segmented again.
class SplitCall {
 public:
  SplitCall(const SegmentedFusion& from, const Group& group)
      : from_(from.fusion), group_(group), segmented_(segment(extract(from, group))) {
    now_.assign(segmented_.fusion.values().size(), kNoValue);
    for (ExprId id : group_.exprs) {
      for (ValueId operand : from_.expr(id).inputs) addName(constants_, operand);
    }
    for (ExprId id : group_.exprs) {
      const ValueId result = from_.expr(id).outputs[0];
      addName(named_, result);
      constants_.erase(from_.value(result).name);
    }
  }

  // Adds to the new fusion each expression of the library call for which all operands exist there.
  // Call this function once for each expression of the call, at the position of this expression in
  // the old fusion. The result of the expression then exists after this position, because all
  // values on which it depends exist.
  void addReady(FusionRewriter& rewriter) {
    const Fusion& inner = segmented_.fusion;
    for (size_t i = 0; i < inner.inputs().size(); ++i) {
      if (rewriter.has(group_.inputs[i])) now_[inner.inputs()[i]] = rewriter.at(group_.inputs[i]);
    }
    for (const Expression& expr : inner.exprs()) {
      const ValueId result = expr.outputs[0];
      const auto constant = constants_.find(inner.value(result).name);
      if (constant != constants_.end()) {  // run() copies the constants
        if (rewriter.has(constant->second)) now_[result] = rewriter.at(constant->second);
      } else if (now_[result] == kNoValue && isReady(expr)) {
        add(expr, rewriter);
      }
    }
  }

  // Returns the groups of the ops, with ids of the new fusion.
  std::vector<Group> groups(const Fusion& now) const {
    const GroupIds ids(segmented_.fusion, now, [this](ValueId id) { return now_[id]; });
    std::vector<Group> result;
    for (const Group& group : segmented_.groups) result.push_back(ids(group));
    return result;
  }

  const SegmentedFusion& segmented() const { return segmented_; }

 private:
  using Names = std::unordered_map<std::string, ValueId>;
  void addName(Names& names, ValueId id) const { names.emplace(from_.value(id).name, id); }

  bool isReady(const Expression& expr) const {
    return std::ranges::all_of(expr.inputs, [&](ValueId id) { return now_[id] != kNoValue; });
  }

  // Adds one expression. If the call has a value with the same name, the result replaces this
  // value. Otherwise the result is a copy: several kernels compute its value
  // (ir/segment/recompute.h).
  void add(const Expression& expr, FusionRewriter& rewriter) {
    const ValueId result = expr.outputs[0];
    const Value& value = segmented_.fusion.value(result);
    const auto old = named_.find(value.name);
    std::vector<ValueId> operands;
    for (ValueId id : expr.inputs) operands.push_back(now_[id]);
    const std::string name = old == named_.end() ? rewriter.freeName(value.name) : value.name;
    rewriter.builder().name(name).line(expr.line);
    const ValueId made = rewriter.builder().apply(expr.op->name, std::move(operands), expr.attrs);
    now_[result] = made;
    Value& target = rewriter.fusion().mutableValue(made);
    HEDDLE_CHECK(target.tensor.domain == value.tensor.domain, "%{} changed its type", value.name);
    target.tensor = value.tensor;
    target.user_sharding = value.user_sharding;
    target.line = value.line;
    if (old != named_.end()) rewriter.stand(old->second, made);
  }

  const Fusion& from_;
  const Group& group_;
  const SegmentedFusion segmented_;  // segments of the call's ops
  IdVector<ValueId, ValueId> now_;   // value of segmented_ -> value of the new fusion
  Names named_;                      // the results of the call's ops, in the old fusion
  Names constants_;                  // operands from outside of the call, in the old fusion
};

class CallSplitter {
 public:
  CallSplitter(SegmentedFusion from, const SegmentOptions& options) : from_(std::move(from)) {
    splits_.resize(from_.groups.size());
    for (size_t g = 0; g < splits_.size(); ++g) {
      const std::optional<Attention>& attention = from_.groups[g].attention;
      if (!attention) continue;
      const std::string why = options.attention_for_sizes(from_.fusion, *attention);
      if (why.empty()) continue;
      from_.notes.push_back(
          fmt::format("{} is not one library call: {}", whatItIs(from_.fusion, *attention), why));
      forgetForward(from_.groups[g]);
      splits_[g] = std::make_unique<SplitCall>(from_, from_.groups[g]);
      ++from_.split_calls;
    }
  }

  SegmentedFusion run() {
    if (from_.split_calls == 0) return std::move(from_);
    separateForwards();
    FusionRewriter rewriter(from_.fusion);
    rewriter.inputs();
    for (ExprId id : from_.fusion.exprs().ids()) {
      const int group = from_.group_of[id];
      SplitCall* const split = group < 0 ? nullptr : splits_[group].get();
      if (split == nullptr) {
        rewriter.copy(id);
      } else {
        split->addReady(rewriter);
      }
    }
    const auto now = [&](ValueId old) { return rewriter.has(old) ? rewriter.at(old) : kNoValue; };
    IdVector<ValueId, ValueId> new_of;
    for (ValueId id : from_.fusion.values().ids()) new_of.push_back(now(id));
    SegmentedFusion result;
    result.fusion = std::move(rewriter).finish();
    result.notes = std::move(from_.notes);
    result.split_calls = from_.split_calls;
    appendGroups(new_of, result);
    return result;
  }

 private:
  // Clears Attention::forward of a backward, so that the backward does not read results of its
  // forward. The backward then computes the results of the forward again. For a forward attention,
  // does nothing.
  void forgetForward(Group& group) const {
    const ValueId forward = std::exchange(group.attention->forward, kNoValue);
    const bool is_read = std::ranges::any_of(group.exprs, [&](ExprId id) {
      return std::ranges::count(from_.fusion.expr(id).inputs, forward) > 0;
    });
    if (!is_read) std::erase(group.inputs, forward);
  }

  // Corrects Attention::forward and Attention::keeps_log_sums after calls were split. A forward and
  // a backward share results only if both are still library calls.
  void separateForwards() {
    std::vector<ValueId> forwards;  // the results of forwards that are still library calls
    std::vector<ValueId> needed;    // the results of forwards that backward library calls read
    for (size_t g = 0; g < splits_.size(); ++g) {
      if (!from_.groups[g].attention || splits_[g]) continue;
      const Attention& one = *from_.groups[g].attention;
      (one.backward ? needed : forwards).push_back(one.backward ? one.forward : one.results[0]);
    }
    for (size_t g = 0; g < splits_.size(); ++g) {
      if (!from_.groups[g].attention || splits_[g]) continue;
      Attention& one = *from_.groups[g].attention;
      if (one.backward && std::ranges::count(forwards, one.forward) == 0) {
        forgetForward(from_.groups[g]);
      }
      if (!one.backward) one.keeps_log_sums = std::ranges::count(needed, one.results[0]) > 0;
    }
  }

  void appendGroups(const IdVector<ValueId, ValueId>& new_of, SegmentedFusion& result) {
    const GroupIds ids(from_.fusion, result.fusion, [&](ValueId id) { return new_of[id]; });
    std::vector<Cut> cuts;  // cuts of the library calls that are split
    for (size_t g = 0; g < splits_.size(); ++g) {
      Group& group = from_.groups[g];
      for (Cut& cut : group.cuts) explain(cut, splits_[g] != nullptr);
      if (!splits_[g]) {
        result.groups.push_back(ids(std::move(group)));
        continue;
      }
      std::ranges::move(splits_[g]->groups(result.fusion), std::back_inserter(result.groups));
      addNotes(splits_[g]->segmented(), result);
      for (Cut& cut : group.cuts) {
        ids.replace(cut);
        cuts.push_back(std::move(cut));
      }
    }
    result.group_of.assign(result.fusion.exprs().size(), -1);
    for (size_t g = 0; g < result.groups.size(); ++g) {
      for (ExprId id : result.groups[g].exprs) result.group_of[id] = static_cast<int>(g);
    }
    for (Cut& cut : cuts) {
      const int group = result.group_of[result.fusion.value(cut.value).definition];
      result.groups[group].cuts.push_back(std::move(cut));
    }
  }

  // Corrects the reason of a cut if one of the two separated groups is a library call that is
  // split.
  void explain(Cut& cut, bool is_split) const {
    const int other = cut.other == kNoExpr ? -1 : from_.group_of[cut.other];
    if (!is_split && (other < 0 || !splits_[other])) return;
    cut.why += " for other sizes, and the groups around it do not depend on sizes";
  }

  static void addNotes(const SegmentedFusion& inner, SegmentedFusion& result) {
    result.notes.insert(result.notes.end(), inner.notes.begin(), inner.notes.end());
    const auto orders = inner.fusion.annotation<std::vector<OrderNote>>(kOrderAnnotation);
    if (orders) addOrderNotes(result.fusion, *orders);
  }

  SegmentedFusion from_;
  std::vector<std::unique_ptr<SplitCall>> splits_;  // per group; nullptr: the group stays
};

}  // namespace

SegmentedFusion splitCalls(SegmentedFusion segmented, const SegmentOptions& options) {
  if (!options.attention_for_sizes) return segmented;
  return CallSplitter(std::move(segmented), options).run();
}

}  // namespace heddle
