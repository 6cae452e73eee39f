#include "tools/random/choices.h"

#include <cmath>
#include <limits>

namespace heddle::random {
namespace {

double randomReal(Choices& choices) {
  if (choices.oneIn(4)) return static_cast<double>(choices.between(-4, 4));
  double sum = 0;
  for (int i = 0; i < 4; ++i) sum += choices.real() - 0.5;
  return sum * 1.7;
}

double specialReal(Choices& choices) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  return choices.pick<double>({std::numeric_limits<double>::quiet_NaN(), kInf, -kInf, 0.0, -0.0,
                               -0.0, 1e-30, -1e30, 1e-40, 65504.0, 300.0});
}

int64_t randomInteger(Choices& choices, bool special) {
  if (special && choices.oneIn(12)) {
    return choices.pick<int64_t>({INT64_MAX, INT64_MIN, -1, 0, 127, 128, -129, 1LL << 40});
  }
  return choices.between(-8, 8);
}

}  // namespace

Scalar randomScalar(Choices& choices, DType dtype) {
  if (dtype == DType::Bool) return choices.oneIn(2);
  if (!isFloat(dtype)) return roundTo(dtype, randomInteger(choices, false));
  const bool special = choices.oneIn(12);
  return roundTo(dtype, special ? specialReal(choices) : randomReal(choices));
}

HostTensor randomValues(Choices& choices, DType dtype, const std::vector<int64_t>& sizes,
                        bool special) {
  HostTensor tensor(dtype, sizes);
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    if (dtype == DType::Bool) {
      tensor.set(i, choices.oneIn(2));
    } else if (!isFloat(dtype)) {
      tensor.set(i, randomInteger(choices, special));
    } else {
      const bool here = special && choices.oneIn(24);
      tensor.set(i, here ? specialReal(choices) : randomReal(choices));
    }
  }
  return tensor;
}

InputLayout randomLayout(Choices& choices, HostTensor& values) {
  const size_t rank = values.sizes.size();
  AxisOrder order = rowMajor(rank);
  InputLayout layout;
  if (choices.oneIn(2)) choices.shuffle(order);
  std::vector<int64_t> alloc = values.sizes;
  if (rank > 0 && choices.oneIn(2)) {
    alloc[choices.below(static_cast<int64_t>(rank))] += choices.between(1, 3);
  }
  layout.strides = stridesFor(alloc, order);
  if (rank > 0 && choices.oneIn(4)) {
    for (int64_t& stride : layout.strides) stride *= 2;  // every other element
  }
  if (choices.oneIn(2)) layout.offset = choices.between(1, 3);
  if (rank > 0 && values.numel() > 0 && choices.oneIn(4)) {
    const size_t axis = choices.below(static_cast<int64_t>(rank));
    layout.strides[axis] = 0;
    int64_t step = 1;
    for (size_t i = axis + 1; i < rank; ++i) step *= values.sizes[i];
    for (int64_t i = 0; i < values.numel(); ++i) {
      values.set(i, values.at(i - i / step % values.sizes[axis] * step));
    }
  }
  return layout;
}

}  // namespace heddle::random
