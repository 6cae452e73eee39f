#pragma once

#include <cstdint>
#include <vector>

namespace heddle::host {

// One chunk, in seconds of what is busy.
struct ChunkSeconds {
  double come = 0;     // gathered, before its product
  double product = 0;  // the SMs, kernel and sum included
  double push = 0;     // after it, by copy engines, what peers then sum
  double pull = 0;     // and what comes back
  double alone = 0;    // all of that at once, without a product beside it
  double meet = 0;     // a copy channel before each of its copies
  int64_t pieces = 1;  // in which a copy channel moves it (SharedArena::kPieceBytes)
};

// Seconds until all is over. Products follow each other, each when its rows are there. What copy
// engines move waits for an SM once a piece, to be copied or summed on this GPU, and gets it when a
// product leaves; in two `stages` of a chunk that is in its middle too. With `reduces`, all chunks
// but the last are pushed and pulled, in two copy channels by turns, and the last goes alone, on
// links that it shares with what the copy channels still copy.
double pipelineSeconds(const std::vector<ChunkSeconds>& chunks, bool reduces, int stages);

}  // namespace heddle::host
