#pragma once

#include <string>

#include "codegen/compile/child_process.h"

namespace heddle::fuzz {

// Runs the commands of heddle on texts, as a user would, but in this process:
//   verify and dump (all stages) for four ranks, run on one rank and on two ranks of the CPU.
// A fusion runs with --check=full. A text whose run would need much memory or time is not run.
// Kernels run in the reference evaluator, because a compiler would need half a second for each
// text.
class Commands {
 public:
  Commands();
  // Throws UserError if a command refuses the text. Any other exception is a failure of heddle, for
  // example because a check finds a wrong result. `extension` is ".fusion" or ".hostir".
  void run(const std::string& text, const std::string& extension);

 private:
  codegen::TempFolder folder_;
};

}  // namespace heddle::fuzz
