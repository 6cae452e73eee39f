#include "host/program/layout_needs.h"

#include <variant>

#include "host/program/one_of.h"
#include "host/program/visit.h"

namespace heddle::host {

namespace {

bool viewNeedsLayout(const Alias& alias) {
  return std::visit(
      Overloaded{[](const OneOf<Alias::Reshape, Alias::Unpad, Alias::Shard> auto&) { return true; },
                 [](const OneOf<Alias::Same, Alias::Permute, Alias::Slice, Alias::Index,
                                Alias::Expand, Alias::Diagonal> auto&) { return false; }},
      alias.view);
}

}  // namespace

bool needsLayout(const Op& op) {
  return std::visit(
      Overloaded{
          [](const Alias& x) { return viewNeedsLayout(x); },
          [](const CallLibrary& x) { return x.function != "matmul" && x.function != "linear"; },
          [](const OneOf<Communicate, Send, Recv, ReadBack> auto&) { return true; },
          [](const OneOf<Allocate, Free, Evaluate, LaunchKernel, Copy, GroupBegin, GroupEnd, Wait,
                         RecordEvent, WaitEvent, For, If, Call, Check, Print> auto&) {
            return false;
          }},
      op);
}

TensorDesc operandOfView(const Alias& view, const TensorDesc& out) {
  // If the view is no Permute, it is a Same, and a Same has the descriptor of its operand.
  const auto* permute = std::get_if<Alias::Permute>(&view.view);
  if (permute == nullptr) return out;
  TensorDesc in = out;
  for (size_t i = 0; i < permute->axes.size(); ++i) {
    const size_t axis = permute->axes[i];
    in.sizes.at(axis) = out.sizes.at(i);
    in.alloc.at(axis) = out.alloc.at(i);
    in.strides.at(axis) = out.strides.at(i);
  }
  return in;
}

}  // namespace heddle::host
