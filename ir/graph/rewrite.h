#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "ir/base/unique_names.h"
#include "ir/graph/builder.h"
#include "ir/graph/fusion.h"

namespace heddle {

// Rebuilds a Fusion with FusionBuilder, expression by expression. A pass can omit expressions,
// insert others, or let a reader use another value. A copied value keeps its name, line, sharding,
// layout and Value::user_sharding.
//
// "Old" refers to the original fusion, "new" to the one that is built. A new value *replaces* an
// old one if copies of the old value's readers read the new value.
//
//   FusionRewriter r(old);
//   r.inputs();
//   for (ExprId id : old.exprs().ids()) r.copy(id);
//   return std::move(r).finish();
class FusionRewriter {
 public:
  explicit FusionRewriter(const Fusion& from);
  // Rebuilds a part of a fusion. `part` lists all values that the part contains. The costs depend
  // on the part only, because a large fusion has many parts.
  FusionRewriter(const Fusion& from, std::string name, const std::vector<ValueId>& part);

  void inputs();  // copies all inputs of the old fusion
  // Adds a value of the old fusion as an input. A scalar keeps its default.
  ValueId input(ValueId old);

  // Copies an expression. The copy reads the values that replace the old operands, and its result
  // replaces the old result.
  ValueId copy(ExprId old);
  // Does the same, but the copy reads the given operands (new ids).
  ValueId copyOn(ExprId old, std::vector<ValueId> operands);
  // Does the same as copyOn(), but the result replaces no value. It has the given name, and no
  // sharding or layout.
  ValueId copyAside(ExprId old, std::vector<ValueId> operands, const std::string& name);

  // Appends a `set` of a new value. Its result is named `wanted`, or wanted_2, wanted_3, ... if the
  // name is taken.
  ValueId set(ValueId value, const std::string& wanted, int line);
  // Does the same, but the result replaces the old value and gets its name, sharding, layout and
  // line.
  ValueId setAs(ValueId value, ValueId old);

  // Returns the builder, for all other new values. They have no sharding or layout.
  FusionBuilder& builder() { return builder_; }
  // Lets the new value `now` replace `old`, and copies sharding, layout and line to it. Requires
  // that both have the same name. InternalError if the types differ.
  void adopt(ValueId now, ValueId old);
  // Lets the new value `now` replace `old`, and copies nothing.
  void stand(ValueId old, ValueId now) { map_[old] = now; }
  bool has(ValueId old) const { return map_.contains(old); }
  ValueId at(ValueId old) const;  // the value that replaces `old`; InternalError if none does
  void output(ValueId old);

  Fusion& fusion() { return builder_.mutableFusion(); }
  const Fusion& fusion() const { return builder_.fusion(); }
  // Returns a name that neither fusion has: `wanted`, or `wanted` with a number. It never returns
  // the same name twice.
  std::string freeName(const std::string& wanted);

  // Returns the new fusion, with all outputs, guards, defaults and annotations of the old one.
  Fusion finish() &&;
  // Returns the new fusion as a part of the old one. Its outputs are the values given to output().
  // It has no guards, defaults or annotations, because these belong to the full fusion.
  Fusion finishPart() &&;

 private:
  void keepName(const Value& value);

  const Fusion& from_;
  FusionBuilder builder_;
  std::unordered_map<ValueId, ValueId> map_;  // old id -> new id
  // The names of the old fusion or part, and those that freeName() returned.
  UniqueNames names_{2};
};

}  // namespace heddle
