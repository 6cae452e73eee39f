#include "host/lower/cat_slices.h"

namespace heddle::host {

Alias::Slice sliceOf(const Expression& slice) {
  Alias::Slice result{slice.attr<std::vector<Size>>("starts"),
                      slice.attr<std::vector<Size>>("stops")};
  if (slice.find("steps") != nullptr) result.steps = slice.attr<std::vector<int64_t>>("steps");
  return result;
}

Alias::Slice sliceOf(const Fusion& fusion, const Cat& cat, const Cat::Piece& piece) {
  Alias::Slice slice{{}, fusion.tensor(cat.result).sizes()};
  slice.starts.assign(slice.stops.size(), Size(0));
  slice.starts[cat.axis] = piece.start;
  slice.stops[cat.axis] = piece.stop;
  return slice;
}

CatSlices::CatSlices(const SegmentedFusion& segmented)
    : fusion_(segmented.fusion), pieces_(fusion_.values().size()) {
  for (const Group& group : segmented.groups) {
    if (!group.cat) continue;
    for (const Cat::Piece& piece : group.cat->pieces) {
      if (piece.why_copied.empty()) pieces_[piece.value] = {&*group.cat, &piece};
    }
  }
}

Alias::Slice CatSlices::sliceOf(ValueId id) const {
  const auto& [cat, piece] = pieces_[id];
  return host::sliceOf(fusion_, *cat, *piece);
}

}  // namespace heddle::host
