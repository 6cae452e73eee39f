#include "ir/passes/drop_shardings.h"

namespace heddle {

Fusion dropShardings(Fusion fusion, int64_t job_size) {
  if (job_size != 1) return fusion;
  for (ValueId id : fusion.values().ids()) {
    fusion.setSharding(id, std::nullopt);
    fusion.mutableValue(id).user_sharding = false;
  }
  return fusion;
}

}  // namespace heddle
