#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/cats/cat.h"
#include "ir/segment/segment.h"

namespace heddle {

// The cats whose pieces are written into the result.
struct ChosenCats {
  std::vector<Cat> cats;
  std::vector<std::string> notes;  // for each other cat that a kernel computes: name and reason
};

// Chooses how each cat of the fusion is computed. There are two ways:
// - A kernel selects a piece for each element. It reads all pieces, and may compute other values
//   from the result. The result is stored only if something else needs it in memory.
// - The result is allocated once, and each piece is a slice of it. The kernel that computes a piece
//   writes it there. A piece that cannot be written there (Cat::Piece::why_copied) is copied.
//
// `segmented` contains the fusion with all cats computed in the first way. A cat is computed in the
// second way if all of this is true:
// - The kernel of the first way stores the result.
// - At most half of the pieces are copied. The second way saves one write and one read of each
//   piece that is not copied. It needs no launch for the cat, but one launch per copy.
// - No piece is copied if the kernel of the first way contains expressions other than those of the
//   cat. They often read the result, and another kernel would then have to read the copied piece
//   again.
// - All pieces have the sharding of the result, which is not sharded along the axis of the cat.
// The rules do not look at sizes, so all ranks make the same choice.
ChosenCats chooseCats(const SegmentedFusion& segmented);

// Returns the fusion in which the kernels of the first way compute generated pieces instead of
// reading them (ir/passes/take_generated.h). Returns nullopt if they read no generated piece.
std::optional<Fusion> computeGeneratedPieces(const SegmentedFusion& segmented);

}  // namespace heddle
