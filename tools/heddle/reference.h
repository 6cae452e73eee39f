#pragma once

#include <string>

#include "host/program/program.h"
#include "tools/heddle/source.h"

namespace heddle::tools {

// A fusion whose outputs a program must reproduce. It has inputs of the same names, and the same
// outputs in the same order with the same types and unsharded sizes.
struct Reference {
  Fusion fusion;
  Inputs inputs;  // in the order of the fusion, with its sizes
};

// Reads the file of --reference for a job of `ranks` ranks. Sets the type and the unsharded sizes
// of tensors of `inputs` that have no data. Throws UserError with the first difference if the
// fusion does not fit the program.
Reference readReference(const std::string& path, const host::Program& program, Inputs& inputs,
                        int ranks);

}  // namespace heddle::tools
