#pragma once

#include <cstddef>
#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// Functions that move items (top-level instructions) of a program whose author has not ordered its
// streams (isUnordered() in host/passes/analysis/buffer_accesses.h is true). They keep the order of
// two items if one depends on the other. This is the case if their accesses conflict, if one uses a
// slot that the other defines, if one waits for the other, or if both post operations.

// A request to move `item` before `target`. Both are indices into Program::body.
struct ItemMove {
  size_t item;
  size_t target;
};

// Processes the requests one after another: moves each item, and the items on which it depends,
// before its target. Skips a request if the item already precedes the target, or depends on the
// target. Stops after `most` moves. Returns the number of moves.
size_t moveBefore(Program& program, const std::vector<ItemMove>& moves, size_t most);

// Moves all items that write an input, and all items that depend on them, after the last Allocate
// of the program. Items that already follow this Allocate do not move. All temporaries therefore
// exist before the first input changes.
void delayInputWrites(Program& program);

// Moves each Allocate that follows an item that writes an input before the first such item.
void hoistAllocations(Program& program);

}  // namespace heddle::host
