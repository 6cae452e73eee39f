#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// The text form of the values inside a fusion or a host program. Floats print with the fewest
// digits that read back to the same bits.

std::string printScalar(const Scalar& scalar);  // 1.0, -3, true, inf, nan
std::string printAttr(const Attr& attr);
// The text as it is if it is a word, else quoted.
std::string printWord(std::string_view text);
// `[a, b]`.
std::string printSizes(const std::vector<Size>& sizes);
std::string printInts(const std::vector<int64_t>& values);
// dtype and extents alone: `f32[t, 1]`.
std::string printShape(const TensorView& tensor);
// Sharding and layout, each with a space before it; empty if the tensor has neither.
// `user_sharding`: false marks the sharding as inferred by a pass.
std::string printSuffix(const TensorView& tensor, bool user_sharding, const Meshes& meshes);
// printShape() and printSuffix().
std::string printTensorType(const TensorView& tensor, const Meshes& meshes);

}  // namespace heddle
