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
// scalar output becomes a tensor without axes. If `images` is nullptr, the run uses an image cache
// in the default folder.
std::vector<HostTensor> runOn(host::Device& device, codegen::ImageCache* images,
                              const FusionCase& fusion_case);

struct CaseResult {
  Comparison comparison;
  std::string failure;  // text about a wrong output, or the exception; empty: no failure
};

// checkOn() runs the case on a device and compares all outputs with the reference. compareAll()
// compares outputs that have already been computed. An exception of the device run counts as a
// failure of the case. An exception of the reference is passed on to the caller, because the fusion
// is then not defined for these inputs.
CaseResult checkOn(host::Device& device, codegen::ImageCache* images,
                   const FusionCase& fusion_case);
CaseResult compareAll(const Fusion& fusion, const std::vector<HostTensor>& got,
                      const std::vector<Bounded>& expected);

// Runs all checks that need neither a CPU device nor a GPU. Returns an empty string, or a
// description of the fault. An exception of the reference is passed on to the caller. The checks
// are:
// - verify() accepts the fusion.
// - Printing and parsing give the same fusion, and the reference gives the same results for it.
// - The reference computes the same elements in dense and in sparse evaluation.
// - Segmentation puts each expression into at most one group (segment), and orders the groups so
//   that each group comes after those whose results it reads. Together, the groups give the same
//   results as the fusion.
// - Lowering gives a host program that host::verify() accepts, and whose text stays the same after
//   parsing and printing. A run on the null device (host/device/null), which computes nothing,
//   succeeds.
std::string checkWithoutDevice(const FusionCase& fusion_case);

}  // namespace heddle::random
