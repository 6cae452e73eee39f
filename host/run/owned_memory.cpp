#include "host/run/owned_memory.h"

#include "ir/base/check.h"

namespace heddle::host {

void OwnedMemory::ask(const void* data, const char* kind, int32_t position,
                      const std::string& name) const {
  const std::string owner = device_.otherOwner(data);
  HEDDLE_USER_CHECK(owner.empty(), "{} {} (%{}) is in the memory of {}, but the run is on {}", kind,
                    position, name, owner, device_.description());
}

}  // namespace heddle::host
