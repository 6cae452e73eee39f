#pragma once

#include <string>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// A stream split: a request of the user to compute a value in several parts, one after another. For
// example, the text form `stream(0: 4)` asks for 4 parts along axis 0. The request does not affect
// which device holds which data. The fusion therefore keeps it as an annotation, and the lowering
// (host/lower) copies it to the slots (registers) of the host program.
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
