#include "host/device/cudnn/cudnn_attention.h"
#include "host/device/cudnn/cudnn_check.h"

namespace heddle::host::cudnn {
namespace {

int64_t version() { return static_cast<int64_t>(cudnnGetVersion()); }

constexpr CudnnModule kModule = {version, prepareAttention, prepareAttentionBackward};

}  // namespace
}  // namespace heddle::host::cudnn

extern "C" const heddle::host::CudnnModule* heddleCudnnModule() {
  return &heddle::host::cudnn::kModule;
}
