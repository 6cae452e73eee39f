#pragma once

#include <memory>

#include "host/device/attention.h"

namespace heddle::host::cudnn {

// These functions implement CudnnModule::prepare and prepareBackward (host/device/attention.h).
// Thread-safe. All prepared attentions of a device share one cuDNN handle. The first one creates
// the handle, and the last one destroys it.
std::shared_ptr<const PreparedAttention> prepareAttention(const AttentionSpec& spec, int device);
std::shared_ptr<const PreparedAttention> prepareAttentionBackward(const AttentionBackwardSpec& spec,
                                                                  int device);

}  // namespace heddle::host::cudnn
