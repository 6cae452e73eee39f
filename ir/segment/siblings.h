#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ir/analysis/kernel_rules.h"
#include "ir/segment/segment_graph.h"

namespace heddle {

// Merges kernels that read the same tensor, so that the tensor is read only once. For example, the
// sums of g and of g * x over the same axis become one kernel.
//
// Two kernels are merged if all of this is true:
// - Both read a value that neither computes, and they do not read it at computed indices, as a take
//   does (rule 6 in ir/analysis/kernel_rules.h). No value of the two kernels has more axes than
//   this value.
// - The value has no sharding. (In a job of several ranks, a collective could need only one of the
//   results, and would have to wait for both.)
// - Together they satisfy the rules of kernels (ir/analysis/kernel_rules.h), have at most
//   kMostSiblingExprs expressions, and store at most kMostSiblingStores values. More values would
//   need too many registers.
// - No other group has to run between the two.
// - The earlier kernel is one of the last four kernels that read the value before the later one.
//   This limits the time of the search.
//
// `readers` is the result of readersOf() (ir/analysis/kernel_rules.h). `is_kernel` says whether an
// expression belongs to a generated kernel. Returns the reason for each merge, and an expression of
// the merged group.
inline constexpr size_t kMostSiblingExprs = 64;
inline constexpr size_t kMostSiblingStores = 8;
std::vector<std::pair<ExprId, std::string>> joinSiblings(
    const Fusion& fusion, SegmentGraph& graph, KernelRules& rules,
    const IdVector<ValueId, std::vector<ExprId>>& readers,
    const std::function<bool(ExprId)>& is_kernel);

}  // namespace heddle
