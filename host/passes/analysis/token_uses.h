#pragma once

#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// The top-level instructions that post a token or wait for it, as ascending indices into
// Program::body.
struct TokenUses {
  std::vector<size_t> posts;
  std::vector<size_t> waits;
};

IdVector<TokenId, TokenUses> tokenUsesOf(const Program& program);

}  // namespace heddle::host
