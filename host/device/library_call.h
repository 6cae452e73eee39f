#pragma once

#include <array>
#include <cstdint>

#include "ir/types/tensor.h"

namespace heddle::host {

enum class LibraryFunction : uint8_t { Cumsum, Argsort, Scatter, ScatterAdd };

// One call of a function that works on whole lines along an axis; what it means is told by the
// builder's member of the same name (ir/graph/builder.h). Of a scatter the tensor and the result
// may be the same block of a sharded axis: the index counts from the start of the unsharded one,
// and what it puts in other blocks is dropped. Any strides >= 0 and all dtypes, except that f8 is
// neither summed nor sorted; an index is i64 or i32. Sums of floats are made in f64 and rounded
// once (cumsum: once an element), those of integers wrap; sources are added in row-major order. Of
// an argsort the result may have fewer places than the line: the first. Deterministic on each
// device.
struct LibraryCall {
  static constexpr size_t kMostInputs = 3;
  LibraryFunction function = LibraryFunction::Cumsum;
  int64_t axis = 0;
  bool descending = false;                       // argsort
  std::array<const void*, kMostInputs> in = {};  // scatter: tensor, index, source
  void* out = nullptr;
  std::array<const TensorDesc*, kMostInputs> in_descs = {};  // these outlive the enqueued work
  const TensorDesc* out_desc = nullptr;
  // Device::libraryWorkspace() bytes, 256-byte aligned, ordered by the stream.
  void* workspace = nullptr;

  bool scatters() const {
    return function == LibraryFunction::Scatter || function == LibraryFunction::ScatterAdd;
  }
};

// The lines of a call along its axis: how many there are, and where each begins. Operand 0 is the
// result, operand i + 1 input i. Axes of one element are left out, neighbours that are one axis in
// the memory of all operands are merged; the line that is counted last by the result's memory moves
// fastest. Holds no heap memory.
struct LineSpace {
  static constexpr size_t kMostAxes = 8;
  static constexpr size_t kMostOperands = LibraryCall::kMostInputs + 1;
  int64_t count = 1;
  int64_t axes = 0;
  int64_t sizes[kMostAxes] = {};
  int64_t strides[kMostOperands][kMostAxes] = {};

  // Where line `line` of an operand begins, in elements.
  int64_t offset(size_t operand, int64_t line) const;
};

// All lines, or those axes only along which the index of a scatter changes, or does not: an axis of
// one element or of stride 0. UserError when more than kMostAxes are left.
enum class LineAxes : uint8_t { All, OfIndex, NotOfIndex };
LineSpace lineSpaceOf(const LibraryCall& call, LineAxes which = LineAxes::All);

// Along the axis: elements of the result, of the source or of what is scanned, strides by operand
// as in LineSpace.
struct LineShape {
  int64_t extent = 0;
  int64_t n = 0;
  int64_t first = 0;  // the unsharded index of the result's first element
  int64_t strides[LineSpace::kMostOperands] = {};
};
LineShape lineShapeOf(const LibraryCall& call);

// UserError for f8 that would be summed or sorted.
void refuseFloat8Sums(const LibraryCall& call);

}  // namespace heddle::host
