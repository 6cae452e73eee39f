#pragma once

#include <optional>
#include <set>

#include "ir/graph/fusion.h"

namespace heddle {

// Computes the elements that an op reads from a generated value, without storing the value. A value
// is generated if pointwise ops, broadcasts and expands compute it only from indices (iota),
// constant elements (full) and scalars. Random numbers are an example. take, take_along_axis, flip,
// pad, slice, permute, diagonal, reshape and set need their operand in memory. If operand 0 of such
// an op is generated, the pass replaces the op by ops that compute the indices of the elements in
// the operand, and the elements from their indices. The result is then generated too, unless a
// tensor in memory gives the indices. An index out of range still gives NaN, or 0 for integers and
// bools.
//
// An element depends only on its index in the unsharded tensor. The result therefore keeps its
// sharding, whatever the sharding of the operand is. Only the index tensor of a take may have to be
// moved.
//
// The pass does not change an op in these cases:
//  - The op belongs to a cat (ir/cats/cat.h) that has a piece in memory. Segmentation recognizes
//    the cat by its ops. It decides whether the pieces are written directly into the result. If
//    not, it replaces the op (ir/segment/choose_cats.h).
//  - The user declared the result as partial.
//  - The part of the new fusion up to this op already has at least 2 * n + 1000 expressions. n is
//    the number of expressions before the pass.
//  - More than 256 expressions compute the generated value. A kernel has at most 256 expressions,
//    so such a value is stored anyway.
Fusion takeGenerated(Fusion fusion);
// Replaces such an op only if its expression is in `exprs`. The op may belong to any cat. Returns
// nullopt if `exprs` contains no op that reads a generated value.
std::optional<Fusion> takeGenerated(const Fusion& fusion, const std::set<ExprId>& exprs);

}  // namespace heddle
