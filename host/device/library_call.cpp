#include "host/device/library_call.h"

#include <algorithm>

#include "ir/base/check.h"

namespace heddle::host {
namespace {

// Returns the descriptor of an operand, numbered as in LineSpace.
const TensorDesc* descOf(const LibraryCall& call, size_t operand) {
  return operand == 0 ? call.out_desc : call.in_descs[operand - 1];
}

// Returns the stride of an operand along an axis. Returns 0 if the operand has one element along
// the axis, because the element is broadcast. Also returns 0 if the call has no such operand.
int64_t strideOf(const TensorDesc* desc, size_t axis) {
  if (desc == nullptr || desc->sizes[axis] == 1) return 0;
  return desc->strides[axis];
}

// Returns whether lineSpaceOf() selects the axis.
bool isWanted(const LibraryCall& call, size_t axis, LineAxes which) {
  if (static_cast<int64_t>(axis) == call.axis || call.out_desc->sizes[axis] == 1) return false;
  if (which == LineAxes::All) return true;
  const bool moves = strideOf(call.in_descs[1], axis) != 0;
  return moves == (which == LineAxes::OfIndex);
}

// Returns whether two axes form one axis in the memory of every operand.
bool continues(const LineSpace& space, size_t outer, size_t inner) {
  for (const auto& strides : space.strides) {
    if (strides[outer] != strides[inner] * space.sizes[inner]) return false;
  }
  return true;
}

// Adds an axis to the space. The axes stay ordered by their strides in the result, largest first.
void insert(LineSpace& space, const LibraryCall& call, size_t axis) {
  HEDDLE_USER_CHECK(static_cast<size_t>(space.axes) < LineSpace::kMostAxes,
                    "a library function on {} has more than {} axes besides axis {}",
                    str(call.out_desc->sizes), LineSpace::kMostAxes, call.axis);
  const int64_t stride = strideOf(call.out_desc, axis);
  size_t at = space.axes++;
  for (; at > 0 && space.strides[0][at - 1] < stride; --at) {
    space.sizes[at] = space.sizes[at - 1];
    for (auto& strides : space.strides) strides[at] = strides[at - 1];
  }
  space.sizes[at] = call.out_desc->sizes[axis];
  for (size_t i = 0; i < LineSpace::kMostOperands; ++i) {
    space.strides[i][at] = strideOf(descOf(call, i), axis);
  }
}

// Merges adjacent axes that form one axis in the memory of every operand.
void merge(LineSpace& space) {
  size_t kept = 0;
  for (size_t i = 1; i < static_cast<size_t>(space.axes); ++i) {
    const bool merges = continues(space, kept, i);
    const int64_t size = space.sizes[i] * (merges ? space.sizes[kept] : 1);
    if (!merges) ++kept;
    space.sizes[kept] = size;
    for (auto& strides : space.strides) strides[kept] = strides[i];
  }
  if (space.axes > 0) space.axes = static_cast<int64_t>(kept) + 1;
}

}  // namespace

int64_t LineSpace::offset(size_t operand, int64_t line) const {
  int64_t offset = 0;
  for (size_t axis = axes; axis-- > 0;) {
    offset += line % sizes[axis] * strides[operand][axis];
    line /= sizes[axis];
  }
  return offset;
}

LineSpace lineSpaceOf(const LibraryCall& call, LineAxes which) {
  LineSpace space;
  for (size_t axis = 0; axis < call.out_desc->rank(); ++axis) {
    if (!isWanted(call, axis, which)) continue;
    space.count *= call.out_desc->sizes[axis];
    insert(space, call, axis);
  }
  if (space.count > 0) merge(space);
  return space;
}

LineShape lineShapeOf(const LibraryCall& call) {
  const size_t axis = call.axis;
  LineShape shape;
  shape.extent = call.out_desc->sizes[axis];
  shape.first = call.out_desc->offset[axis];
  shape.n = call.in_descs[call.scatters() ? 2 : 0]->sizes[axis];
  for (size_t i = 0; i < LineSpace::kMostOperands; ++i) {
    shape.strides[i] = strideOf(descOf(call, i), axis);
  }
  return shape;
}

void refuseFloat8Sums(const LibraryCall& call) {
  const DType dtype = call.in_descs[0]->dtype;
  HEDDLE_USER_CHECK(!isFloat8(dtype) || call.function == LibraryFunction::Scatter,
                    "a library function on {}: f8 types can be neither summed nor sorted",
                    name(dtype));
}

}  // namespace heddle::host
