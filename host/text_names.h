#pragma once

#include <optional>
#include <string_view>

#include "comm/communicator.h"
#include "host/program.h"

namespace heddle::host {

// Words of the text form, in both directions.
inline constexpr std::pair<comm::CollectiveKind, std::string_view> kCollectives[] = {
    {comm::CollectiveKind::Allreduce, "allreduce"},
    {comm::CollectiveKind::Allgather, "allgather"},
    {comm::CollectiveKind::ReduceScatter, "reduce_scatter"},
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

}  // namespace heddle::host
