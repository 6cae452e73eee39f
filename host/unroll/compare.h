#pragma once

#include <cstdint>

#include "host/program/instructions.h"

namespace heddle::host {

// Returns whether the comparison of a predicate holds.
bool compare(Predicate::Compare how, int64_t a, int64_t b);

}  // namespace heddle::host
