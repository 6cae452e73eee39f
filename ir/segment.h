#pragma once

#include <string>
#include <vector>

#include "ir/fusion.h"

namespace heddle {

enum class GroupKind : uint8_t { Kernel, Library, Communication, Metadata };
std::string_view name(GroupKind kind);

// A set of expressions that becomes one generated kernel, library call, collective or view.
struct Group {
  GroupKind kind = GroupKind::Kernel;
  std::vector<ExprId> exprs;       // in the order of the fusion
  std::vector<ValueId> inputs;     // read from outside, in order of first use
  std::vector<ValueId> outputs;    // read outside or outputs of the fusion
  std::vector<std::string> joins;  // why expressions were put together, one reason a join
  std::vector<std::string> cuts;   // why the group ends where it does, one reason a cut
};

// A Fusion cut into groups, listed in an order in which they can run. Scalar expressions
// (constants, sizes, arithmetic on them) belong to no group: the host evaluates them, and a kernel
// repeats the constants it needs. Deterministic: the same fusion gives the same groups on every
// rank.
struct SegmentedFusion {
  Fusion fusion;
  std::vector<Group> groups;
  std::vector<int> group_of;  // per ExprId; -1 for host scalars
};

SegmentedFusion segment(const Fusion& fusion);

// The group alone as a Fusion: its inputs and outputs with their names, scalars it reads as
// scalar inputs (constants stay constants). Meshes and shardings stay: which axes of a value are
// local is known from them alone.
Fusion extract(const SegmentedFusion& segmented, const Group& group);

// The whole fusion once, in its own order and names, each expression bracketed by its group.
std::string dumpText(const SegmentedFusion& segmented);
std::string dumpDot(const SegmentedFusion& segmented);
std::string dumpJson(const SegmentedFusion& segmented);

}  // namespace heddle
