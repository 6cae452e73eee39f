#include "ir/passes/note_stream_splits.h"

namespace heddle {
namespace {

std::optional<StreamSplits> remapped(const StreamSplits& splits, const Fusion::IdMap& map) {
  StreamSplits result;
  for (const auto& [old, split] : splits) {
    if (const std::optional<ValueId> id = map(old)) result[*id] = split;
  }
  return result;
}

}  // namespace

Fusion noteStreamSplits(const Fusion& fusion) {
  Fusion result = fusion;
  StreamSplits splits;
  for (size_t i = 0; i < fusion.values().size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    std::optional<Sharding> sharding = fusion.tensor(id).sharding;
    if (!sharding || !sharding->stream) continue;
    splits[id] = *std::exchange(sharding->stream, std::nullopt);
    result.setSharding(id, sharding);
  }
  if (!splits.empty()) result.annotate<StreamSplits>(kStreamSplits, splits, &remapped);
  return result;
}

}  // namespace heddle
