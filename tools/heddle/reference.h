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

// Reads the reference of --reference PATH for a job of `ranks` ranks. Tensors of `inputs` without
// data are filled from the seed, with the same values that the ranks use for their parts. Throws a
// UserError that names the first difference between the fusion and the program.
Reference readReference(const std::string& path, const host::Program& program, Inputs& inputs,
                        int ranks);

}  // namespace heddle::tools
