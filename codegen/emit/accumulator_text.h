#pragma once

#include <string>
#include <vector>

#include "codegen/plan/body.h"

namespace heddle::codegen {

// The text of accumulators (codegen/plan/body.h). The state of an ordinary accumulator is a number.
// Joint accumulators, which only CUDA kernels have, have states with several members.

// Returns the C++ type of a state, and the number of bytes that it takes in shared memory.
std::string stateType(const Accumulator& a);
int stateBytes(const Accumulator& a);
// Returns the expression of a state that contains no elements.
std::string identityText(const Accumulator& a);
// Returns the expression that combines the state `into` with `element`. If the accumulator is
// joint, `element` is another state; otherwise it is one element.
std::string combineText(const Accumulator& a, const std::string& into, const std::string& element);
// Returns the expression that the loop body adds to the state. If a.adds_states is set, this is
// another state. Otherwise it is the value of node `a.element`, converted to the accumulator's
// type.
std::string elementText(const Body& body, const Accumulator& a, const std::string& prefix);
// Cuda: returns the expression that combines the state `into` with the element of the loop body. A
// sum of products uses hd::multiplyAdd(), which takes half the instructions and rounds less.
std::string accumulateText(const Body& body, const Accumulator& a, const std::string& prefix,
                           const std::string& into);
// Returns the expression of member `m` of a state.
std::string memberText(const Accumulator& a, const std::string& state, size_t m);
// Returns the expression of a result. `center` is the expression of JointReductions::center.
std::string resultText(const Accumulator& a, const std::string& state, const std::string& center);

// Returns whether the loop collects elements in an array and adds them together, by hd::add().
inline bool addsTogether(const Accumulator& a) {
  return a.joint != JointKind::None && a.hasState() && !a.adds_states;
}

}  // namespace heddle::codegen
