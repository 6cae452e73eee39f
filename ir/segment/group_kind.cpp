#include "ir/segment/group_kind.h"

#include "ir/analysis/reshard_step.h"
#include "ir/base/check.h"

namespace heddle {
namespace {

GroupKind kindOfSet(const Fusion& fusion, const Expression& expr) {
  ReshardStep::Kind step = reshardStepOf(fusion, expr).kind;
  if (isCommunication(step)) return GroupKind::Communication;
  return step == ReshardStep::Kind::Relayout ? GroupKind::Kernel : GroupKind::Metadata;
}

}  // namespace

GroupKind kindOf(const Fusion& fusion, const Expression& expr) {
  switch (roleOf(expr.op->kind)) {
    case OpRole::Kernel:
      return GroupKind::Kernel;
    case OpRole::Library:
      return GroupKind::Library;
    case OpRole::View:
      return GroupKind::Metadata;
    case OpRole::Set:
      return kindOfSet(fusion, expr);
    case OpRole::Host:
      break;
  }
  HEDDLE_CHECK(false, "{} belongs to no group", expr.op->name);
  return GroupKind::Metadata;
}

std::string whatItIs(const Fusion& fusion, const Expression& expr, GroupKind kind) {
  const std::string& result = fusion.value(expr.outputs[0]).name;
  switch (kind) {
    case GroupKind::Kernel:
      return fmt::format("{} of %{} is a kernel", expr.op->name, result);
    case GroupKind::Library:
      return fmt::format("{} of %{} is a library call", expr.op->name, result);
    case GroupKind::Communication:
      return fmt::format("set of %{} is a collective", result);
    case GroupKind::Metadata:
      return fmt::format("{} of %{} is a view", expr.op->name, result);
    case GroupKind::Cat:
      return fmt::format("{} of %{} is part of a cat", expr.op->name, result);
  }
  return {};
}

std::string_view name(GroupKind kind) {
  switch (kind) {
    case GroupKind::Kernel:
      return "kernel";
    case GroupKind::Library:
      return "library";
    case GroupKind::Communication:
      return "communication";
    case GroupKind::Metadata:
      return "metadata";
    case GroupKind::Cat:
      return "cat";
  }
  return "";
}

std::string whatItIs(const Fusion& fusion, const Attention& attention) {
  return fmt::format("attention{} of %{}", attention.backward ? " backward" : "",
                     fusion.value(attention.results[0]).name);
}

}  // namespace heddle
