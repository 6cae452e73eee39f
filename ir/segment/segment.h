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

// A set of expressions that becomes one generated kernel, library call, collective or view.
struct Group {
  GroupKind kind = GroupKind::Kernel;
  std::vector<ExprId> exprs;       // in the order of the fusion
  std::vector<ValueId> inputs;     // read from outside, in order of first use
  std::vector<ValueId> outputs;    // read outside or outputs of the fusion
  std::vector<std::string> joins;  // why expressions were put together, one reason a join
  std::vector<std::string> cuts;   // why the group ends where it does, one reason a cut
  // Of a library call that is not one expression: what it computes instead of them.
  std::optional<Attention> attention;
};

// A Fusion cut into groups, listed in an order in which they can run. Scalar expressions
// (constants, sizes, arithmetic on them) belong to no group: the host evaluates them, and a kernel
// repeats the constants it needs. Deterministic: the same fusion gives the same groups on every
// rank.
struct SegmentedFusion {
  Fusion fusion;
  std::vector<Group> groups;
  IdVector<ExprId, int> group_of;  // -1 for host scalars
  // Why an attention, or its backward, stays the ops it is made of, one each; only with
  // SegmentOptions::attention.
  std::vector<std::string> notes;
};

struct SegmentOptions {
  // Why the library that runs the fusion does not compute an attention as one call; empty: it does.
  // Unset: attentions are as any other ops. The same answers on every rank of a job.
  std::function<std::string(const Fusion&, const Attention&)> attention;
};

SegmentedFusion segment(const Fusion& fusion, const SegmentOptions& options = {});

// The group alone as a Fusion: its inputs and outputs with their names, scalars it reads as
// scalar inputs (constants stay constants). Meshes and shardings stay: which axes of a value are
// local is known from them alone.
Fusion extract(const SegmentedFusion& segmented, const Group& group);

// The whole fusion once, in its own order and names, each expression bracketed by its group.
std::string dumpText(const SegmentedFusion& segmented);
std::string dumpDot(const SegmentedFusion& segmented);
std::string dumpJson(const SegmentedFusion& segmented);

}  // namespace heddle
