#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph/rewrite.h"

namespace heddle {

// A *pick* is a slice, flip, pad or take that movePicks may move. Its result consists of elements
// of operand 0. The result of a pad also has fill values.

// The list has one number per axis of a value: the axis of the operand of a pick that corresponds
// to this axis, or kWhole. kWhole means that the pick changes nothing along the axis.
using PickedAxes = std::vector<int64_t>;
inline constexpr int64_t kWhole = -1;

// Returns whether movePicks may move the expression: a slice or pad whose bounds or widths contain
// no scalar (`%n`), a flip, or a take of a cat (`is_in_cat`). A take that belongs to no cat may
// read an index out of range. Its result is then NaN, and an op would change it.
bool isPick(const Fusion& fusion, const Expression& expr, bool is_in_cat);

// Returns whether two picks are slices of one value that have no element in common.
bool areDisjointSlices(const Expression& a, const Expression& b);

// Returns the picked axes of operand 0 of the pick.
PickedAxes pickedAxesOf(const Fusion& fusion, const Expression& pick);

// Returns whether the pick changes nothing along all these axes.
bool isWhole(const PickedAxes& axes);

// Returns the picked axes of an operand, if `axes` are the picked axes of the result of `expr`.
// Returns nullopt if the pick cannot be moved through the expression: it is no pointwise op,
// broadcast or reduction, or the pick changes a reduced or new axis.
std::optional<PickedAxes> operandAxes(const Fusion& fusion, const Expression& expr, ValueId operand,
                                      const PickedAxes& axes);

// Appends a pick of the value that replaces `old`. `axes` are its picked axes. A pad fills with 0.
ValueId appendPick(const Fusion& from, FusionRewriter& rewriter, const Expression& pick,
                   ValueId old, const PickedAxes& axes);

// Appends a value that is true for the elements of the result of a pad that are elements of its
// operand. Along axes that the pad does not extend, the value has one element.
ValueId appendIsInside(const Fusion& from, FusionRewriter& rewriter, const Expression& pad);

}  // namespace heddle
