#pragma once

#include <memory>

#include "host/device/attention.h"

namespace heddle::host::cudnn {

// CudnnModule::prepare and prepareBackward. Thread-safe. The handle of a device is made for the
// first attention that is prepared there, and lives as long as any of them.
std::shared_ptr<const PreparedAttention> prepareAttention(const AttentionSpec& spec, int device);
std::shared_ptr<const PreparedAttention> prepareAttentionBackward(const AttentionBackwardSpec& spec,
                                                                  int device);

}  // namespace heddle::host::cudnn
