#pragma once

#include <vector>

#include "host/program/program.h"
#include "ir/analysis/reshard_step.h"
#include "ir/base/unique_names.h"

namespace heddle::host {

// Returns the sizes that every rank allocates for its block of a tensor, as symbolic expressions.
// A sharded axis has the size of the largest block.
std::vector<Size> blockAllocation(const TensorView& tensor, const Meshes& meshes);

// An all-to-all that changes the sharding of a tensor. In the input, axis `step.joined` is sharded
// among the ranks of the team. In the result, axis `step.axis` is sharded among these ranks
// instead.
struct Exchange {
  Communicate post;  // the all-to-all, with the slots of the input and of the result
  ReshardStep step;
  AxisOrder order;      // memory order of the input
  MeshId on = kNoMesh;  // Instruction::on of all instructions of the exchange
  int line = 0;         // Instruction::line
};

// Appends the instructions of the exchange to the program. A rank receives one part from each rank
// of the team. The parts are stored one after another, in the memory order of the input. A kernel
// then moves the elements to the memory order of the result. If the result is %out, the slots are:
//
//   %out_parts     the received parts; axes: the ranks, then the axes of a part
//   %out_tiles     the same elements and axes, in the memory order of %out
//   %out_apart     view of %out_tiles: the axis of the ranks is directly before the joined axis
//   %out_padded    view of %out_apart: these two axes become one axis
//   %out           view of %out_padded without the padding
//
// `names` contains the names that slots of the program have or will get. The function adds the
// names of the new slots.
void appendExchange(Program& program, UniqueNames& names, const Exchange& exchange);

}  // namespace heddle::host
