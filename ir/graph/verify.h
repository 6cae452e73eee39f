#pragma once

#include "ir/base/size.h"
#include "ir/graph/fusion.h"

namespace heddle {

// Checks that a fusion is valid. Pipelines call it as PassOptions (ir/base/pass_options.h) states.
// Throws InternalError, which names what is wrong, if one of these conditions is false:
//  - meshes have unique names, and each axis of a mesh has devices and occurs once in the mesh
//  - ids are in range, and each value is defined before it is read (SSA order)
//  - each value has one definition and a unique name; only scalar inputs have defaults
//  - an output that is stored in an input has the dtype and the rank of the input, and no other
//    output is stored in this input
//  - attributes have the types that the op table (ir/ops/op.h) states
//  - shapes and dtypes follow the rules of the op; a broadcast axis has extent 1
//  - a sharding uses axes of its mesh, each at most once, and splits only iteration axes
//  - no integer or bool tensor is partial with avg
//  - a stream split (Sharding::StreamSplit) names an axis of the tensor and at least one chunk
//  - the memory orders in a layout are permutations of the axes
//  - no annotation contains the id of a value that does not exist
void verify(const Fusion& fusion);

// Throws UserError if a size of the fusion uses a symbol of host programs: `rank`, `ranks` or
// `@m.x`. The reason: a fusion must compute the same values in every job and on every rank. Also
// throws if a size contains the value `%n` and %n is not an integer input without axes.
void checkSizeSymbols(const Fusion& fusion);

// Evaluates every extent whose symbols all have values. Throws UserError, with the name and the
// line of the value, in these cases:
//  - An extent overflows, divides by zero or is negative.
//  - All extents of a value are known, and its size in bytes does not fit in 64 bits. An extent of
//    0 counts as 1, as in the types of slots (host/unroll/scope.h).
void checkSizes(const Fusion& fusion, const SizeBindings& sizes);

// Returns true if checkSizes() needs to check only inputs and outputs, because valid sizes of these
// imply valid sizes of all other tensors. Every other tensor must meet this condition: apart from
// extents of 1, it has only extents of the last input or output before it, in the same order, and
// its elements are not larger.
bool hasOnlySizesOfOperands(const Fusion& fusion);

}  // namespace heddle
