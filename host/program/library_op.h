#pragma once

#include <string>
#include <string_view>

#include "host/program/program.h"
#include "ir/ops/op.h"

namespace heddle::host {

// The library functions that a CallLibrary instruction can name:
// - ops of the kinds Matmul, Scan and Scatter (OpKind in ir/ops/op.h)
// - `attention` of (q, k, v): o = softmax(q k^T scale) v. A call may have a second result, the
//   log-sums: the log-sum-exp of each row of q k^T scale (f32, the axes of o except the last one).
// - `attention_backward` of (g, q, k, v): the gradients (dq, dk, dv), where g is the gradient of
//   the result of `attention`. A call may have two more operands: the results o and log-sums of the
//   `attention` call. Without these operands, `attention_backward` computes both again.
// A fusion has no op for the two attention functions. In a fusion, several ops together compute an
// attention or its backward (ir/segment/attention/attention.h).

// Returns the op of a library function, or nullptr if there is no such function.
const OpDef* findLibraryOp(std::string_view name);

inline bool isAttentionBackward(const CallLibrary& call) {
  return call.function == "attention_backward";
}
inline bool isAttention(const CallLibrary& call) {  // forward or backward
  return call.function == "attention" || isAttentionBackward(call);
}
// Returns the slot of the log-sums: a result of `attention`, an operand of `attention_backward`.
// nullopt: the call has no log-sums.
std::optional<SlotId> logSumsOf(const CallLibrary& call);

// Returns a message that `name` is not a library function. The message lists all functions.
std::string noLibraryFunction(std::string_view name);
// Returns the number of slots and the attributes that a function takes, as text for messages.
std::string libraryArgumentsOf(const OpDef& op);

// Checks the function, its attributes, and the numbers of operands and results. Also checks dtypes,
// numbers of axes and shardings. Exception: of the types of a matrix product, it checks only the
// dtype of the result, and only if the call has the attribute `dtype`. Throws UserError that says
// what is legal. checkLibrary() of host/unroll/check_operands.h checks the sizes later.
void verifyLibrary(const Program& program, const CallLibrary& call);

// The next four functions return an attribute of a call that verifyLibrary() has accepted.
// libraryNumber() and libraryCount() return nullopt if the call does not have the attribute.
// libraryAxis() requires that the call has an axis.
int64_t libraryAxis(const CallLibrary& call);
std::optional<double> libraryNumber(const CallLibrary& call, std::string_view name);
std::optional<int64_t> libraryCount(const CallLibrary& call, std::string_view name);
bool libraryFlag(const CallLibrary& call, std::string_view name);  // false if absent

}  // namespace heddle::host
