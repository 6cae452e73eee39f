#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "ir/base/size.h"
#include "ir/ops/op.h"

namespace heddle::host {

// Every instruction declares one list of its fields with their roles (host/program/instructions.h).
// Accesses, slots, renaming, sizes, streams, teams, tokens and bodies are all derived from it
// (host/program/visit.h). The build fails if an instruction has no list, or if its list leaves a
// member out.

// What an instruction does with the slot, token or event that a field names.
struct FieldRole {
  bool defines = false;  // a slot: names another value from here on; a token: the instruction posts
                         // it; an event: the instruction records it
  bool reads = false;    // the slot's memory
  bool writes = false;   // the slot's memory
  bool borrowed = false;  // the access lasts until a Wait on the instruction's token
};
inline constexpr FieldRole kNamed{};
inline constexpr FieldRole kDefined{.defines = true};
inline constexpr FieldRole kAllocated{.defines = true, .writes = true};
inline constexpr FieldRole kRead{.reads = true};
inline constexpr FieldRole kWritten{.writes = true};
inline constexpr FieldRole kSent{.reads = true, .borrowed = true};
inline constexpr FieldRole kReceived{.writes = true, .borrowed = true};

enum class FieldKind : uint8_t {
  Slot,       // SlotId, or an optional or a list of them, or pairs of them
  Token,      // TokenId, or an optional of it
  Event,      // EventId
  Kernel,     // KernelId
  Stream,     // StreamId
  Size,       // Size, or anything that holds sizes
  Operand,    // a size, a slot or a constant
  Team,       // Team
  LoopIndex,  // the name that a For declares
  Body,       // std::vector<Instruction>
  Setting     // a value that names none of these
};

template <FieldKind kFieldKind, class Instruction, class Member>
struct Field {
  static constexpr FieldKind kKind = kFieldKind;
  Member Instruction::*member;
  FieldRole role;
};

// One function per kind, as in slot(&Copy::in, kRead).
namespace field {
template <FieldKind kKind>
struct Make {
  template <class Instruction, class Member>
  constexpr auto operator()(Member Instruction::*member, FieldRole role = kNamed) const {
    return Field<kKind, Instruction, Member>{member, role};
  }
};
inline constexpr Make<FieldKind::Slot> slot;
inline constexpr Make<FieldKind::Token> token;
inline constexpr Make<FieldKind::Event> event;
inline constexpr Make<FieldKind::Kernel> kernel;
inline constexpr Make<FieldKind::Stream> stream;
inline constexpr Make<FieldKind::Size> size;
inline constexpr Make<FieldKind::Operand> operand;
inline constexpr Make<FieldKind::Team> team;
inline constexpr Make<FieldKind::LoopIndex> loopIndex;
inline constexpr Make<FieldKind::Body> body;
inline constexpr Make<FieldKind::Setting> setting;
}  // namespace field

// Counts the members of an aggregate: the largest number of initializers that it accepts.
struct AnyMember {
  template <class T>
  operator T&() const&& noexcept;
  template <class T>
  operator T&() const& noexcept;
};
template <class T, class... Members>
constexpr size_t countMembers() {
  if constexpr (requires { T{Members{}..., AnyMember{}}; }) {
    return countMembers<T, Members..., AnyMember>();
  } else {
    return sizeof...(Members);
  }
}

// Calls `visit(field, member)` for each field of instruction `x`, in the order of its list.
template <class X, class Visit>
void forEachFieldOf(X& x, Visit&& visit) {
  using Instruction = std::remove_const_t<X>;
  constexpr auto kFields = Instruction::fields();
  static_assert(std::tuple_size_v<decltype(kFields)> == countMembers<Instruction>(),
                "the field list of this instruction leaves a member out");
  std::apply([&](const auto&... each) { (visit(each, x.*each.member), ...); }, kFields);
}

}  // namespace heddle::host
