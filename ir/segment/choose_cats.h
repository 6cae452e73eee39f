#pragma once

#include <string>
#include <vector>

#include "ir/segment/cat.h"
#include "ir/segment/segment.h"

namespace heddle {

// The cats of a fusion whose pieces are written into the result.
struct ChosenCats {
  std::vector<Cat> cats;
  std::vector<std::string> notes;  // for each other cat: a text that names it and gives the reason
};

// Chooses how each cat of the fusion is computed. There are two ways:
// - A kernel selects a piece for each element. It reads all pieces, and may compute other values
//   too. The result is stored only if something else needs it in memory.
// - The result is allocated once, and each piece is a slice of it. A kernel that computes a piece
//   writes it there. A piece that cannot be written there (Cat::Piece::why_copied) is copied.
//
// `segmented` contains the fusion with all cats computed in the first way. A cat is computed in the
// second way if all of this is true:
// - The kernel of the first way stores the result.
// - At most half of the pieces are copied. The other pieces are neither written nor read again.
//   There are then never more launches than in the first way, except for copies after the first.
// - No piece is copied if the kernel of the first way computes other values too. Another kernel
//   would read the copied piece again for these.
// - All pieces have the sharding of the result, which is not sharded along the axis.
// The rules do not look at sizes, so all ranks choose the same.
ChosenCats chooseCats(const SegmentedFusion& segmented);

}  // namespace heddle
