#include <algorithm>

#include "ir/base/check.h"
#include "ir/segment/library_calls.h"

namespace heddle {
namespace {

// Returns whether every rank that computes the results of `backward` also computes the results of
// `forward`. A value without a sharding is computed on all ranks of the job.
bool runsWhere(const Fusion& fusion, const Attention& forward, const Attention& backward) {
  const std::optional<Sharding>& has = fusion.tensor(forward.results[0]).sharding;
  const std::optional<Sharding>& needs = fusion.tensor(backward.results[0]).sharding;
  return !has || (needs && has->mesh == needs->mesh);
}

bool isForwardOf(const Fusion& fusion, const Attention& forward, const Attention& backward) {
  return !forward.backward && !forward.gqa && forward.q == backward.q && forward.k == backward.k &&
         forward.v == backward.v && forward.scale == backward.scale &&
         forward.causal == backward.causal && runsWhere(fusion, forward, backward);
}

}  // namespace

void reuseForwards(SegmentedFusion& segmented) {
  std::vector<Group>& groups = segmented.groups;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!groups[i].attention || !groups[i].attention->backward) continue;
    Attention& backward = *groups[i].attention;
    const auto forward = std::ranges::find_if(groups, [&](const Group& group) {
      return group.attention && isForwardOf(segmented.fusion, *group.attention, backward);
    });
    if (forward == groups.end()) continue;
    forward->attention->keeps_log_sums = true;
    backward.forward = forward->attention->results[0];
    const auto at = groups.begin() + static_cast<ptrdiff_t>(i);
    if (at < forward) std::rotate(at, forward, forward + 1);
  }
  for (size_t g = 0; g < groups.size(); ++g) {
    for (ExprId id : groups[g].exprs) segmented.group_of[id] = static_cast<int>(g);
  }
}

std::string describeReuse(const Fusion& fusion, const Attention& attention) {
  if (!attention.backward) {
    return attention.keeps_log_sums
               ? "stores the log-sum-exp of each row of scores for the backward"
               : "";
  }
  if (attention.forward != kNoValue) {
    return fmt::format("reads %{} and the log-sum-exps that the forward stores",
                       fusion.value(attention.forward).name);
  }
  return "computes the forward again: no library call computes a forward with the same q, k, v, "
         "scale and mask on the same ranks";
}

TensorView logSumsFor(TensorView o) {
  o.dtype = DType::F32;
  o.domain.pop_back();
  o.layout = {};
  if (o.sharding) o.sharding->axes.resize(o.rank());
  return o;
}

}  // namespace heddle
