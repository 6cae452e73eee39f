#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// The functions in this file print scalars, sizes and types in the text form of fusions and host
// programs. A float is printed with the fewest digits that parse to the same value.

std::string printScalar(const Scalar& scalar);  // 1.0, -3, true, inf, nan
std::string printAttr(const Attr& attr);
// Returns the text unchanged if it is a word of the text form (letters, digits and _, not starting
// with a digit), else in quotes.
std::string printWord(std::string_view text);
// These two functions return a list in brackets: `[a, b]`.
std::string printSizes(const std::vector<Size>& sizes);
std::string printInts(const std::vector<int64_t>& values);
// Returns only dtype and extents: `f32[t, 1]`, or `f32[n?, broadcast(1)]` for symbolic and
// broadcast axes (IterKind).
std::string printShape(const TensorView& tensor);
// Returns sharding and layout, each after a space, or "" if the tensor has neither. If
// `user_sharding` is false, the text marks the sharding as `inferred`, that is, set by a pass.
std::string printSuffix(const TensorView& tensor, bool user_sharding, const Meshes& meshes);
// Returns printShape() followed by printSuffix() with user_sharding = true.
std::string printTensorType(const TensorView& tensor, const Meshes& meshes);

}  // namespace heddle
