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

// Every instruction of a host program (host/program/instructions.h) has a list of its fields
// (host/program/instruction_fields.h). Each entry has the kind of the field and its role. A field
// may name a slot (a register of the program) or a token (which represents a posted operation). The
// functions of host/program/visit.h and host/program/program.h use the lists to find the slots,
// tokens, sizes, streams, teams and bodies of an instruction. The build fails if an instruction has
// no list, or if its list has not as many entries as the instruction has members.

// The role of a field: how the instruction uses the slot, token or event that the field names.
struct FieldRole {
  // true: the instruction defines the slot, posts the operation that the token represents, or
  // records the event.
  bool defines = false;
  bool reads = false;   // the instruction reads the memory of the slot
  bool writes = false;  // the instruction writes the memory of the slot, allocates it or frees it
  // The read or write lasts until a Wait on the token of the instruction. Send and Recv in a group
  // have the token of the GroupEnd.
  bool borrowed = false;
};
inline constexpr FieldRole kNamed{};
inline constexpr FieldRole kDefined{.defines = true};
inline constexpr FieldRole kAllocated{.defines = true, .writes = true};
inline constexpr FieldRole kRead{.reads = true};
inline constexpr FieldRole kWritten{.writes = true};
inline constexpr FieldRole kSent{.reads = true, .borrowed = true};
inline constexpr FieldRole kReceived{.writes = true, .borrowed = true};

enum class FieldKind : uint8_t {
  Slot,       // SlotId, an optional SlotId, or a list of SlotIds or of pairs of SlotIds
  Token,      // TokenId or an optional TokenId
  EventUse,   // EventId
  Kernel,     // KernelId
  StreamUse,  // StreamId
  Size,       // Size, or a type that contains sizes
  Operand,    // Evaluate::expression or a Predicate: may contain sizes, slots and constants
  Team,       // Team
  LoopIndex,  // the name of the index that a For declares
  Body,       // std::vector<Instruction>
  Setting     // any other value
};

template <FieldKind kFieldKind, class Instruction, class Member>
struct Field {
  static constexpr FieldKind kKind = kFieldKind;
  Member Instruction::*member;
  FieldRole role;
};

// Functions that create a Field: one function for each FieldKind. Example: slot(&Copy::in, kRead).
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
inline constexpr Make<FieldKind::EventUse> event;
inline constexpr Make<FieldKind::Kernel> kernel;
inline constexpr Make<FieldKind::StreamUse> stream;
inline constexpr Make<FieldKind::Size> size;
inline constexpr Make<FieldKind::Operand> operand;
inline constexpr Make<FieldKind::Team> team;
inline constexpr Make<FieldKind::LoopIndex> loopIndex;
inline constexpr Make<FieldKind::Body> body;
inline constexpr Make<FieldKind::Setting> setting;
}  // namespace field

// AnyMember converts to every type. countMembers() uses it to count the members of an aggregate.
// The count is the largest number of initializers that the aggregate accepts.
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

// The field list of an instruction: a tuple kFields of objects of type Field.
template <class Instruction>
struct FieldList;

// Calls `visit(field, member)` for each field of the instruction `x`, in the order of its field
// list.
template <class X, class Visit>
void forEachFieldOf(X& x, Visit&& visit) {
  using Instruction = std::remove_const_t<X>;
  constexpr auto kFields = FieldList<Instruction>::kFields;
  static_assert(std::tuple_size_v<decltype(kFields)> == countMembers<Instruction>(),
                "the field list of this instruction leaves a member out");
  std::apply([&](const auto&... each) { (visit(each, x.*each.member), ...); }, kFields);
}

}  // namespace heddle::host
