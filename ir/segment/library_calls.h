#pragma once

#include <string>

#include "ir/segment/segment.h"

namespace heddle {

// Functions for groups (Group in ir/segment/segment.h) that have a Group::attention. Such a group
// computes an attention, or the backward of an attention, in one library call.

// Replaces each library call that the sizes of a run do not allow
// (SegmentOptions::attention_for_sizes) by groups of the ops of this call. `segmented` is a result
// of segmentForAllSizes(). Only the ops of these calls are segmented again. All other groups keep
// their ops and the order of these ops, so kernels keep their schedules and argument layouts. An
// attention that stays a library call no longer shares results with one that was split.
SegmentedFusion splitCalls(SegmentedFusion segmented, const SegmentOptions& options);

// Lets each backward attention read the results of a forward attention: sets Attention::forward of
// the backward and Attention::keeps_log_sums of the forward. Without this, the library call of the
// backward computes the forward again.
//
// A backward can read the results of a forward if all of these conditions are true:
// - Each of them is one group, that is, one library call.
// - Both have the same values q, k and v, the same scale and the same mask. Neither is a
//   grouped-query attention (Attention::gqa).
// - Every rank that computes the backward also computes the forward.
// If the forward is after the backward in the order of the groups, the function moves it directly
// before the backward. This is legal, because the backward reads all operands of the forward.
void reuseForwards(SegmentedFusion& segmented);

// Returns a text for dumpText() that says whether the attention shares results with its
// backward or forward. Returns "" for a forward that no backward reads.
std::string describeReuse(const Fusion& fusion, const Attention& attention);

// Returns the type of the tensor for the log-sum-exps of a forward with the result `o`. It is f32,
// has all axes of `o` except the last one (the width, see Attention::q), and is row-major.
TensorView logSumsFor(TensorView o);

}  // namespace heddle
