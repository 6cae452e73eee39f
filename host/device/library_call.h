#pragma once

#include <array>
#include <cstdint>

#include "ir/types/tensor.h"

namespace heddle::host {

enum class LibraryFunction : uint8_t { Cumsum, Argsort, Scatter, ScatterAdd };

// One call of a function that works on lines along an axis. The member of FusionBuilder with the
// same name defines the function (ir/graph/builder.h).
//
// Strides:       zero or positive.
// Dtypes:        all, except that f8 can be neither summed nor sorted. An index is i64 or i32.
// Sums:          float sums are computed in f64 and rounded once (cumsum: once per element).
//                Integer sums wrap. Sources are added in row-major order.
// Sharded axis:  the tensor and the result of a scatter may be one block of a sharded axis. The
//                index counts from the start of the unsharded axis. Elements for other blocks are
//                dropped.
// Short argsort: the result may be shorter than the line. It then holds the first indices of the
//                sorted line.
// Determinism:   a device returns the same bits in every run.
struct LibraryCall {
  static constexpr size_t kMostInputs = 3;
  LibraryFunction function = LibraryFunction::Cumsum;
  int64_t axis = 0;
  bool descending = false;                       // argsort
  std::array<const void*, kMostInputs> in = {};  // scatter: tensor, index, source
  void* out = nullptr;
  std::array<const TensorDesc*, kMostInputs> in_descs = {};  // must outlive the enqueued work
  const TensorDesc* out_desc = nullptr;                      // as in_descs
  // Device::libraryWorkspace() bytes with 256-byte alignment, used in stream order.
  void* workspace = nullptr;

  bool scatters() const {
    return function == LibraryFunction::Scatter || function == LibraryFunction::ScatterAdd;
  }
};

// The lines of a call along its axis: their number, and the first element of each. Operand 0 is the
// result; operand i + 1 is input i.
// - Axes of one element are left out.
// - Adjacent axes that form one axis in the memory of every operand are merged.
// - Axes are ordered by the strides of the result, largest first. Lines with neighbouring numbers
//   are therefore neighbours in the result's memory.
// - The struct holds no heap memory.
struct LineSpace {
  static constexpr size_t kMostAxes = 8;
  static constexpr size_t kMostOperands = LibraryCall::kMostInputs + 1;
  int64_t count = 1;
  int64_t axes = 0;
  int64_t sizes[kMostAxes] = {};
  int64_t strides[kMostOperands][kMostAxes] = {};

  // Returns the offset of the first element of line `line` of an operand, in elements.
  int64_t offset(size_t operand, int64_t line) const;
};

// Selects all axes of the lines, or only those along which the index of a scatter changes
// (OfIndex), or only those along which it does not (NotOfIndex: the index has one element or
// stride 0 there).
enum class LineAxes : uint8_t { All, OfIndex, NotOfIndex };
// Returns the lines of a call. Throws UserError if more than LineSpace::kMostAxes axes with several
// elements are selected. Axes are counted before they are merged.
LineSpace lineSpaceOf(const LibraryCall& call, LineAxes which = LineAxes::All);

// The extents and strides of one line along the axis of a call.
struct LineShape {
  int64_t extent = 0;                              // elements of the result
  int64_t n = 0;                                   // elements of the input; scatter: of the source
  int64_t first = 0;                               // unsharded index of the result's first element
  int64_t strides[LineSpace::kMostOperands] = {};  // by operand, as in LineSpace
};
LineShape lineShapeOf(const LibraryCall& call);

// Throws UserError if the call would sum or sort an f8 type.
void refuseFloat8Sums(const LibraryCall& call);

}  // namespace heddle::host
