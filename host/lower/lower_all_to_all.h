#pragma once

#include <vector>

#include "host/program/program.h"
#include "ir/analysis/reshard_step.h"
#include "ir/base/unique_names.h"

namespace heddle::host {

// Returns the sizes that every rank allocates for its block, as symbolic expressions. A sharded
// axis has the size of the largest block.
std::vector<Size> blockAllocation(const TensorView& tensor, const Meshes& meshes);

// The all-to-all of a reshard expression. It splits axis `step.axis` of `post.in` among the ranks
// of the team, and joins axis `step.joined`.
struct Exchange {
  Communicate post;
  ReshardStep step;
  AxisOrder order;
  MeshId on = kNoMesh;
  int line = 0;
};

// Appends the instructions of the exchange to the program. The parts of the ranks are received one
// after another, each in the memory order of its sender. A kernel then moves the elements to the
// memory order of the result:
//
//   %out_parts     received: [ranks, the axes of a part]
//   %out_tiles     the same elements in the memory order of %out
//   %out           view of %out_tiles: the ranks and the joined axis become one axis, and the
//                  padding is left out
// `names` contains the names of the slots of the program, and gets those of the new slots.
void appendExchange(Program& program, UniqueNames& names, const Exchange& exchange);

}  // namespace heddle::host
