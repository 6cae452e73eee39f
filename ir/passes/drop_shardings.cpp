#include "ir/passes/drop_shardings.h"

namespace heddle {

Fusion dropShardings(const Fusion& fusion, int64_t job_size) {
  if (job_size != 1) return fusion;
  Fusion result = fusion;
  for (ValueId id : result.values().ids()) {
    result.setSharding(id, std::nullopt);
    result.mutableValue(id).user_sharding = false;
  }
  return result;
}

}  // namespace heddle
