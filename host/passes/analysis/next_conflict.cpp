#include "host/passes/analysis/next_conflict.h"

#include <algorithm>

namespace heddle::host {

NextConflict::NextConflict(const BufferAccesses& items)
    : items_(items), accessed_(items.allocate.size()), written_(items.allocate.size()) {
  for (size_t i = 0; i < items.items.size(); ++i) {
    for (const ItemAccess& access : items.items[i].accesses) {
      accessed_[access.root].push_back(i);
      if (access.write) written_[access.root].push_back(i);
    }
  }
}

size_t NextConflict::find(size_t of, size_t after) const {
  const Item& item = items_.items[of];
  size_t first = items_.items.size();
  for (const ItemAccess& access : item.accesses) {
    const std::vector<size_t>& list = access.write ? accessed_[access.root] : written_[access.root];
    auto next = std::upper_bound(list.begin(), list.end(), after);
    while (next != list.end() && *next < first && !items_.conflict(item, items_.items[*next])) {
      ++next;
    }
    if (next != list.end()) first = std::min(first, *next);
  }
  return first;
}

}  // namespace heddle::host
