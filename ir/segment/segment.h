#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/cats/cat.h"
#include "ir/graph/fusion.h"
#include "ir/segment/attention/attention.h"

namespace heddle {

enum class GroupKind : uint8_t { Kernel, Library, Communication, Metadata, Cat };
std::string_view name(GroupKind kind);

// The reason why a group was not merged with another group.
struct Cut {
  ValueId value = kNoValue;  // a result of the group that the other group reads; kNoValue: none
  ExprId other = kNoExpr;  // an expression of the other group; kNoExpr: `why` applies to all groups
  std::string why;
};

// A segment of a fusion. Its expressions together become one generated kernel (Kernel), one library
// call (Library), one collective (Communication), one view (Metadata), or one cat (Cat). A cat is a
// tensor into which other groups write their results.
struct Group {
  GroupKind kind = GroupKind::Kernel;
  std::vector<ExprId> exprs;  // in the order of the fusion
  // Values that the group reads but does not compute, in order of use. Constants are not inputs.
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;    // computed values that other groups read or the fusion returns
  std::vector<std::string> joins;  // why kernels were merged into this one: one reason per merge
  std::vector<Cut> cuts;           // why this group was not merged with other groups
  // The attention that the group computes in one library call. nullopt for every other group.
  std::optional<Attention> attention;
  // Only for GroupKind::Cat: the pieces, and which of them the group copies.
  std::optional<Cat> cat;
  // The expressions of each part, if the group is one launch with several independent parts
  // (ir/segment/join_independent.h). Empty for every other group.
  std::vector<std::vector<ExprId>> parts;
};

// A fusion split into groups. The groups are in an order in which they can run. Two kinds of
// expressions belong to no group:
// - Scalar expressions (constants, sizes and arithmetic on them). The host evaluates them, and a
//   kernel repeats the constants that it needs.
// - Expressions with a result that no group reads and the fusion does not return. For example, only
//   the size of the result is used. Nothing evaluates these expressions.
struct SegmentedFusion {
  Fusion fusion;
  std::vector<Group> groups;
  IdVector<ExprId, int> group_of;  // -1: no group
  // Texts that name an attention, a backward, an expand or a cat and give a reason:
  // - for each attention or backward that did not become one library call, if
  //   SegmentOptions::attention is set
  // - for each cat that did not become a group of the kind Cat
  // - for each expand that is not a view of memory, because a kernel stores its result
  std::vector<std::string> notes;
  // The number of library calls that splitCalls() has replaced (ir/segment/library_calls.h).
  int64_t split_calls = 0;
};

// Options of segment(). Each function must return the same result on every rank of a job.
struct SegmentOptions {
  // Returns "" if a library of the device can compute this attention in one call for some sizes.
  // Otherwise returns the reason why it cannot for any sizes. If the function is not set, the ops
  // of attentions are treated like all other ops.
  std::function<std::string(const Fusion&, const Attention&)> attention;
  // segment() calls this function for each group that is one library call because `attention` has
  // accepted it. Returns "" if the library can compute the attention for the sizes of the run,
  // otherwise the reason why it cannot. Not set: the library can compute it for all sizes.
  std::function<std::string(const Fusion&, const Attention&)> attention_for_sizes;
};

// Splits a fusion into groups. The same fusion and options give the same groups on every rank. The
// values that the fusion returns do not change, but SegmentedFusion::fusion may differ from
// `fusion`:
// - Some expressions occur in several groups, as copies with other names, because several kernels
//   compute their value (ir/segment/recompute.h).
// - A kernel may compute elements of a generated value instead of reading them from memory
//   (computeGeneratedPieces() in ir/segment/choose_cats.h).
// - Some values lose their hinted memory order (ir/segment/settle_orders.h).
//
// If the sizes of the run do not allow a library call (SegmentOptions::attention_for_sizes), its
// ops become groups that contain no other ops. All other kernels are the same for all sizes, and
// need no compilation for new sizes.
SegmentedFusion segment(const Fusion& fusion, const SegmentOptions& options = {});

// Splits a fusion like segment(), but does not call SegmentOptions::attention_for_sizes. For other
// sizes, only splitCalls() (ir/segment/library_calls.h) must be called again.
SegmentedFusion segmentForAllSizes(const Fusion& fusion, const SegmentOptions& options);

// Returns the group as a separate fusion. Inputs and outputs keep their names. If several
// expressions on the same axes are equal, the fusion contains only the first of them, and each of
// them whose result is an output. Constants that the group reads are copied; all other scalars
// become scalar inputs. Meshes and shardings are copied too, because they determine which axes of a
// value are split over devices. The parts of a group (Group::parts) share no expressions in the
// result.
Fusion extract(const SegmentedFusion& segmented, const Group& group);

// Returns the text of the fusion, with the group of each expression before it (or `host` or
// `unused`, if it has none). After the fusion, the text lists the groups with the reason for each
// join and split. It ends with the notes, the memory orders of stored values, and the moves of data
// between devices (ir/passes/sharding/reshard_moves.h).
std::string dumpText(const SegmentedFusion& segmented);
// Returns the graph of expressions as Graphviz text, with one cluster per group.
std::string dumpDot(const SegmentedFusion& segmented);
// Returns the expressions, the groups and the memory orders of stored values as JSON.
std::string dumpJson(const SegmentedFusion& segmented);

}  // namespace heddle
