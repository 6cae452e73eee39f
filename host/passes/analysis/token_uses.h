#pragma once

#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// The top-level instructions that post an operation with a token, and those that wait for the
// token, as ascending indices into Program::body.
struct TokenUses {
  std::vector<size_t> posts;
  std::vector<size_t> waits;
};

IdVector<TokenId, TokenUses> tokenUsesOf(const Program& program);

}  // namespace heddle::host
