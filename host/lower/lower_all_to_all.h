#pragma once

#include <vector>

#include "host/program/program.h"
#include "ir/analysis/reshard_step.h"

namespace heddle::host {

// The symbolic sizes that every rank allocates for its block.
std::vector<Size> blockAllocation(const TensorView& tensor, const Meshes& meshes);

// An all-to-all of a reshard expression: `post.in`, which lies densely in `order` with the axis
// that is cut outermost, to `post.out` in its own order.
struct Exchange {
  Communicate post;
  ReshardStep step;
  AxisOrder order;
  MeshId on;
  int line = 0;
};

// Appends its instructions: the parts of the ranks are received one after the other, each as it lay
// at the sender, and a kernel puts them where the order of the result wants them:
//
//   %out_parts     [ranks, the axes of a part]        received
//   %out_tiles     the same, in the memory of %out
//   %out = view of it, the ranks and the joined axis as one axis, without the padding
void appendExchange(Program& program, const Exchange& exchange);

}  // namespace heddle::host
