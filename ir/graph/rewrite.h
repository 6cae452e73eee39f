#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "ir/base/unique_names.h"
#include "ir/graph/builder.h"
#include "ir/graph/fusion.h"

namespace heddle {

// Rebuilds a Fusion with FusionBuilder, expression by expression. A pass can omit expressions,
// insert new expressions, or let an expression read a different value. A value that copy() or
// copyOn() copies keeps its name, line, sharding, layout and Value::user_sharding.
//
// "Old" values and expressions are in the original fusion, "new" ones in the fusion that is built.
// If a new value *replaces* an old value, copied expressions that read the old value read the new
// value instead.
//
//   FusionRewriter r(old);
//   r.inputs();
//   for (ExprId id : old.exprs().ids()) r.copy(id);
//   return std::move(r).finish();
class FusionRewriter {
 public:
  explicit FusionRewriter(const Fusion& from);
  // Rebuilds a part of a fusion. `part` lists all values that the part contains. The time depends
  // only on the size of the part, so splitting a large fusion into many parts stays fast.
  FusionRewriter(const Fusion& from, std::string name, const std::vector<ValueId>& part);

  void inputs();  // copies all inputs of the old fusion
  // Adds a value of the old fusion as an input. A scalar keeps its default. An input of the old
  // fusion keeps its layout; any other value loses it.
  ValueId input(ValueId old);

  // Copies an expression. The copy reads the values that replace the old operands, and its result
  // replaces the old result.
  ValueId copy(ExprId old);
  // Copies an expression like copy(), but the copy reads the new values `operands`.
  ValueId copyOn(ExprId old, std::vector<ValueId> operands);
  // Copies an expression of a segment like copy(), but the result gets Value::tensor of the old
  // result, because FusionBuilder may compute a different type. For example, the widths of a pad
  // may contain other symbols than the extents of the segment.
  ValueId copyWithType(ExprId old);
  // Copies an expression like copyOn(), but the result replaces no value. The result has the name
  // `name`, and no sharding or layout.
  ValueId copyAside(ExprId old, std::vector<ValueId> operands, const std::string& name);

  // Appends a `set` expression that reads the new value `value`. The result is named
  // freeName(wanted).
  ValueId set(ValueId value, const std::string& wanted, int line);
  // Appends a `set` expression that reads the new value `value`. The result replaces `old` and gets
  // the name, sharding, layout and line of `old`.
  ValueId setAs(ValueId value, ValueId old);

  // Returns the builder, with which a pass can append more new values. These values have no
  // sharding or layout.
  FusionBuilder& builder() { return builder_; }
  // Lets the new value `now` replace `old`, and copies sharding, layout and line of `old` to `now`.
  // Requires that both have the same name. Throws InternalError if their types differ.
  void adopt(ValueId now, ValueId old);
  // Lets the new value `now` replace `old`. Copies no properties of `old`.
  void stand(ValueId old, ValueId now) { map_[old] = now; }
  bool has(ValueId old) const { return map_.contains(old); }
  // Returns the new value that replaces `old`. Throws InternalError if there is none.
  ValueId at(ValueId old) const;
  // Makes the value that replaces `old` an output.
  void output(ValueId old, std::optional<AxisOrder> order = {});

  Fusion& fusion() { return builder_.mutableFusion(); }
  const Fusion& fusion() const { return builder_.fusion(); }
  // Returns `wanted`, or wanted_2, wanted_3, ... if the old fusion (or the part of it) has this
  // name, or if freeName() already returned it.
  std::string freeName(const std::string& wanted);

  // Returns the new fusion, with all outputs (and the inputs that they reuse), guards, defaults and
  // annotations of the old one.
  Fusion finish() &&;
  // Returns the new fusion like finish(). Output `i` is the new value outputs[i] unless this is
  // kNoValue.
  Fusion finishWith(const std::vector<ValueId>& outputs) &&;
  // Returns the new fusion, which is a part of the old one. The outputs of the new fusion are the
  // values for which output() was called. It has no guards, defaults or annotations, because these
  // belong to the full fusion.
  Fusion finishPart() &&;

 private:
  void keepName(const Value& value);
  std::vector<ValueId> operandsOf(ExprId old) const;  // the new values that replace the operands
  std::optional<OutputReuse> reuseOf(size_t output) const;

  const Fusion& from_;
  FusionBuilder builder_;
  std::unordered_map<ValueId, ValueId> map_;  // old id -> new id
  // The names of the old fusion or part, and the names that freeName() returned.
  UniqueNames names_{2};
};

}  // namespace heddle
