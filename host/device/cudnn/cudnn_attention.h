#pragma once

#include <memory>

#include "host/device/attention.h"

namespace heddle::host::cudnn {

// Implement CudnnModule::prepare and prepareBackward. Thread-safe. The first attention that is
// prepared on a device creates the device's handle. The handle exists as long as one of the
// prepared attentions.
std::shared_ptr<const PreparedAttention> prepareAttention(const AttentionSpec& spec, int device);
std::shared_ptr<const PreparedAttention> prepareAttentionBackward(const AttentionBackwardSpec& spec,
                                                                  int device);

}  // namespace heddle::host::cudnn
