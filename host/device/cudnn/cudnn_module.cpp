#include "host/device/cudnn/choose_engine.h"
#include "host/device/cudnn/cudnn_attention.h"
#include "host/device/cudnn/cudnn_check.h"

namespace heddle::host::cudnn {
namespace {

int64_t version() { return static_cast<int64_t>(cudnnGetVersion()); }

std::string choose(const std::string& question, int device, Stream stream,
                   const std::string& given) {
  return chooseEngine(question, device, static_cast<cudaStream_t>(stream), given);
}

constexpr CudnnModule kModule = {version, questions,        backwardQuestions,
                                 choose,  prepareAttention, prepareAttentionBackward};

}  // namespace
}  // namespace heddle::host::cudnn

extern "C" const heddle::host::CudnnModule* heddleCudnnModule() {
  return &heddle::host::cudnn::kModule;
}
