#pragma once

#include <cstddef>
#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// Functions that move items (top-level instructions) of a program whose author has not ordered its
// streams (isUnordered() in host/passes/analysis/buffer_accesses.h is true). moveBefore() and
// delayInputWrites() keep the order of two items if one depends on the other. One item depends on
// another in each of these cases:
// - Their accesses conflict.
// - One item uses a slot that the other item defines.
// - Both items name the same token: each of them posts an operation with it or waits for it.
// - Both items post operations.
// The operation of a post may access memory until its wait, so a Wait has the accesses of its post.

// A wish to move all `items` before the item `target`. All numbers are indices into Program::body
// before the first move.
struct ItemMove {
  std::vector<size_t> items;
  size_t target;
};

// Fulfils wishes one after the other: moves the items of a wish, and the items on which they
// depend, before the target. Starts with the wishes that the program fulfils already, so that later
// moves respect them. Skips a wish if it contradicts a dependency or an earlier wish. Returns
// whether an item moved.
bool moveBefore(Program& program, const std::vector<ItemMove>& wishes);

// Moves all items that write an input, and all items that depend on them, after the last Allocate
// of the program. Items that already follow this Allocate do not move. All buffers that the program
// allocates at the top level therefore exist before the first input changes.
void delayInputWrites(Program& program);

// Let w be the first item that writes an input. Moves every Allocate that follows w to a position
// directly before w. Exception: an Allocate stays where it is if it would pass an item that names
// its slot.
void hoistAllocations(Program& program);

}  // namespace heddle::host
