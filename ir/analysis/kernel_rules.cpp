#include "ir/analysis/kernel_rules.h"

#include <algorithm>

#include "ir/analysis/independent_parts.h"
#include "ir/analysis/kernel_question.h"
#include "ir/analysis/reshard_step.h"
#include "ir/base/check.h"

namespace heddle {
namespace {

std::string whyNotSet(const Fusion& fusion, const Expression& expr) {
  const ReshardStep::Kind step = reshardStepOf(fusion, expr).kind;
  if (isCommunication(step)) return describe(fusion, expr) + " is a collective";
  if (step != ReshardStep::Kind::Slice) return {};
  return describe(fusion, expr) + " is a view of this rank's block";
}

// Checks rule 1 of kernel_rules.h.
std::string whyNotOp(const Fusion& fusion, const Expression& expr) {
  switch (roleOf(expr.op->kind)) {
    case OpRole::Kernel:
      return {};
    case OpRole::Set:
      return whyNotSet(fusion, expr);
    case OpRole::Host:
      return describe(fusion, expr) + " is evaluated on the host";
    case OpRole::View:
      return describe(fusion, expr) + " is a view, which no kernel computes";
    case OpRole::Library:
      return describe(fusion, expr) + " is a library call";
  }
  return {};
}

}  // namespace

KernelRules::KernelRules(const Fusion& fusion)
    : fusion_(fusion),
      readers_(readersOf(fusion)),
      is_output_(fusion.values().size(), 0),
      maps_(fusion.exprs().size()) {
  for (ValueId output : fusion.outputs()) is_output_[output] = 1;
}

const AxisMap& KernelRules::axisMap(ExprId id) {
  if (!maps_[id]) maps_[id] = axisMapOf(fusion_, fusion_.expr(id));
  return *maps_[id];
}

std::string KernelRules::violation(const std::vector<ExprId>& exprs) {
  std::vector<ValueId> stored;
  for (ExprId id : exprs) {
    for (ValueId output : fusion_.expr(id).outputs) {
      const std::vector<ExprId>& readers = readers_[output];
      bool outside = std::any_of(readers.begin(), readers.end(), [&](ExprId user) {
        return !std::binary_search(exprs.begin(), exprs.end(), user);
      });
      if (outside || is_output_[output] != 0) stored.push_back(output);
    }
  }
  return violation(exprs, stored);
}

std::string KernelRules::violation(const std::vector<ExprId>& exprs,
                                   const std::vector<ValueId>& stored) {
  KernelQuestion question(fusion_, exprs);
  for (ExprId id : exprs) {
    std::string why = whyNotOp(fusion_, fusion_.expr(id));
    if (!why.empty()) return why;
    question.joinAxes(id, axisMap(id));
  }
  std::string why = question.answer(stored);
  if (!why.empty() || question.columns().empty()) return why;
  for (const KernelQuestion::Part& part : question.parts(stored)) {
    KernelQuestion one(fusion_, part.exprs);
    for (ExprId id : part.exprs) one.joinAxes(id, axisMap(id));
    why = one.answer(part.stored);
    if (!why.empty()) return "without its column reductions, " + why;
  }
  return {};
}

std::vector<ExprId> KernelRules::columns(const std::vector<ExprId>& exprs) {
  KernelQuestion question(fusion_, exprs);
  for (ExprId id : exprs) question.joinAxes(id, axisMap(id));
  question.answer({});
  return question.columns();
}

std::vector<ExprId> columnReductions(const Fusion& segment) {
  std::vector<ExprId> exprs;
  for (ExprId id : segment.exprs().ids()) {
    if (!isHostScalar(segment, segment.expr(id))) exprs.push_back(id);
  }
  return KernelRules(segment).columns(exprs);
}

std::string kernelRuleViolation(const Fusion& segment) {
  for (const Expression& expr : segment.exprs()) {
    if (expr.op->kind == OpKind::SizeOf) return whyNotOp(segment, expr);
  }
  for (ValueId output : segment.outputs()) {
    const Value& value = segment.value(output);
    if (value.is_scalar) return fmt::format("%{} is a scalar, which the host computes", value.name);
  }
  KernelRules rules(segment);
  const std::vector<std::vector<ExprId>> parts = independentParts(segment);
  if (parts.size() == 1) return rules.violation(parts.front(), segment.outputs());
  for (const std::vector<ExprId>& exprs : parts) {
    const std::string why = rules.violation(exprs);
    if (!why.empty()) return why;
  }
  return {};
}

IdVector<ValueId, std::vector<ExprId>> readersOf(const Fusion& fusion) {
  IdVector<ValueId, std::vector<ExprId>> readers = fusion.users();
  for (std::vector<ExprId>& users : readers) {
    std::erase_if(users, [&](ExprId user) { return fusion.expr(user).op->kind == OpKind::SizeOf; });
  }
  return readers;
}

bool isCheap(const OpDef& op) {
  return op.kind == OpKind::Pointwise && op.text.find("hd::") == std::string_view::npos &&
         op.text.find('/') == std::string_view::npos;
}

bool isHostScalar(const Fusion& fusion, const Expression& expr) {
  return fusion.value(expr.outputs[0]).is_scalar;
}

}  // namespace heddle
