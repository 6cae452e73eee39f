#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/fusion.h"
#include "ir/reference/reference.h"
#include "ir/types/host_tensor.h"

namespace heddle::random {

// Memory layout of a tensor input, in elements. A stretched axis has stride 0. The first element is
// at `offset`, which misaligns the tensor.
struct InputLayout {
  std::vector<int64_t> strides;
  int64_t offset = 0;
  bool operator==(const InputLayout&) const = default;
};

// A fusion with everything that a run needs.
struct FusionCase {
  Fusion fusion;
  ReferenceInputs inputs;
  SizeBindings sizes;
  std::vector<InputLayout> layouts;  // per input; unused for scalars
};

struct GeneratorOptions {
  int min_ops = 5;
  int max_ops = 60;
  bool layouts = true;  // inputs with gaps, other memory orders, stretched axes, misalignment
  std::vector<OpKind> without;  // kinds of ops to leave out
  bool wild_casts = true;       // casts to integers of NaN, infinities and values out of range
  bool gelu_products = true;    // matrix products with gelu; cuBLASLt's gelu exceeds the bounds
  int64_t max_elements = 4096;  // largest number of elements of a value
};

// Returns a valid fusion that depends only on the seed, the op table and the reference.
// - Every row of the op table takes part by its kind, arity and attributes, and every dtype by
//   kAllDTypes. New ops and dtypes therefore take part without a change here.
// - If the builder rejects an op, another one is tried.
// - An op whose result is mostly unknown, NaN or infinite (tools/random/bounds.h) is dropped again,
//   so that the remaining values can be compared.
FusionCase randomCase(uint64_t seed, const GeneratorOptions& options = {});

// Returns the rows of the op table that the generator cannot create. A test requires that there are
// none.
std::vector<std::string_view> unknownRows();

// Returns dense and aligned layouts for all inputs.
std::vector<InputLayout> denseLayouts(const FusionCase& fusion_case);

}  // namespace heddle::random
