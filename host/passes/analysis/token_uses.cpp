#include "host/passes/analysis/token_uses.h"

#include "host/program/visit.h"

namespace heddle::host {

IdVector<TokenId, TokenUses> tokenUsesOf(const Program& program) {
  IdVector<TokenId, TokenUses> uses(program.tokens.size());
  for (size_t i = 0; i < program.body.size(); ++i) {
    const Op& op = program.body[i].op;
    // Only a Wait waits for a token. Any other instruction with a token posts an operation.
    if (const auto* wait = std::get_if<Wait>(&op)) {
      uses[wait->token].waits.push_back(i);
    } else if (const std::optional<TokenId> token = postedToken(op)) {
      uses[*token].posts.push_back(i);
    }
  }
  return uses;
}

}  // namespace heddle::host
