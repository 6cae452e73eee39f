#pragma once

#include <cstddef>
#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// Functions that move items (top-level instructions) of a program whose author has not ordered its
// streams (isUnordered() in host/passes/analysis/buffer_accesses.h is true). They keep the order of
// two items if one depends on the other. This is the case if their accesses conflict, if one uses a
// slot that the other defines, if one waits for the other, or if both post operations.

// A wish to have one item before another. Both are indices into Program::body.
struct ItemMove {
  size_t item;
  size_t target;
};

// Fulfils the wishes one after the other: moves each item, and the items on which it depends,
// before its target. Skips a wish if the item precedes its target already, or depends on it. Stops
// after `most` moves. Returns the number of moves.
size_t moveBefore(Program& program, const std::vector<ItemMove>& moves, size_t most);

// Moves the first item that writes an input, and all items that depend on it or also write an
// input, after the last Allocate of the program. Temporaries that only later items need therefore
// exist before the inputs change.
void delayInputWrites(Program& program);

// Moves each Allocate that follows an item that writes an input before the first such item.
void hoistAllocations(Program& program);

}  // namespace heddle::host
