#pragma once

#include <string>
#include <vector>

#include "codegen/emit/kernel_text.h"
#include "codegen/plan/body.h"

namespace heddle::codegen {

// The functions below return the kernel text of accumulators (codegen/plan/body.h). The state of an
// ordinary accumulator is one number. The state of a joint accumulator (codegen/plan/joint.h) has
// several members. Only CUDA kernels have joint accumulators.

// stateType() returns the C++ type of a state. stateBytes() returns the number of bytes to reserve
// for it in shared memory, which is at least the size of the type.
std::string stateType(const Accumulator& a);
int stateBytes(const Accumulator& a);
// Returns the expression of a state that contains no elements.
std::string identityText(const Accumulator& a);
// Returns the expression that combines the state `into` with `element`, which is another state. If
// the accumulator is not joint, `element` may also be one element.
std::string combineText(const Accumulator& a, const std::string& into, const std::string& element);
// Returns the expression of the value that the loop body combines with the state. If a.adds_states
// is set, the value is another state. Otherwise it is the value of node `a.element`, converted to
// `a.type`. `prefix` is the prefix of the names of nodes (writeNodes() in
// codegen/emit/kernel_text.h).
std::string elementText(const Body& body, const Accumulator& a, const std::string& prefix);
// Cuda: returns the expression that combines the state `into` with the element of the loop body.
// For an f32 sum of f32 products, the expression calls hd::multiplyAdd(), which takes half the
// instructions and rounds less.
std::string accumulateText(const Body& body, const Accumulator& a, const std::string& prefix,
                           const std::string& into);
// Writes text in which a thread and the threads of its warp whose numbers differ from its number
// only in the bits `first_mask`, `first_mask` / 2, ..., `last_mask` combine their states `into`.
// All of them get the result. The masks are powers of two, or `first_mask` is 0. All threads of the
// warp must execute the text.
void writePartners(TextWriter& out, const Accumulator& a, const std::string& into, int first_mask,
                   int last_mask);
// Returns the expression of member `m` of a state. The only member of an ordinary state is the
// state itself.
std::string memberText(const Accumulator& a, const std::string& state, size_t m);
// Returns the expression of the result of the reduction `a`. `state` is the expression of its final
// state. If `a` is the second reduction of a joint pair, `state` belongs to `a.first`, and `center`
// is the expression of JointReductions::center ("" if there is none).
std::string resultText(const Accumulator& a, const std::string& state, const std::string& center);

// Returns whether the loop first collects elements in an array. One call of hd::add() or
// hd::addSome() then adds the array to the state. This holds for joint accumulators that combine
// single elements.
inline bool addsTogether(const Accumulator& a) {
  return a.joint != JointKind::None && a.hasState() && !a.adds_states;
}

}  // namespace heddle::codegen
