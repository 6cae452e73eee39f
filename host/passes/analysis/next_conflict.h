#pragma once

#include <cstddef>
#include <vector>

#include "host/passes/analysis/buffer_accesses.h"

namespace heddle::host {

// Finds the next item that conflicts with an item (BufferAccesses::conflict). An index by buffer
// makes this fast: a search visits only the items that access the same buffers.
class NextConflict {
 public:
  explicit NextConflict(const BufferAccesses& items);

  // Returns the first item after item `after` that conflicts with item `of`. Returns the number of
  // items if there is none.
  size_t find(size_t of, size_t after) const;

 private:
  const BufferAccesses& items_;
  IdVector<RootId, std::vector<size_t>> accessed_;  // per root: the items that access it, ascending
  IdVector<RootId, std::vector<size_t>> written_;   // per root: the items that write it, ascending
};

}  // namespace heddle::host
