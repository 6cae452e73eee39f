#pragma once

#include <string>

#include "codegen/compile/child_process.h"

namespace heddle::fuzz {

// Runs commands of heddle on texts, as a user would, but in this process. The commands are verify
// and dump (--stage all) for four ranks, and run for one rank and for two ranks of the CPU device.
// A fusion runs with --check=full. `run` is left out for a text that would need much memory or, for
// a fusion, much time of the reference. No compiler is used, because it would need half a second
// for each text. The CPU device therefore computes kernels with the reference evaluator.
class Commands {
 public:
  Commands();
  // Throws UserError if a command refuses the text. Any other exception is a failure of heddle, for
  // example a wrong result. `extension` is ".fusion" or ".hostir".
  void run(const std::string& text, const std::string& extension);

 private:
  codegen::TempFolder folder_;
};

}  // namespace heddle::fuzz
