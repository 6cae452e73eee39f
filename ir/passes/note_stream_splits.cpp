#include "ir/passes/note_stream_splits.h"

namespace heddle {
namespace {

std::optional<StreamSplits> remapped(const StreamSplits& splits, const Fusion::IdMap& map) {
  StreamSplits result = splits;
  for (StreamRequest& request : result) {
    if (request.value != kNoValue) request.value = map(request.value).value_or(kNoValue);
  }
  return result;
}

}  // namespace

Fusion noteStreamSplits(Fusion fusion) {
  StreamSplits splits;
  for (ValueId id : fusion.values().ids()) {
    std::optional<Sharding> sharding = fusion.tensor(id).sharding;
    if (!sharding || !sharding->stream) continue;
    const Sharding::StreamSplit split = *std::exchange(sharding->stream, std::nullopt);
    splits.push_back({id, fusion.value(id).name, sharding->mesh, split});
    fusion.setSharding(id, sharding);
  }
  if (!splits.empty()) fusion.annotate<StreamSplits>(kStreamSplits, splits, &remapped);
  return fusion;
}

}  // namespace heddle
