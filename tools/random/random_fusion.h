#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/fusion.h"
#include "ir/reference/reference.h"
#include "ir/types/host_tensor.h"

namespace heddle::random {

// How a tensor input lies in memory, in elements: strides 0 for a stretched axis, and `offset`
// elements before the first, which misaligns it.
struct InputLayout {
  std::vector<int64_t> strides;
  int64_t offset = 0;
  bool operator==(const InputLayout&) const = default;
};

// A fusion with everything a run needs.
struct FusionCase {
  Fusion fusion;
  ReferenceInputs inputs;
  SizeBindings sizes;
  std::vector<InputLayout> layouts;  // per input; unused for scalars
};

struct GeneratorOptions {
  int min_ops = 5;
  int max_ops = 60;
  bool layouts = true;          // inputs with gaps, in other orders, stretched, misaligned
  std::vector<OpKind> without;  // kinds to leave out
  bool wild_casts = true;       // integers of NaN, infinities and what is out of range
  bool gelu_products = true;    // with gelu, which cuBLASLt computes less exactly than the bounds
  int64_t max_elements = 4096;  // of any value
};

// A valid fusion, decided by the seed alone (for one op table and one reference). Every row of the
// op table takes part by its kind, arity and attributes, every dtype by kAllDTypes, so that new
// ones come in by themselves; what an op refuses, the builder refuses, and another is tried. An op
// whose result is mostly unknown, NaN or infinite (tools/random/bounds.h) is dropped again, so that
// what is left can be compared.
FusionCase randomCase(uint64_t seed, const GeneratorOptions& options = {});

// Rows of the op table that the generator cannot make; a test holds this list empty.
std::vector<std::string_view> unknownRows();

// Every input dense, at an aligned place.
std::vector<InputLayout> denseLayouts(const FusionCase& fusion_case);

}  // namespace heddle::random
