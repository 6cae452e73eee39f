#pragma once

#include <map>

#include "ir/fusion.h"

namespace heddle {

// Values that the user wants worked on in chunks, `stream(0: 4)`. They say nothing of where data
// lives, so they ride along as an annotation, which the lowering puts back on the slots.
using StreamSplits = std::map<ValueId, Sharding::StreamSplit>;
inline constexpr const char* kStreamSplits = "stream_splits";

// No sharding has a stream split afterwards.
Fusion noteStreamSplits(const Fusion& fusion);

}  // namespace heddle
