#pragma once

#include <string>
#include <vector>

#include "codegen/compile/image_cache.h"
#include "codegen/kernel.h"
#include "host/device/device.h"
#include "tools/random/bounds.h"
#include "tools/random/random_fusion.h"

namespace heddle::random {

// The outputs of the fusion on a device, its inputs laid out as the case says. A scalar output is a
// 0-d tensor. `images` may be nullptr.
std::vector<HostTensor> runOn(host::Device& device, codegen::ImageCache* images,
                              const FusionCase& fusion_case);

// A device against the reference, all outputs together. What the device throws is a failure; what
// the reference throws is thrown: the fusion means nothing for these inputs.
struct CaseResult {
  Comparison comparison;
  std::string failure;  // empty: nothing wrong; else the output and the element, or an exception
};
CaseResult checkOn(host::Device& device, codegen::ImageCache* images,
                   const FusionCase& fusion_case);
CaseResult compareAll(const Fusion& fusion, const std::vector<HostTensor>& got,
                      const std::vector<Bounded>& expected);

// What needs no device: verify, print and parse, the parsed text by the reference, dense against
// sparse evaluation, what segmentation promises, lowering, and a run of the null device. Empty when
// all is well.
std::string checkWithoutDevice(const FusionCase& fusion_case);

}  // namespace heddle::random
