#pragma once

#include <string>
#include <vector>

#include "codegen/compile/image_cache.h"
#include "codegen/kernel.h"
#include "host/device/device.h"
#include "tools/random/bounds.h"
#include "tools/random/random_fusion.h"

namespace heddle::random {

// Runs the fusion on a device with the memory layouts of the case, and returns its outputs. A
// scalar output becomes a 0-d tensor. `images` may be nullptr.
std::vector<HostTensor> runOn(host::Device& device, codegen::ImageCache* images,
                              const FusionCase& fusion_case);

// Compares all outputs of a device with the reference. An exception of the device is a failure of
// the case. An exception of the reference is thrown to the caller, because the fusion then has no
// meaning for these inputs.
struct CaseResult {
  Comparison comparison;
  std::string failure;  // empty: none; else the output and the element, or an exception
};
CaseResult checkOn(host::Device& device, codegen::ImageCache* images,
                   const FusionCase& fusion_case);
CaseResult compareAll(const Fusion& fusion, const std::vector<HostTensor>& got,
                      const std::vector<Bounded>& expected);

// Runs all checks that need no device. Returns an empty string, or a description of the fault. The
// checks are: verify; print and parse; the parsed text by the reference; dense against sparse
// evaluation; the guarantees of segmentation; lowering; and a run on the null device.
std::string checkWithoutDevice(const FusionCase& fusion_case);

}  // namespace heddle::random
