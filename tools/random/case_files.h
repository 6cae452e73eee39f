#pragma once

#include <string>

#include "tools/random/random_fusion.h"

namespace heddle::random {

// A case as files: PATH.fusion, PATH.NAME.npy for each tensor input, and PATH.layouts, one line an
// input that is not dense: `NAME offset strides...`. Scalars become defaults of the fusion.
void writeCase(const FusionCase& fusion_case, const std::string& path);
FusionCase readCase(const std::string& fusion_file);

// `heddle run PATH.fusion --input ... --check=full`, for files that writeCase made. It lays inputs
// out densely: what fails by a layout needs `heddle-fuzz --replay PATH.fusion`.
std::string replayCommand(const FusionCase& fusion_case, const std::string& path);

}  // namespace heddle::random
