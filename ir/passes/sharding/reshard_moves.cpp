#include "ir/passes/sharding/reshard_moves.h"

#include "ir/base/check.h"

namespace heddle {
namespace {

std::string told(const ReshardMove::Way& way) {
  return fmt::format("{} ({:.0f} bytes)", fmt::join(way.steps, ", "), way.bytes);
}

}  // namespace

std::string dumpResharding(const Fusion& fusion) {
  const auto moves = fusion.annotation<std::vector<ReshardMove>>(kReshardingAnnotation);
  std::string text;
  if (!moves) return text;
  for (const ReshardMove& move : *moves) {
    text += fmt::format("%{}: {} -> {}: {}\n", move.value, move.from, move.to, told(move.way));
    for (const ReshardMove::Way& way : move.alternatives) {
      text += fmt::format("    or {}\n", told(way));
    }
  }
  return text;
}

}  // namespace heddle
