#pragma once

#include <cstdint>

#include "host/program/instructions.h"

namespace heddle::host {

// Returns whether `a` and `b` satisfy the comparison `how`, for example a < b.
bool compare(Predicate::Compare how, int64_t a, int64_t b);

}  // namespace heddle::host
