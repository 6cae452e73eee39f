#include "ir/segment/choose_cats.h"

#include <algorithm>
#include <set>

#include "ir/analysis/kernel_rules.h"
#include "ir/base/check.h"
#include "ir/passes/take_generated.h"
#include "ir/segment/group_kind.h"

namespace heddle {
namespace {

class CatChooser {
 public:
  explicit CatChooser(const SegmentedFusion& segmented)
      : segmented_(segmented),
        fusion_(segmented.fusion),
        readers_(readersOf(fusion_)),
        is_output_(fusion_.outputFlags()) {}

  // Visits the cats in the order of the fusion. A cat that is a piece of another cat is therefore
  // visited before the other cat.
  ChosenCats run() {
    for (Cat& cat : catsOf(fusion_)) {
      if (segmented_.group_of[cat.exprs.front()] < 0) continue;
      const std::string why = whyNot(cat);
      if (!why.empty()) {
        chosen_.notes.push_back(
            fmt::format("cat of %{} is computed by a kernel that reads its pieces: {}",
                        nameOf(cat.result), why));
        continue;
      }
      results_.insert(cat.result);
      for (const Cat::Piece& piece : cat.pieces) {
        if (piece.why_copied.empty()) written_pieces_.insert(piece.value);
      }
      chosen_.cats.push_back(std::move(cat));
    }
    return std::move(chosen_);
  }

 private:
  const std::string& nameOf(ValueId id) const { return fusion_.value(id).name; }

  // Returns "" if the pieces of the cat should be written into the result, after setting
  // Piece::why_copied. Otherwise returns the reason.
  std::string whyNot(Cat& cat) const {
    const size_t group = segmented_.group_of[cat.exprs.back()];
    const Group& kernel = segmented_.groups[group];
    if (std::find(kernel.outputs.begin(), kernel.outputs.end(), cat.result) ==
        kernel.outputs.end()) {
      return "only this kernel reads the result";
    }
    const std::optional<Sharding>& sharding = fusion_.tensor(cat.result).sharding;
    if (sharding && sharding->isSharded(cat.axis)) return "the result is sharded along the axis";
    std::set<ValueId> seen;
    std::vector<const Cat::Piece*> copied;
    for (Cat::Piece& piece : cat.pieces) {
      if (fusion_.tensor(piece.value).sharding != sharding) {
        return fmt::format("%{} has another sharding", nameOf(piece.value));
      }
      piece.why_copied = whyCopied(cat, piece.value);
      if (!seen.insert(piece.value).second) piece.why_copied = "an earlier piece is the same value";
      if (!piece.why_copied.empty()) copied.push_back(&piece);
    }
    const bool computes_more = kernel.exprs.size() > cat.exprs.size();
    if (copied.size() <= (computes_more ? 0 : cat.pieces.size() / 2)) return {};
    return fmt::format("{}{} of {} pieces would be copied, for example %{}: {}",
                       computes_more ? "it computes other values too, and " : "", copied.size(),
                       cat.pieces.size(), nameOf(copied[0]->value), copied[0]->why_copied);
  }

  // Returns "" if the piece can be written directly into the result. The writer is the kernel that
  // computes the piece. If the piece is the result of a chosen cat, the kernels of this cat write
  // it. Returns the reason if the piece must be copied instead.
  std::string whyCopied(const Cat& cat, ValueId id) const {
    const ExprId definition = fusion_.value(id).definition;
    if (definition == kNoExpr) return "it is an input of the fusion";
    if (!results_.contains(id)) {
      const size_t group = segmented_.group_of[definition];
      const GroupKind kind = segmented_.groups[group].kind;
      if (kind != GroupKind::Kernel) return whatItIs(fusion_, fusion_.expr(definition), kind);
    }
    if (is_output_[id]) return "it is an output of the fusion";
    if (fusion_.tensor(id).layout.required) return "its memory order is required";
    if (written_pieces_.contains(id)) return "it is a piece of another cat";
    for (ExprId reader : readers_[id]) {
      if (std::binary_search(cat.exprs.begin(), cat.exprs.end(), reader)) continue;
      const auto group = segmented_.group_of[reader];
      if (group < 0) continue;
      const GroupKind kind = segmented_.groups[group].kind;
      if (kind != GroupKind::Kernel) {
        return whatItIs(fusion_, fusion_.expr(reader), kind) + " that also reads it";
      }
    }
    return {};
  }

  const SegmentedFusion& segmented_;
  const Fusion& fusion_;
  const IdVector<ValueId, std::vector<ExprId>> readers_;
  const IdVector<ValueId, bool> is_output_;
  std::set<ValueId> results_;         // results of the chosen cats
  std::set<ValueId> written_pieces_;  // the pieces that are written into a result
  ChosenCats chosen_;
};

}  // namespace

ChosenCats chooseCats(const SegmentedFusion& segmented) { return CatChooser(segmented).run(); }

std::optional<Fusion> computeGeneratedPieces(const SegmentedFusion& segmented) {
  std::set<ExprId> exprs;
  for (const Cat& cat : catsOf(segmented.fusion)) exprs.insert(cat.exprs.begin(), cat.exprs.end());
  if (exprs.empty()) return std::nullopt;
  for (const Cat& cat : chooseCats(segmented).cats) {
    for (ExprId id : cat.exprs) exprs.erase(id);
  }
  return takeGenerated(segmented.fusion, exprs);
}

}  // namespace heddle
