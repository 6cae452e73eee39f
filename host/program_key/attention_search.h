#pragma once

#include <cstdint>
#include <vector>

#include "host/device/attention.h"
#include "host/device/device.h"
#include "ir/graph/fusion.h"

namespace heddle::host {

// The attentions of a fusion that a library may compute. The constructor removes dead values before
// the search, as the passes of a compilation do. The reason: the search rejects an attention if a
// value outside of the attention reads one of its intermediate values. A dead reader must not have
// this effect.
class AttentionSearch {
 public:
  AttentionSearch() = default;
  // Finds nothing if `device` is not a CUDA device, because only cuDNN computes attentions.
  AttentionSearch(const Fusion& fusion, DeviceKind device);

  bool empty() const { return found_.empty(); }
  // Returns the properties of `sizes` that decide whether the library computes the attentions: the
  // results of decidingSizes() (host/device/attention.h) for all of them, in one list. Runs with
  // equal lists can share a program. Returns an empty list if `sizes` is empty.
  std::vector<int64_t> decidingSizesFor(const SizeBindings& sizes) const;

 private:
  Fusion live_;  // the fusion without dead values
  std::vector<Attention> found_;
};

}  // namespace heddle::host
