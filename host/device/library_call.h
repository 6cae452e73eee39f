#pragma once

#include <array>
#include <cstdint>

#include "ir/types/tensor.h"

namespace heddle::host {

// Tensor operations that a device computes with handwritten code instead of a generated kernel.
enum class LibraryFunction : uint8_t { Cumsum, Argsort, Scatter, ScatterAdd };

// One call of a library function (LibraryFunction). The function works on lines: a line consists of
// the elements along one axis, at fixed indices of all other axes. For each library function,
// FusionBuilder (ir/graph/builder.h) has a member function: cumsum(), argsort(), scatter() or
// scatterAdd(). Its comment describes the result.
//
// Strides:       must be zero or positive.
// Dtypes:        all dtypes are supported, except that f8 can be neither summed nor sorted. The
//                dtype of an index tensor is i64 or i32.
// Sums:          float sums are computed in f64, and each element of the result is rounded once.
//                Integer sums wrap. scatter_add adds the sources in row-major order.
// Sharded axis:  in a scatter, the tensor and the result may be this rank's blocks of tensors that
//                are sharded along the axis. The index tensor contains indices of the unsharded
//                axis. Source elements for other blocks are ignored.
// Short argsort: a line of the result may have fewer elements than a line of the input. It then
//                holds the first indices of the sorted line.
// Determinism:   a device computes the same bits in every run.
struct LibraryCall {
  static constexpr size_t kMostInputs = 3;
  LibraryFunction function = LibraryFunction::Cumsum;
  int64_t axis = 0;
  bool descending = false;                       // argsort: largest element first
  std::array<const void*, kMostInputs> in = {};  // scatter: tensor, index, source
  void* out = nullptr;
  std::array<const TensorDesc*, kMostInputs> in_descs = {};  // must outlive the enqueued work
  const TensorDesc* out_desc = nullptr;                      // must outlive the enqueued work
  // Device::libraryWorkspace() bytes with 256-byte alignment. Only the enqueued work uses it.
  void* workspace = nullptr;

  bool scatters() const {
    return function == LibraryFunction::Scatter || function == LibraryFunction::ScatterAdd;
  }
};

// The lines of a call: their number, and the offset of the first element of each line. Operand 0 is
// the result; operand i + 1 is input i. lineSpaceOf() selects axes of the result, but never the
// axis of the call. Each combination of indices along the selected axes is one line. lineSpaceOf()
// then changes the list of these axes as follows:
// - Axes of one element are left out.
// - Axes are ordered by their strides in the result, largest first. Lines with neighbouring numbers
//   are therefore usually neighbours in the result's memory.
// - After that, adjacent axes are merged if they form one axis in the memory of every operand.
struct LineSpace {
  static constexpr size_t kMostAxes = 8;
  static constexpr size_t kMostOperands = LibraryCall::kMostInputs + 1;
  int64_t count = 1;  // number of lines
  int64_t axes = 0;   // number of axes
  int64_t sizes[kMostAxes] = {};
  int64_t strides[kMostOperands][kMostAxes] = {};

  // Returns the offset of the first element of line `line` of an operand, in elements.
  int64_t offset(size_t operand, int64_t line) const;
};

// Selects axes for lineSpaceOf().
// - All: all axes except the axis of the call.
// - OfIndex: only axes along which the index tensor of a scatter has several elements in memory.
// - NotOfIndex: only axes along which the index tensor has one element or stride 0.
enum class LineAxes : uint8_t { All, OfIndex, NotOfIndex };
// Returns the lines of a call along the selected axes. Throws UserError if more than
// LineSpace::kMostAxes axes with several elements are selected. This limit counts axes before they
// are merged.
LineSpace lineSpaceOf(const LibraryCall& call, LineAxes which = LineAxes::All);

// The extents and strides of one line along the axis of a call.
struct LineShape {
  int64_t extent = 0;  // number of elements of the result
  int64_t n = 0;       // number of elements of the input (of the source in a scatter)
  int64_t first = 0;   // index of the result's first element in the unsharded tensor
  int64_t strides[LineSpace::kMostOperands] = {};  // by operand, as in LineSpace
};
// Returns the shape of the lines of a call; all lines have the same shape.
LineShape lineShapeOf(const LibraryCall& call);

// Throws UserError if the call would sum or sort an f8 type.
void refuseFloat8Sums(const LibraryCall& call);

}  // namespace heddle::host
