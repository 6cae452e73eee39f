#pragma once

#include <cstdint>

namespace heddle::host {

// The kind of an instruction, for passes that treat several instructions alike.
enum class InstructionKind : uint8_t {
  Memory,   // allocates or frees a buffer
  View,     // defines a view or a scalar on the host; accesses no memory of a tensor
  Work,     // reads or writes tensors on a stream
  Post,     // posts an operation in which other ranks take part
  Group,    // begins or ends a group of posts
  Order,    // orders streams
  Control,  // contains other instructions (its bodies)
  Call      // runs another program; inlineCalls() removes it
};

}  // namespace heddle::host
