#pragma once

#include <string>

#include "host/program/program.h"
#include "tools/heddle/source.h"

namespace heddle::tools {

// A fusion whose outputs a program must reproduce. Its inputs have the names of the program's
// inputs. Its outputs have the types and unsharded sizes of the program's outputs, in the same
// order, but may have other names.
struct Reference {
  Fusion fusion;
  Inputs inputs;  // in the order of the fusion's inputs, with values for its sizes
};

// Reads the fusion file `path` for a job of `ranks` ranks. `inputs` are the inputs of the program.
// Sets the type and the unsharded sizes of tensors of `inputs` that have no data. Throws UserError
// with the first difference if the fusion does not fit the program.
Reference readReference(const std::string& path, const host::Program& program, Inputs& inputs,
                        int ranks);

}  // namespace heddle::tools
