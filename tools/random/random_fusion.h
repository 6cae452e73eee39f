#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/fusion.h"
#include "ir/reference/reference.h"
#include "ir/types/host_tensor.h"

namespace heddle::random {

// The memory layout of a tensor input, in elements. A stretched axis has stride 0. The first
// element is at `offset`; an offset other than 0 can misalign the tensor.
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
  bool layouts = true;  // true: inputs need not be dense, row-major or aligned
  // Kinds of ops that the generator does not choose. Helper ops may still have these kinds: for
  // example, an iota may compute the index of a take. Only the kinds that heddle-fuzz --without
  // accepts have an effect.
  std::vector<OpKind> without;
  bool wild_casts = true;  // true: NaN, infinities and large values may be cast to integers
  // true: matrix products may have the activation gelu. The gelu of cuBLASLt is less exact than the
  // bounds (tools/random/bounds.h) require.
  bool gelu_products = true;
  int64_t max_elements = 4096;  // largest number of elements of a value
};

// Returns a case with a valid fusion. The case depends only on the parameters, the op table and the
// reference.
// - The generator uses every row of the op table, and every dtype in kAllDTypes. It chooses
//   operands and attributes that fit the kind, the arity and the attribute types of the row. It
//   therefore uses new dtypes and most new ops without a change to its code. unknownRows() returns
//   the ops that need a change.
// - If FusionBuilder rejects an op, the generator tries another op.
// - If more than 4 % of the elements of a result have an error bound that is too large for a
//   comparison (tools/random/bounds.h), the generator removes the op. It also removes most ops
//   whose results have no elements, or have more than 30 % of elements that are NaN, infinite or
//   above 10^6. Most elements of the remaining values can therefore be compared.
FusionCase randomCase(uint64_t seed, const GeneratorOptions& options = {});

// Returns the rows of the op table that the generator cannot use. A test requires that the result
// is empty.
std::vector<std::string_view> unknownRows();

// Returns dense, row-major layouts without an offset for all inputs.
std::vector<InputLayout> denseLayouts(const FusionCase& fusion_case);

}  // namespace heddle::random
