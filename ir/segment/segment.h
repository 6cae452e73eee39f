#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph/fusion.h"
#include "ir/segment/attention.h"

namespace heddle {

enum class GroupKind : uint8_t { Kernel, Library, Communication, Metadata };
std::string_view name(GroupKind kind);

// A segment of a fusion: expressions that become one generated kernel, library call, collective or
// view.
struct Group {
  GroupKind kind = GroupKind::Kernel;
  std::vector<ExprId> exprs;       // in the order of the fusion
  std::vector<ValueId> inputs;     // values read from outside, in order of first use
  std::vector<ValueId> outputs;    // values read outside, and outputs of the fusion
  std::vector<std::string> joins;  // why expressions were joined, one reason per join
  std::vector<std::string> cuts;   // why the group ends where it does, one reason per split
  // Set if the group is a library call that replaces several expressions.
  std::optional<Attention> attention;
};

// A fusion split into groups. The groups are in an order in which they can run. Scalar expressions
// (constants, sizes and arithmetic on them) belong to no group: the host evaluates them, and a
// kernel repeats the constants that it needs.
struct SegmentedFusion {
  Fusion fusion;
  std::vector<Group> groups;
  IdVector<ExprId, int> group_of;  // -1 for host scalars
  // Why an attention or its backward is not one library call, one note each. Empty without
  // SegmentOptions::attention.
  std::vector<std::string> notes;
};

struct SegmentOptions {
  // Returns why the library of the device does not compute an attention as one call; empty: it
  // does. It must return the same on every rank of a job. Unset: attentions are split like other
  // ops.
  std::function<std::string(const Fusion&, const Attention&)> attention;
};

// Splits a fusion into groups. The same fusion and options give the same groups on every rank.
SegmentedFusion segment(const Fusion& fusion, const SegmentOptions& options = {});

// Returns the group as a fusion of its own. Inputs and outputs keep their names. Scalars that the
// group reads are scalar inputs, except constants, which are copied. Meshes and shardings stay,
// because only they say which axes of a value are split over devices.
Fusion extract(const SegmentedFusion& segmented, const Group& group);

// Returns the fusion in its own order and names, with the group before each expression. A list of
// the groups follows, with the reasons for each join and split, and then the resharding moves.
std::string dumpText(const SegmentedFusion& segmented);
// Returns the graph of expressions as Graphviz text, with one cluster per group.
std::string dumpDot(const SegmentedFusion& segmented);
// Returns expressions and groups as JSON.
std::string dumpJson(const SegmentedFusion& segmented);

}  // namespace heddle
