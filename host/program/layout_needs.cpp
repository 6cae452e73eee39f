#include "host/program/layout_needs.h"

#include <variant>

#include "host/program/instruction_kind.h"
#include "host/program/visit.h"

namespace heddle::host {

bool needsLayout(const Op& op) {
  if (const auto* view = std::get_if<Alias>(&op)) {
    return std::holds_alternative<Alias::Reshape>(view->view) ||
           std::holds_alternative<Alias::Unpad>(view->view) ||
           std::holds_alternative<Alias::Shard>(view->view);
  }
  if (const auto* call = std::get_if<CallLibrary>(&op)) {
    return call->function != "matmul" && call->function != "linear";
  }
  return kindOf(op) == InstructionKind::Post || std::holds_alternative<ReadBack>(op);
}

TensorDesc operandOfView(const Alias& view, const TensorDesc& out) {
  const auto* permute = std::get_if<Alias::Permute>(&view.view);
  if (permute == nullptr) return out;
  TensorDesc in = out;
  for (size_t i = 0; i < permute->axes.size(); ++i) {
    const auto axis = static_cast<size_t>(permute->axes[i]);
    in.sizes.at(axis) = out.sizes.at(i);
    in.alloc.at(axis) = out.alloc.at(i);
    in.strides.at(axis) = out.strides.at(i);
  }
  return in;
}

}  // namespace heddle::host
