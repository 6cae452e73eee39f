#include "host/passes/sink_waits.h"

#include <algorithm>
#include <map>

#include "host/passes/analysis/buffer_accesses.h"
#include "host/passes/analysis/next_conflict.h"
#include "host/passes/analysis/token_uses.h"

namespace heddle::host {
namespace {

// Returns the first element of the sorted list that is greater than `after`, or `none` if there is
// no such element.
size_t nextIn(const std::vector<size_t>& list, size_t after, size_t none) {
  const auto found = std::upper_bound(list.begin(), list.end(), after);
  return found == list.end() ? none : *found;
}

}  // namespace

Program sinkWaits(Program program) {
  const BufferAccesses items = bufferAccessesOf(program);
  if (!isUnordered(program, items)) return program;
  const NextConflict conflicts(items);
  const IdVector<TokenId, TokenUses> uses = tokenUsesOf(program);
  const size_t count = program.body.size();
  std::map<TokenId, size_t> post_of;
  std::vector<std::vector<Instruction>> before(count + 1);
  std::vector<bool> moved(count, false);
  for (size_t i = 0; i < count; ++i) {
    const Instruction& x = program.body[i];
    if (items.items[i].posts.valid()) post_of[items.items[i].posts] = i;
    // Only a Wait waits for a token, so no other instruction can be sunk.
    const auto* wait = std::get_if<Wait>(&x.op);
    if (wait == nullptr || post_of.count(wait->token) == 0) continue;
    const TokenUses& of = uses[wait->token];
    const size_t to = std::min({nextIn(of.posts, i, count), nextIn(of.waits, i, count),
                                conflicts.find(post_of[wait->token], i)});
    Instruction copy = x;
    // The wait may use the stream of the instruction at `to` only if all ranks that execute the
    // wait also execute this instruction. Otherwise the wait is on stream 0, which every rank uses.
    const bool everywhere =
        to < count && (!program.body[to].on.valid() || program.body[to].on == x.on);
    const bool has_stream = everywhere && items.items[to].stream.valid();
    std::get<Wait>(copy.op).stream = has_stream ? items.items[to].stream : kCallerStream;
    before[to].push_back(std::move(copy));
    moved[i] = true;
  }
  std::vector<Instruction> body;
  for (size_t i = 0; i <= count; ++i) {
    for (Instruction& x : before[i]) body.push_back(std::move(x));
    if (i < count && !moved[i]) body.push_back(std::move(program.body[i]));
  }
  program.body = std::move(body);
  return program;
}

}  // namespace heddle::host
