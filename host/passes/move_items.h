#pragma once

#include <cstddef>

#include "host/program/program.h"

namespace heddle::host {

// Functions that move items (top-level instructions) of a program whose author has not ordered its
// streams (isUnordered() in host/passes/analysis/buffer_accesses.h is true). They keep the order of
// two items if one depends on the other. This is the case if their accesses conflict, if one uses a
// slot that the other defines, if one waits for the other, or if both post operations.

// Moves item `item`, and the items on which it depends, before the earlier item `target`. Returns
// false, and changes nothing, if item `item` depends on `target`.
bool moveBefore(Program& program, size_t item, size_t target);

// Moves the first item that writes an input, and all items that depend on it or also write an
// input, after the last Allocate of the program. Temporaries that only later items need therefore
// exist before the inputs change.
void delayInputWrites(Program& program);

// Moves each Allocate that follows an item that writes an input before the first such item.
void hoistAllocations(Program& program);

}  // namespace heddle::host
