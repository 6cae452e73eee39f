#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "ir/graph/builder.h"
#include "ir/graph/fusion.h"

namespace heddle {

// Rebuilds a Fusion through FusionBuilder, expression by expression, so that a pass can leave some
// out, put others in, or route a reader to another value. Copied values keep their names, lines,
// shardings, layouts and whether the user wrote the sharding.
//
//   FusionRewriter r(old);
//   r.inputs();
//   for (ExprId id : old.exprs().ids()) r.copy(id);
//   return std::move(r).finish();
class FusionRewriter {
 public:
  explicit FusionRewriter(const Fusion& from);
  FusionRewriter(const Fusion& from, std::string name);

  void inputs();  // all inputs of the old fusion
  ValueId input(
      ValueId old);  // one value of the old fusion as an input; a scalar keeps its default

  // The expression on the values that stand for its operands; its result stands for the old one.
  ValueId copy(ExprId old);
  // The same on other operands (new ids).
  ValueId copyOn(ExprId old, std::vector<ValueId> operands);
  // The same, giving a value of that name that stands for nothing and has neither sharding nor
  // layout.
  ValueId copyAside(ExprId old, std::vector<ValueId> operands, const std::string& name);

  // `set` of a new value, to a value named `wanted` or, when that is taken, wanted_2, wanted_3, ...
  ValueId set(ValueId value, const std::string& wanted, int line);
  // The same, to a value that stands for the old one: with its name, sharding, layout and line.
  ValueId setAs(ValueId value, ValueId old);

  // For what a pass makes otherwise; new values have neither sharding nor layout.
  FusionBuilder& builder() { return builder_; }
  // `now`, made with the old value's name, stands for it, with its sharding, layout and line.
  // InternalError when the types differ.
  void adopt(ValueId now, ValueId old);
  void stand(ValueId old, ValueId now) { map_.at(old) = now; }
  bool has(ValueId old) const { return map_.at(old) != kNoValue; }
  ValueId at(ValueId old) const;  // InternalError when nothing stands for it
  void output(ValueId old);

  Fusion& fusion() { return builder_.mutableFusion(); }
  const Fusion& fusion() const { return builder_.fusion(); }
  // `wanted`, or with a number behind it, that is in neither fusion; not given out twice.
  std::string freeName(const std::string& wanted);

  Fusion finish() &&;  // with all outputs, guards, defaults and annotations of the old fusion
  // A part of the old fusion, with the outputs given to output(): without guards, defaults and
  // annotations, which belong to the whole.
  Fusion finishPart() &&;

 private:
  const Fusion& from_;
  FusionBuilder builder_;
  IdVector<ValueId, ValueId> map_;         // old id -> new id or kNoValue
  std::unordered_set<std::string> names_;  // of the old fusion, and those given out
};

}  // namespace heddle
