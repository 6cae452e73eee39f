#pragma once

#include <cstddef>
#include <vector>

#include "host/passes/analysis/buffer_accesses.h"

namespace heddle::host {

// Finds the items that follow an item and conflict with it (BufferAccesses::conflict). Only the
// items that access a buffer of the item are examined, because a program may have many others.
class NextConflict {
 public:
  explicit NextConflict(const BufferAccesses& items);

  // Returns the first item after item `after` that conflicts with item `of`. Returns the number of
  // items if there is none.
  size_t find(size_t of, size_t after) const;

 private:
  const BufferAccesses& items_;
  IdVector<RootId, std::vector<size_t>> accessed_;  // the items that access a root, ascending
  IdVector<RootId, std::vector<size_t>> written_;   // the items that write it
};

}  // namespace heddle::host
