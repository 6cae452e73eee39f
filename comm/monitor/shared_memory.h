#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <type_traits>

#include "comm/communicator.h"
#include "comm/monitor/rank_locations.h"

namespace heddle::comm {

// Returns memory that all ranks of a machine share. It has no name in the file system, and exists
// while a process maps it. The lowest rank of the machine calls `construct` with the address of the
// memory, before the other ranks access it. If one process contains all ranks of a machine, these
// ranks get the same address. Otherwise each rank maps the memory at an address of its own. Every
// address is the start of a page. `what` names the memory in messages.
//
// Collective over the job. If the call fails on one rank, every rank of the job throws UserError
// with the reason.
std::shared_ptr<void> shareOnMachine(World& world, const RankLocations& locations,
                                     const std::string& what, size_t bytes,
                                     const std::function<void(void*)>& construct);

// Returns shared memory with `count` default-constructed objects. Their destructors are not called.
template <class T>
std::shared_ptr<T[]> shareArrayOnMachine(World& world, const RankLocations& locations,
                                         const std::string& what, size_t count) {
  static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= 64);
  const auto memory = shareOnMachine(world, locations, what, count * sizeof(T), [count](void* at) {
    for (size_t i = 0; i < count; ++i) new (static_cast<T*>(at) + i) T;
  });
  return {memory, static_cast<T*>(memory.get())};
}

}  // namespace heddle::comm
