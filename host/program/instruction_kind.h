#pragma once

#include <cstdint>

namespace heddle::host {

// The kind of an instruction, for passes that treat several instructions alike.
enum class InstructionKind : uint8_t {
  Memory,   // allocates or frees a buffer
  View,     // defines a view, or computes a scalar on the host; accesses no memory of a tensor
  Work,     // reads or writes tensors on a stream; Print may print a scalar instead
  Post,     // posts an operation in which other ranks take part
  Group,    // begins or ends a group of posts
  Order,    // orders streams
  Control,  // contains other instructions (its bodies)
  Call      // runs another program; inlineCalls() replaces it by the body of this program
};

}  // namespace heddle::host
