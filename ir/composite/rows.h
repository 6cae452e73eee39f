#pragma once

#include <optional>

#include "ir/base/check.h"
#include "ir/composite/composite.h"
#include "ir/composite/table.h"

// The rows of the table of composite ops, with one list per family, and helpers that read
// attributes. Only ir/composite/rows_*.cpp and ir/composite/table.cpp include this header.
namespace heddle::composite_rows {

std::span<const CompositeDef> reductions();
std::span<const CompositeDef> shapes();
std::span<const CompositeDef> places();
std::span<const CompositeDef> randoms();
std::span<const CompositeDef> activations();
std::span<const CompositeDef> norms();
std::span<const CompositeDef> losses();
std::span<const CompositeDef> attentions();

using B = FusionBuilder&;
using V = const Operands&;
using A = const Attrs&;

template <class T>
std::optional<T> maybe(A attrs, std::string_view name) {
  for (const auto& [key, value] : attrs) {
    if (key == name) return std::get<T>(value);
  }
  return std::nullopt;
}

template <class T>
T get(A attrs, std::string_view name, T otherwise) {
  return maybe<T>(attrs, name).value_or(otherwise);
}

// Returns a required attribute. buildComposite() (ir/composite/table.h) has checked that the
// attribute is present.
template <class T>
T need(A attrs, std::string_view name) {
  const std::optional<T> value = maybe<T>(attrs, name);
  HEDDLE_CHECK(value.has_value(), "attribute {} is missing", name);
  return *value;
}

// These functions return the value of an attribute of type AttrType::Size, which Attr stores as a
// list of one size.
inline std::optional<Size> maybeSize(A attrs, std::string_view name) {
  const auto sizes = maybe<std::vector<Size>>(attrs, name);
  return sizes ? std::optional(sizes->at(0)) : std::nullopt;
}
inline Size needSize(A attrs, std::string_view name) {
  return need<std::vector<Size>>(attrs, name).at(0);
}

inline ValueId at(V operands, size_t i) { return i < operands.size() ? operands[i] : kNoValue; }

inline GeluKind geluKind(std::string_view op_name, A attrs) {
  const auto kind = get<std::string>(attrs, "approximate", "none");
  if (kind == "none") return GeluKind::None;
  if (kind == "tanh") return GeluKind::Tanh;
  userError("{}: found approximate={}, expected none or tanh", op_name, kind);
}

inline LossReduction lossReduction(std::string_view op_name, A attrs) {
  const auto kind = get<std::string>(attrs, "reduction", "mean");
  if (kind == "mean") return LossReduction::Mean;
  if (kind == "sum") return LossReduction::Sum;
  if (kind == "none") return LossReduction::None;
  userError("{}: found reduction={}, expected mean, sum or none", op_name, kind);
}

}  // namespace heddle::composite_rows
