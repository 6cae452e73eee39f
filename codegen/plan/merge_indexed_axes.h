#pragma once

#include "codegen/plan/space.h"

namespace heddle::codegen {

// Merges axes along which all ops that read elements at computed indices (pad, flip, take and
// take_along_axis) read the index of the element itself. For example, a cat of f32[16, 8, 8]
// tensors along axis 0 reads each of its pieces at the same indices along the axes 1 and 2. If the
// pieces are dense, these axes become one axis of 64 elements. The kernel then divides less to find
// its indices, and has longer rows. Two axes are merged if all of this is true:
// - The strides of all tensors permit it, as in coalesce().
// - Each indexed tensor that has one of the axes also has the other one, with suitable strides.
// - No op uses the index along the axes for anything else, and the axes are not sharded.
//
// `space` has one axis per axis of the analysis, in the order of the analysis. If two axes become
// one, the outer axis keeps one element.
void mergeIndexedAxes(const Analysis& analysis, Space& space);

}  // namespace heddle::codegen
