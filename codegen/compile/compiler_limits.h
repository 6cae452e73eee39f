#pragma once

#include <chrono>
#include <string>

#include "codegen/compile/child_process.h"

namespace heddle::codegen {

// Returns the time limit of one run of the compiler: $HEDDLE_CXX_TIMEOUT in seconds, or 10 minutes.
// On a busy machine, the compilation of the largest kernels takes minutes. Throws UserError if the
// variable is not a number above 0 and at most 1e6.
std::chrono::milliseconds compilerTimeLimit();

// Create an object of this class before a compiler is started, and destroy it after the compiler
// has ended. The constructor ensures that the system can start the processes of all compilers that
// run at the same time. Otherwise GCC would retry for many seconds before it fails.
class RunningCompiler {
 public:
  // If the system cannot start the processes of one more compiler, waits until another compiler of
  // this process has ended, and tries again. Throws UserError if the system cannot start the
  // processes of a compiler although no other compiler of this process runs.
  RunningCompiler();
  ~RunningCompiler();
  RunningCompiler(const RunningCompiler&) = delete;
  RunningCompiler& operator=(const RunningCompiler&) = delete;
};

// Throws UserError if the compiler probably failed because of this machine. Without this check, the
// user would get the wrong message that there is no compiler. The function checks these reasons:
// - The compiler did not start, although it is an executable program.
// - The compiler exceeded its time limit.
// - The compiler failed, and a resource limit of this process (ulimit) is small.
// - The compiler failed, and the disk of `folder` has less than 1 MiB of free space.
void checkMachine(const ProcessResult& result, const std::string& program,
                  const std::string& folder);

}  // namespace heddle::codegen
