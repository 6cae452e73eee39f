// A fusion that several tests plan.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/graph/builder.h"

namespace heddle::codegen::testing {

// Returns a fusion that adds two tensors with `rank` axes. Each size is a symbol of its own.
inline Fusion binary(int rank) {
  FusionBuilder b;
  std::vector<Size> sizes;
  for (int i = 0; i < rank; ++i) sizes.push_back(Size::symbol("s" + std::to_string(i)));
  ValueId x = b.input("x", DType::F32, sizes);
  ValueId y = b.input("y", DType::F32, sizes);
  b.output(b.pointwise("add", {x, y}));
  return std::move(b).build();
}

}  // namespace heddle::codegen::testing
