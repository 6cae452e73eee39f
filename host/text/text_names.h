#pragma once

#include <optional>
#include <string_view>

#include "comm/communicator.h"
#include "host/program/program.h"
#include "ir/base/lexer.h"

namespace heddle::host {

// The names of collectives and of comparisons in the text form of host programs, for printing and
// parsing. The index of an entry in its list is the value of its enumerator.
inline constexpr std::pair<comm::CollectiveKind, std::string_view> kCollectives[] = {
    {comm::CollectiveKind::Allreduce, "allreduce"},
    {comm::CollectiveKind::Reduce, "reduce"},
    {comm::CollectiveKind::Broadcast, "broadcast"},
    {comm::CollectiveKind::Allgather, "allgather"},
    {comm::CollectiveKind::Gather, "gather"},
    {comm::CollectiveKind::Scatter, "scatter"},
    {comm::CollectiveKind::ReduceScatter, "reduce_scatter"},
    {comm::CollectiveKind::AllToAll, "all_to_all"},
    {comm::CollectiveKind::AllToAllV, "all_to_all_v"},
    {comm::CollectiveKind::Barrier, "barrier"},
    {comm::CollectiveKind::Send, "send"},
    {comm::CollectiveKind::Recv, "recv"},
};
inline constexpr std::pair<Predicate::Compare, std::string_view> kCompares[] = {
    {Predicate::Compare::Eq, "=="}, {Predicate::Compare::Ne, "!="}, {Predicate::Compare::Lt, "<"},
    {Predicate::Compare::Le, "<="}, {Predicate::Compare::Gt, ">"},  {Predicate::Compare::Ge, ">="},
};

inline std::string_view collectiveName(comm::CollectiveKind kind) {
  return kCollectives[static_cast<size_t>(kind)].second;
}
inline std::string_view compareName(Predicate::Compare compare) {
  return kCompares[static_cast<size_t>(compare)].second;
}

// Parses one of the words or symbols in `names`, and returns its value. Throws a UserError that
// contains `expected` if the next token is none of them.
template <class Enum, size_t N>
Enum parseOneOf(TokenStream& in, const std::pair<Enum, std::string_view> (&names)[N],
                std::string_view expected) {
  for (const auto& [value, text] : names) {
    const bool written = in.at(TokenKind::Word) || in.at(TokenKind::Symbol);
    if (!written || in.peek().text != text) continue;
    in.next();
    return value;
  }
  in.fail(expected);
}

}  // namespace heddle::host
