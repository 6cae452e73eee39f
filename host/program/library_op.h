#pragma once

#include <string>
#include <string_view>

#include "host/program/program.h"
#include "ir/ops/op.h"

namespace heddle::host {

// The functions that CallLibrary names:
// - ops of the kinds Matmul, Scan and Scatter
// - `attention` of (q, k, v): softmax(q k^T scale) v
// - `attention_backward` of (g, q, k, v): the gradients (dq, dk, dv), where g is the gradient of
//   the result of `attention`
// A fusion has no op for the last two. It composes them of several ops (ir/segment/attention.h).

// Returns the op of a library function, or nullptr if there is no such function.
const OpDef* findLibraryOp(std::string_view name);

inline bool isAttentionBackward(const CallLibrary& call) {
  return call.function == "attention_backward";
}
inline bool isAttention(const CallLibrary& call) {  // forward or backward
  return call.function == "attention" || isAttentionBackward(call);
}

// Return texts for messages. noLibraryFunction() says that `name` is not a library function and
// lists all functions. libraryArgumentsOf() lists the arguments that a function takes.
std::string noLibraryFunction(std::string_view name);
std::string libraryArgumentsOf(const OpDef& op);

// Checks the function, its operands (number, dtypes, ranks) and its attributes. UserError says
// which operands or attributes would be legal. Sizes are checked in the unrolled program
// (host/unroll/check_operands.h).
void verifyLibrary(const Program& program, const CallLibrary& call);

// Return an attribute of a call that verifyLibrary() has accepted; nullopt if the call does not
// have it. libraryAxis() requires that it has an axis.
int64_t libraryAxis(const CallLibrary& call);
std::optional<double> libraryNumber(const CallLibrary& call, std::string_view name);
std::optional<int64_t> libraryCount(const CallLibrary& call, std::string_view name);
bool libraryFlag(const CallLibrary& call, std::string_view name);  // false if absent

}  // namespace heddle::host
