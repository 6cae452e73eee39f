#pragma once

#include <memory>
#include <set>
#include <string>

#include "host/device/attention.h"

namespace heddle::host::cudnn {

// These functions implement the members of CudnnModule (host/device/attention.h). Thread-safe. All
// prepared attentions of a device share one cuDNN handle.
std::set<std::string> questions(const AttentionSpec& spec);
std::set<std::string> backwardQuestions(const AttentionBackwardSpec& spec);
std::shared_ptr<const PreparedAttention> prepareAttention(const AttentionSpec& spec, int device,
                                                          const AlgorithmChoices& choices);
std::shared_ptr<const PreparedAttention> prepareAttentionBackward(const AttentionBackwardSpec& spec,
                                                                  int device,
                                                                  const AlgorithmChoices& choices);

}  // namespace heddle::host::cudnn
