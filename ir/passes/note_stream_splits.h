#pragma once

#include <string>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// Values that the user wants worked on in chunks, `stream(0: 4)`. They say nothing of where data
// lives, so they ride along as an annotation, which the lowering puts back on the slots.
struct StreamRequest {
  ValueId value;     // kNoValue: a pass has made another value of it
  std::string name;  // as the user wrote it
  MeshId mesh;
  Sharding::StreamSplit split;
  bool operator==(const StreamRequest&) const = default;
};
using StreamSplits = std::vector<StreamRequest>;
inline constexpr const char* kStreamSplits = "stream_splits";

// No sharding has a stream split afterwards.
Fusion noteStreamSplits(const Fusion& fusion);

}  // namespace heddle
