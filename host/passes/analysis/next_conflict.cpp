#include "host/passes/analysis/next_conflict.h"

#include <algorithm>

namespace heddle::host {

NextConflict::NextConflict(const BufferAccesses& items)
    : items_(items),
      accessed_(static_cast<size_t>(items.roots)),
      written_(static_cast<size_t>(items.roots)) {
  for (size_t i = 0; i < items.items.size(); ++i) {
    for (const ItemAccess& access : items.items[i].accesses) {
      const auto root = static_cast<size_t>(access.root);
      accessed_[root].push_back(i);
      if (access.write) written_[root].push_back(i);
    }
  }
}

size_t NextConflict::find(size_t of, size_t after) const {
  const Item& item = items_.items[of];
  size_t first = items_.items.size();
  for (const ItemAccess& access : item.accesses) {
    const auto root = static_cast<size_t>(access.root);
    const std::vector<size_t>& list = access.write ? accessed_[root] : written_[root];
    auto next = std::upper_bound(list.begin(), list.end(), after);
    while (next != list.end() && *next < first && !items_.conflict(item, items_.items[*next])) {
      ++next;
    }
    if (next != list.end()) first = std::min(first, *next);
  }
  return first;
}

}  // namespace heddle::host
