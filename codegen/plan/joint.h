#pragma once

#include <string_view>
#include <vector>

#include "codegen/plan/analysis.h"

namespace heddle::codegen {

// Two reductions along the same axes are *joint* if one *sweep* (one pass over the elements x) can
// compute both. The elements of the second reduction depend on the result of the first, so this is
// possible only for two kinds of pairs:
//   Exponentials  m = max(x) and sum(exp(x - m)). When a thread finds a much larger maximum, it
//                 rescales its sum. Source: M. Milakov and N. Gimelshein, "Online normalizer
//                 calculation for softmax", 2018.
//   Moments       sum(x) and sum((x - c)^2). The value c must have one element per row, depend on
//                 sum(x), and depend on no other reduction. A thread keeps the number of its
//                 elements, their sum, and the sum of the squares of their differences from their
//                 own mean. Source: T. Chan, G. Golub and R. LeVeque, "Algorithms for computing the
//                 sample variance", 1983.
// The elements, the results of both reductions, c, and the difference, exponential or square must
// be f32.
// codegen/runtime/cuda_joint.h contains the types of the accumulators. C++ kernels have no joint
// reductions.

// Returns the joint reductions of a segment. Each reduction is in at most one pair.
std::vector<JointReductions> jointReductions(const Fusion& segment, const Analysis& analysis);

// The kernel text of the accumulators of one JointKind. {0} stands for the expression of a state.
struct JointText {
  std::string_view type;
  std::vector<std::string_view> members;  // all are floats
  std::string_view first;                 // result of the first reduction
  std::string_view second;                // result of the second reduction; {1}: c (Moments)
  std::string_view neutral;               // an element that changes no state; empty: there is none
};
const JointText& jointText(JointKind kind);

}  // namespace heddle::codegen
