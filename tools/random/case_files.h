#pragma once

#include <string>

#include "tools/random/random_fusion.h"

namespace heddle::random {

// writeCase() writes a case (FusionCase in tools/random/random_fusion.h) as files, and readCase()
// reads the files. PATH is the parameter `path`, or `fusion_file` without its extension.
// PATH.fusion contains the fusion, and PATH.NAME.npy contains the tensor input NAME. PATH.layouts
// has a line `NAME offset strides...`, in elements, for each tensor input whose layout is not the
// one in denseLayouts(). The values of scalar inputs become their defaults in the fusion.
void writeCase(const FusionCase& fusion_case, const std::string& path);
FusionCase readCase(const std::string& fusion_file);

// Returns the command `heddle run PATH.fusion --input ... --check=full` for the files of
// writeCase(). This command uses dense inputs. For a fault that depends on a layout, use
// `heddle-fuzz --replay PATH.fusion` instead.
std::string replayCommand(const FusionCase& fusion_case, const std::string& path);

}  // namespace heddle::random
