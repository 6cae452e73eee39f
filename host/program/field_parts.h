#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "host/program/fields.h"
#include "host/program/instructions.h"

// Finds the slots (registers of a host program, host/program/program.h) and the sizes that members
// of instructions contain. The build fails if a member has a type that these functions do not know.
namespace heddle::host::parts {

template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;
template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class T>
inline constexpr bool kIsVariant = false;
template <class... T>
inline constexpr bool kIsVariant<std::variant<T...>> = true;

// Types that contain neither slots nor sizes.
template <class T>
inline constexpr bool kIsPlain =
    std::is_same_v<T, bool> || std::is_same_v<T, int64_t> || std::is_same_v<T, double> ||
    std::is_same_v<T, std::string> || std::is_same_v<T, DType> || std::is_same_v<T, Alias::Same> ||
    std::is_same_v<T, Alias::Reshape> || std::is_same_v<T, Alias::Permute> ||
    std::is_same_v<T, Alias::Shard> || std::is_same_v<T, Alias::Unpad> ||
    std::is_same_v<T, Alias::Expand> || std::is_same_v<T, Alias::Diagonal>;

// Calls `visit(slot, role)` for each slot in `member`, in the order of the text form. Leaves out
// kNoSlot. `role` is the role of the field, except in a Communicate::Pair: there, `in` is always
// sent, and `out` is always received.
template <class M, class Visit>
void forEachSlotIn(M& member, FieldRole role, Visit& visit) {
  using T = std::remove_const_t<M>;
  const auto inside = [&](auto& part) { forEachSlotIn(part, role, visit); };
  if constexpr (std::is_same_v<T, SlotId>) {
    if (member != kNoSlot) visit(member, role);
  } else if constexpr (std::is_same_v<T, Communicate::Pair>) {
    forEachSlotIn(member.in, kSent, visit);
    forEachSlotIn(member.out, kReceived, visit);
  } else if constexpr (std::is_same_v<T, Evaluate::Apply>) {
    inside(member.args);
  } else if constexpr (std::is_same_v<T, Predicate>) {
    inside(member.lhs);
  } else if constexpr (kIsOptional<T>) {
    if (member) inside(*member);
  } else if constexpr (kIsVariant<T>) {
    std::visit(inside, member);
  } else if constexpr (kIsVector<T>) {
    for (auto& part : member) inside(part);
  } else {
    static_assert(std::is_same_v<T, Size> || kIsPlain<T>);
  }
}

// Calls `visit(size)` for each size in `member`.
template <class M, class Visit>
void forEachSizeIn(M& member, Visit& visit) {
  using T = std::remove_const_t<M>;
  const auto inside = [&](auto& part) { forEachSizeIn(part, visit); };
  if constexpr (std::is_same_v<T, Size>) {
    visit(member);
  } else if constexpr (std::is_same_v<T, Alias::Slice>) {
    inside(member.starts);
    inside(member.stops);
  } else if constexpr (std::is_same_v<T, Alias::Index>) {
    inside(member.index);
  } else if constexpr (std::is_same_v<T, Predicate>) {
    inside(member.lhs);
    inside(member.rhs);
  } else if constexpr (std::is_same_v<T, std::pair<std::string, Attr>>) {
    inside(member.second);
  } else if constexpr (kIsOptional<T>) {
    if (member) inside(*member);
  } else if constexpr (kIsVariant<T>) {
    std::visit(inside, member);
  } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
    // An attribute that is a list of integers contains constants, not sizes.
  } else if constexpr (kIsVector<T>) {
    for (auto& part : member) inside(part);
  } else {
    static_assert(std::is_same_v<T, SlotId> || std::is_same_v<T, Evaluate::Apply> || kIsPlain<T>);
  }
}

}  // namespace heddle::host::parts
