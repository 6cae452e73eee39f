#include "host/program_key/attention_search.h"

#include "ir/graph/remove_dead.h"

namespace heddle::host {

AttentionSearch::AttentionSearch(const Fusion& fusion, DeviceKind device) {
  if (device != DeviceKind::Cuda) return;
  live_ = removeDead(fusion);
  found_ = attentionsOf(live_);
}

std::vector<int64_t> AttentionSearch::decidingSizesFor(const SizeBindings& sizes) const {
  std::vector<int64_t> all;
  if (sizes.empty()) return all;
  for (const Attention& attention : found_) {
    const std::vector<int64_t> deciding = decidingSizes(live_, attention, sizes);
    all.insert(all.end(), deciding.begin(), deciding.end());
  }
  return all;
}

}  // namespace heddle::host
