#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "ir/graph/builder.h"
#include "ir/graph/fusion.h"

namespace heddle {

// Rebuilds a Fusion with FusionBuilder, expression by expression. A pass can omit expressions,
// insert others, or let a reader use another value. Copied values keep their names, lines,
// shardings and layouts, and whether the user wrote the sharding.
//
// A new value *replaces* an old one if later copies read the new value in its place.
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
  // Adds a value of the old fusion as an input. A scalar keeps its default.
  ValueId input(ValueId old);

  // Copies an expression, with the values that replace its operands. Its result replaces the old
  // one.
  ValueId copy(ExprId old);
  // The same with other operands (new ids).
  ValueId copyOn(ExprId old, std::vector<ValueId> operands);
  // The same, but the result replaces no value. It has the given name, and no sharding or layout.
  ValueId copyAside(ExprId old, std::vector<ValueId> operands, const std::string& name);

  // Adds a `set` of a new value. The result is named `wanted`, or wanted_2, wanted_3, ... if the
  // name is taken.
  ValueId set(ValueId value, const std::string& wanted, int line);
  // The same, but the result replaces the old value, with its name, sharding, layout and line.
  ValueId setAs(ValueId value, ValueId old);

  // For other new values. They have no sharding or layout.
  FusionBuilder& builder() { return builder_; }
  // Lets `now`, which must have the name of the old value, replace it, and copies sharding, layout
  // and line. InternalError if the types differ.
  void adopt(ValueId now, ValueId old);
  void stand(ValueId old, ValueId now) { map_.at(old) = now; }
  bool has(ValueId old) const { return map_.at(old) != kNoValue; }
  ValueId at(ValueId old) const;  // InternalError when nothing stands for it
  void output(ValueId old);

  Fusion& fusion() { return builder_.mutableFusion(); }
  const Fusion& fusion() const { return builder_.fusion(); }
  // Returns `wanted`, or `wanted` with a number, as a name that neither fusion has. It returns no
  // name twice.
  std::string freeName(const std::string& wanted);

  Fusion finish() &&;  // with all outputs, guards, defaults and annotations of the old fusion
  // Returns a part of the old fusion, with the outputs given to output(). It has no guards,
  // defaults or annotations, because these belong to the full fusion.
  Fusion finishPart() &&;

 private:
  const Fusion& from_;
  FusionBuilder builder_;
  IdVector<ValueId, ValueId> map_;         // old id -> new id or kNoValue
  std::unordered_set<std::string> names_;  // of the old fusion, and those given out
};

}  // namespace heddle
