#pragma once

#include <cstdint>
#include <string>

#include "host/program/program.h"
#include "ir/base/unique_names.h"
#include "ir/graph/fusion.h"

namespace heddle::host {

// Appends the instructions that store outputs in inputs: for `return %w1 in %w`, a Copy of %w1 to
// %w. This Copy is at the end of the program, so all reads of %w are before it. The pass
// write_in_place (host/passes/write_in_place.h) removes the Copy if it can.
//
// - If an output is the input %w or a view of it, the Copy to %w would overwrite this output. The
//   function therefore first copies this output to a new slot. Examples: `return %v, %w1 in %w`,
//   where %v is a view of %w; `return %a in %b, %b in %a`.
//   The name of the new slot is the name of the output with kKeptSuffix, and perhaps a number.
// - `return %w in %w` needs no Copy.
// - If a collective computes the output with padding, %w gets the same padding. inputDesc()
//   (host/tensor.h) then asks the caller for this padding. Exceptions: a %w of which a view
//   regroups the axes (Alias::Reshape) gets no padding, and a %w that already has padding keeps it.
//
// Requires that program.inputs and program.outputs have the slots of the fusion's inputs and
// outputs, and that Slot::alloc of all slots is final. `job_size` is the number of ranks.
inline constexpr const char* kKeptSuffix = "_kept";
void appendReuses(Program& program, UniqueNames& names, const Fusion& fusion, int64_t job_size);

// Returns the name of the slot of an output, without '%'. An output that is stored in an input
// therefore has the name of the input. If appendReuses() has replaced the output by a new slot with
// a copy of it, returns the name of the slot that was copied.
const std::string& outputName(const Program& program, size_t output);

}  // namespace heddle::host
