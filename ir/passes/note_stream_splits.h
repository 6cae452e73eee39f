#pragma once

#include <string>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// A request of the user to compute a value in several parts, written `stream(0: 4)` in the text
// form. The request does not affect which device holds which data. The fusion therefore keeps it as
// an annotation, and the lowering (host/lower) copies it to the slots (registers) of the host
// program.
struct StreamRequest {
  ValueId value;     // kNoValue: a pass has removed the value
  std::string name;  // name of the value in the user's fusion
  MeshId mesh;
  Sharding::StreamSplit split;
  bool operator==(const StreamRequest&) const = default;
};
using StreamSplits = std::vector<StreamRequest>;
inline constexpr const char* kStreamSplits = "stream_splits";

// Moves all stream splits from the shardings to the annotation kStreamSplits.
Fusion noteStreamSplits(Fusion fusion);

}  // namespace heddle
