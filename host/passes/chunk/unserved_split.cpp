#include "host/passes/chunk/unserved_split.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

#include "host/text/text_names.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

// An instruction that connects two slots: a collective, a view, or a kernel next to a collective.
// The kernel has one operand and one result.
struct Move {
  SlotId in;
  SlotId out;
  const Communicate* post = nullptr;  // nullptr: a view or a kernel
};

const CallLibrary* matmulOf(const Instruction& x) {
  // Every matrix product is a library call: no kernel contains one.
  const auto* call = std::get_if<CallLibrary>(&x.op);
  const bool is_matmul =
      call != nullptr && (call->function == "matmul" || call->function == "linear");
  return is_matmul ? call : nullptr;
}

std::vector<Move> movesOf(const Program& program) {
  std::vector<Move> moves;
  std::set<SlotId> communicated;
  for (const Instruction& x : program.body) {
    // A Send or Recv is not split, so it connects no matrix products.
    const auto* post = std::get_if<Communicate>(&x.op);
    if (post == nullptr || post->kind == comm::CollectiveKind::Barrier) continue;
    moves.push_back({post->in, post->out, post});
    communicated.insert({post->in, post->out});
  }
  for (const Instruction& x : program.body) {
    // In lowered programs, only views and kernels connect a collective with a matrix product.
    if (const auto* view = std::get_if<Alias>(&x.op)) {
      moves.push_back({view->in, view->out});
    } else if (const auto* launch = std::get_if<LaunchKernel>(&x.op)) {
      if (launch->inputs.size() != 1 || launch->outputs.size() != 1) continue;
      const SlotId in = launch->inputs[0], out = launch->outputs[0];
      if (communicated.contains(in) || communicated.contains(out)) moves.push_back({in, out});
    }
  }
  return moves;
}

// Returns `slots` and all slots that moves connect with them, directly or through other slots.
// These are the sources of the moves if `backwards` is true, otherwise the destinations.
std::set<SlotId> connected(std::set<SlotId> slots, const std::vector<Move>& moves, bool backwards) {
  for (size_t before = 0; before != slots.size();) {
    before = slots.size();
    for (const Move& move : moves) {
      if (slots.contains(backwards ? move.out : move.in)) {
        slots.insert(backwards ? move.in : move.out);
      }
    }
  }
  return slots;
}

}  // namespace

std::string explainUnserved(const Program& program, SlotId slot) {
  const std::vector<Move> moves = movesOf(program);
  const auto nameOf = [&](SlotId id) { return program.slots[id].name; };
  for (const Instruction& x : program.body) {
    const CallLibrary* matmul = matmulOf(x);
    if (matmul == nullptr) continue;
    const auto sources = connected({matmul->inputs.begin(), matmul->inputs.end()}, moves, true);
    const auto results = connected({matmul->outputs.begin(), matmul->outputs.end()}, moves, false);
    if (!sources.contains(slot) && !results.contains(slot)) continue;
    std::vector<std::string> posts;
    for (const Move& move : moves) {
      if (move.post == nullptr) continue;
      if (!sources.contains(move.out) && !results.contains(move.in)) continue;
      posts.push_back(fmt::format("{} %{} -> %{}", collectiveName(move.post->kind), nameOf(move.in),
                                  nameOf(move.out)));
    }
    std::vector<std::string> sizes;
    for (const auto& [symbol, size] : program.size_defaults) {
      sizes.push_back(fmt::format("{} = {}", symbol, size));
    }
    return fmt::format(
        "; the cheapest moves for the matrix product of line {}{}{} are: {}{}; use set() to give "
        "its "
        "operands shardings with which the ranks gather the rows of its first operand or sum its "
        "result, or remove the stream split",
        x.line, sizes.empty() ? "" : " at ", fmt::join(sizes, ", "),
        posts.empty() ? "none" : fmt::format("{}", fmt::join(posts, ", ")),
        sizes.empty() ? "" : "; other sizes may need other moves");
  }
  return {};
}

}  // namespace heddle::host
