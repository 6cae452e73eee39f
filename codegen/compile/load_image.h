#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/kernel.h"

namespace heddle::codegen {

// Creates an image from its bytes, and checks that the image is complete and contains the kernels
// `entries`. Throws UserError with the reason if the image cannot be used.
// - Cuda: checks the ELF headers. Does not load the image, because this process may have no device.
// - Cpp: loads the image by dlopen(), from the open file `file`, which must contain `bytes`. If
//   `file` is -1, loads it from `bytes`.
std::shared_ptr<const KernelImage> loadImage(Target target, const std::vector<std::string>& entries,
                                             std::string_view bytes, int file = -1);

}  // namespace heddle::codegen
