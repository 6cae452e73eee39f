#pragma once

#include <string>

#include "host/program/program.h"
#include "tools/heddle/source.h"

namespace heddle::tools {

// A fusion that a program is held against: it has the same inputs by name and the same outputs in
// order, of the same types and unsharded sizes.
struct Reference {
  Fusion fusion;
  Inputs inputs;  // as the fusion orders them, with its sizes
};

// The reference of --reference PATH for a job of `ranks`. Tensors of `inputs` that are not given
// yet are filled from the seed, as every rank fills its part of them. UserError naming the first
// thing in which the two differ.
Reference readReference(const std::string& path, const host::Program& program, Inputs& inputs,
                        uint64_t seed, int ranks);

}  // namespace heddle::tools
