#pragma once

#include <memory>

#include "host/attention.h"

namespace heddle::host::cudnn {

// CudnnModule::prepare. Thread-safe. The handle of a device is made for the first attention that is
// prepared there, and lives as long as any of them.
std::shared_ptr<const PreparedMatmul> prepareAttention(const AttentionSpec& spec, int device);

}  // namespace heddle::host::cudnn
