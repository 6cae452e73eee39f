#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/passes/chunk/cost_model.h"
#include "host/passes/chunk/overlap_patterns.h"

namespace heddle::host {

// Writes a program anew, with matches in chunks. Where a match's tensors come from or go to, chunks
// are views; the tensor between product and collective is made a chunk at a time.
class ChunkWriter {
 public:
  explicit ChunkWriter(const Program& program);

  // Each match once.
  void cut(const OverlapMatch& match, const ChunkCut& cut, const ChunkShares& shares);
  // With its front, and with the match that gathers what that reads (nullptr: none).
  void cutChain(const OverlapMatch& match, const OverlapMatch* gather, const ChunkCut& cut,
                const ChunkShares& shares);
  bool hasCut() const { return has_cut_; }
  Program result() &&;

 private:
  // The rows of a tensor as chunks take them: an axis of them, or of those of one of several blocks
  // when each chunk has rows of every block (the axis before).
  struct Rows {
    SlotId slot;
    size_t axis;
    Size unit;  // rows of one unit of the shares in one block
  };
  // What is written now.
  struct Work {
    const OverlapMatch& match;
    const ChunkCut& cut;
    const ChunkShares& shares;
    bool is_chain;
    int64_t blocks;                   // of rows, in the tensor between product and collective
    Size unit = Size(0);              // rows of one unit of the shares in one block
    int64_t chunk = 0;                // which one
    std::map<SlotId, SlotId> made{};  // of the chunk that is written now, by slot of the whole
  };
  // What is made for each chunk, by slot of the whole.
  using MadeByChunk = std::vector<std::map<SlotId, SlotId>>;
  // The kernel of a stage, for any chunk.
  struct KernelParts {
    const ChunkStage* stage;
    std::map<int64_t, KernelId> kernels;  // by the share of a chunk
    std::map<SlotId, Rows> rows;          // of operands that are whole before it
    std::map<SlotId, SlotId> shared;      // what all rows share, as this rank has it
  };

  const Slot& slot(SlotId id) const { return new_.slots[static_cast<size_t>(id)]; }
  std::string fresh(const std::string& base);
  SlotId newSlot(SlotId like, const std::string& what, const std::vector<Size>& sizes,
                 const AxisOrder& order = {});
  TokenId newToken();
  std::vector<Size> localSizes(SlotId id) const;

  std::vector<Instruction>& instead(size_t i);
  void emit(Op op);

  Rows rowsIn(const Work& work, SlotId id, int64_t blocks);
  SlotId chunkOf(const Work& work, const Rows& rows, SlotId of);
  SlotId newChunk(Work& work, SlotId like);
  KernelParts kernelParts(const Work& work, const ChunkStage& stage);
  void launchChunk(Work& work, KernelParts& parts);
  void clear(const ChunkStage& stage);
  MadeByChunk postGathers(Work& work);
  void gatherChunks(Work work);
  // The stages with rows of their products, where these are views.
  struct StageParts;
  StageParts stageParts(Work& work, const ChunkStage& stage, const MadeByChunk& gathered);
  void computeChunk(Work& work, StageParts& parts);
  void reduceChunks(Work work, const MadeByChunk& gathered);

  const Program& old_;
  Program new_;
  std::set<std::string> names_;
  std::vector<std::optional<std::vector<Instruction>>> instead_;  // by position
  size_t current_ = 0;
  bool has_cut_ = false;
};

}  // namespace heddle::host
