#pragma once

#include <cstddef>
#include <string_view>

#include "ir/segment/segment.h"

namespace heddle {

// The reason why two independent kernels do not share a launch.
enum class Apart : uint8_t {
  SharedTensor,  // both read the same tensor with axes
  Devices,       // different ranks run them
  Delay,         // a collective that depends on one of them would start later
  Collectives,   // they depend on different collectives
  Overlap,       // a library call reads a result while collectives run
  Distance,      // too many groups run between them
  Memory,        // too many values would be in memory at the same time
  Full,          // the launch has as many parts as it may have, or no room for another body
};
std::string_view text(Apart why);

// Joins independent pointwise kernels into groups that need one launch each (Group::parts), for
// example the updates of all parameters by an optimizer. Two kernels are independent if no path of
// values leads from one to the other. The parts of a group keep their own iteration spaces.
//
// A kernel joins an earlier group and then runs when this group runs, before the groups between
// them. It joins if all of this is true. ("The two kernels" are this kernel and each kernel of the
// earlier group.)
// - Neither kernel has reductions. All groups on which the kernel depends run before the earlier
//   group.
// - The earlier group is one of the last four groups that a kernel may join.
// - The two kernels read no common tensor, except tensors without axes. (Kernels that read a common
//   tensor may become one kernel instead: ir/segment/siblings.h.)
// - Neither kernel stores a result in a reused input (Fusion::reuses()) that a later group reads,
//   and neither is such a later reader. ("Later" means later in the order of groups. A view does
//   not count as a reader.) Earlier readers count as groups on which the storing kernel depends.
// - Their results are on the same mesh.
// - No collective depends on one of them, or on a group between them. Both depend on the same
//   collectives. If there are such collectives, no library call reads results of the two kernels,
//   directly or through other groups. Chunks of such a call may overlap with a collective
//   (host/passes/chunk).
// - At most kMostGroupsBetween groups other than views run between them.
// - The group has at most kMostHeldParts parts that need additional memory. Such a part stores a
//   value in new memory and reads a result of another group, or stores a value that the fusion does
//   not return and moves before another group. All these values are in memory at the same time.
// - The group has at most kMostParts parts. A *body* is the generated code of a part. Two parts
//   have the same body if they differ only in the sizes of their axes, but have axes of one element
//   at the same positions. The group has one body, or at most kMostBodies bodies with together at
//   most kMostBodyExprs expressions. The reason: every part gets as many registers as the largest
//   body needs, and each body takes time to compile.
//
// The rules do not look at sizes, so every rank joins the same kernels. Within these limits a join
// always saves time: a thread block finds its part in less time than a launch takes.
inline constexpr size_t kMostGroupsBetween = 8;
inline constexpr size_t kMostHeldParts = 8;
inline constexpr size_t kMostParts = 256;
inline constexpr size_t kMostBodies = 4;
inline constexpr size_t kMostBodyExprs = 64;
void joinIndependent(SegmentedFusion& segmented);

}  // namespace heddle
