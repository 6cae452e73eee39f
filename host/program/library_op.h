#pragma once

#include <string>
#include <string_view>

#include "host/program/program.h"
#include "ir/ops/op.h"

namespace heddle::host {

// The ops that CallLibrary names: those of the kinds Matmul, Scan and Scatter, and two that a
// fusion has as the ops they are made of (ir/segment/attention.h): `attention`, softmax(q k^T
// scale) v of (q, k, v), and `attention_backward`, of (g, q, k, v) the gradients (dq, dk, dv),
// where g is that of the result.

// nullptr when `name` is none of them.
const OpDef* findLibraryOp(std::string_view name);

inline bool isAttentionBackward(const CallLibrary& call) {
  return call.function == "attention_backward";
}
inline bool isAttention(const CallLibrary& call) {  // or its backward
  return call.function == "attention" || isAttentionBackward(call);
}

// What is said of a name that is no library function, and of an argument that a function does not
// take: what would fit.
std::string noLibraryFunction(std::string_view name);
std::string libraryArgumentsOf(const OpDef& op);

// The function, its operands (number, dtypes, ranks) and its attributes. UserError saying what
// would fit; sizes are checked by the unrolled program (host/unroll/check_operands.h).
void verifyLibrary(const Program& program, const CallLibrary& call);

// Attributes of a call that verifyLibrary() has passed.
int64_t libraryAxis(const CallLibrary& call);
std::optional<double> libraryNumber(const CallLibrary& call, std::string_view name);
std::optional<int64_t> libraryCount(const CallLibrary& call, std::string_view name);
bool libraryFlag(const CallLibrary& call, std::string_view name);  // false when it is not there

}  // namespace heddle::host
