#pragma once

#include <cstdint>

#include "host/passes/pipeline.h"

namespace heddle::host {

// A collective at most this large is joined with others. To begin and end one takes about 15 us
// whatever it moves, to send 1 MiB over NVLink 3 us (the nominal rates of chunk_cost.cpp): alone it
// would be start-up costs nearly throughout.
inline constexpr int64_t kCoalescedBytes = int64_t{1} << 20;
// Together they move at most this: 12 us, beyond which one start less is no longer worth the wait
// of the first for the last.
inline constexpr int64_t kGroupBytes = int64_t{4} << 20;
inline constexpr size_t kGroupPosts = 64;  // nor are they more than this

// Small collectives of one kind, reduction, root and team that do not depend on each other are one
// Communicate with several pairs (Communicate::also) where the last of them stood: one post, one
// token, one wait. They move behind what stands between only if it touches nothing of theirs.
// Pieces of one buffer, which were cut apart on purpose, stay apart. What is joined is a function
// of the program and the options, the same on every rank.
//
// After posts are lifted, which brings neighbours together, and before streams are given out and
// waits sink. Programs with several streams, events, groups or posts in bodies are left alone, as
// are tokens that are posted or waited for more than once.
Program coalesceCollectives(Program program, const PassOptions& options);

}  // namespace heddle::host
