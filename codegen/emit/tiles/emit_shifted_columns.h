#pragma once

#include <functional>
#include <string>

#include "codegen/emit/kernel_text.h"
#include "codegen/tile/program.h"

namespace heddle::codegen {

// These functions write the parts of the CUDA text of a reduction that depend on shifted columns
// (codegen/plan/shift_columns.h). The text uses variables of the kernel: `active`, `share`,
// `column`, `range_begin`, `kept` and `kept_items`, and the coordinates of the kept item.

// Writes the variable `shift`: the shift of the thread. It is the shift of the first row that the
// thread reduces.
void writeShift(TextWriter& out, const TileProgram& program);

// Writes the variables `first_lane` and `count`. Lanes `first_lane` to `count` - 1 of a vector have
// elements of the row.
void writeShiftedLanes(TextWriter& out, const TileProgram& program);

// Returns a statement that loads a vector of the input `access` to `to`. `streams` is "" or
// ", true" (Schedule::streams). The text uses `shift`, `first_lane` and `count`.
std::string shiftedLoadText(const Access& access, int32_t lanes, const char* streams,
                            const std::string& to);

// Returns a condition: the thread stores the results of its columns. The condition begins with
// `before`. Returns "" if columns are not shifted: all threads that reduce elements then do.
std::string ownsColumns(const Schedule& schedule, const std::string& before);

// Returns the condition under which a thread of any reduction reduces elements. In the second half
// of a shifted kernel, the last column of a block reduces nothing, because the next block has the
// same column.
std::string reducesColumn(const Schedule& schedule);

// Returns the place in shared memory of the state for a lane, a share and a column. The three
// arguments are texts.
using StatePlace =
    std::function<std::string(const char* lane, const std::string& share, const char* column)>;

// Writes the states of a thread to the places of the columns to which they belong. A barrier must
// follow.
void writeMoveToColumns(TextWriter& out, const TileProgram& program, AccumulatorId a,
                        const StatePlace& place);

}  // namespace heddle::codegen
