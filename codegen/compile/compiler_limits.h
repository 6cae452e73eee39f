#pragma once

#include <chrono>
#include <string>

#include "codegen/compile/child_process.h"

namespace heddle::codegen {

// Returns the time limit of one run of the compiler. On a busy machine, the largest kernels take
// minutes.
std::chrono::milliseconds compilerTimeLimit();

// One of these objects exists while a compiler runs. The limit on processes must suffice for the
// processes of all compilers that run at the same time. Otherwise GCC would retry for many seconds
// before it fails.
class RunningCompiler {
 public:
  // Waits for the end of other compilers of this process if the limit does not suffice for all.
  // Throws UserError if it does not even suffice for one.
  RunningCompiler();
  ~RunningCompiler();
  RunningCompiler(const RunningCompiler&) = delete;
  RunningCompiler& operator=(const RunningCompiler&) = delete;
};

// Throws UserError if the compiler failed because of this machine. Otherwise the user would get the
// wrong message that there is no compiler. The function checks these reasons:
// - The compiler did not start, or exceeded its time limit.
// - The disk of `folder` is full.
// - A resource limit of this process is small.
void checkMachine(const ProcessResult& result, const std::string& program,
                  const std::string& folder);

}  // namespace heddle::codegen
