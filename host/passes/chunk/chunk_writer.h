#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/passes/chunk/cost_model.h"
#include "host/passes/chunk/overlap_patterns.h"

namespace heddle::host {

// Writes a program again, with matches split into chunks. Chunks of the first and the last tensor
// of a match are views. The tensors between are allocated one chunk at a time.
class ChunkWriter {
 public:
  explicit ChunkWriter(const Program& program);

  // Splits a match. Call this or cutChain() at most once per match.
  void cut(const OverlapMatch& match, const ChunkCut& cut, const ChunkShares& shares);
  // Splits a match with its front, and with the match that gathers the rows that the front reads.
  // nullptr: the front reads no gathered rows.
  void cutChain(const OverlapMatch& match, const OverlapMatch* gather, const ChunkCut& cut,
                const ChunkShares& shares);
  bool hasCut() const { return has_cut_; }
  Program result() &&;

 private:
  // A view of a tensor of which chunks are slices along one axis. If each chunk has rows of several
  // blocks, the axis before it is that of the blocks.
  struct Rows {
    SlotId slot;
    size_t axis;
    Size unit;  // rows of one unit of the shares in one block
  };
  // The match and the chunk that are written now.
  struct Work {
    const OverlapMatch& match;
    const ChunkCut& cut;
    const ChunkShares& shares;
    bool is_chain;
    int64_t blocks;                   // of rows in the tensors between
    Size unit = Size(0);              // rows of one unit of the shares in one block
    int64_t chunk = 0;                // index of the chunk
    std::map<SlotId, SlotId> made{};  // slot of the unsplit tensor -> slot of this chunk
  };
  // Work::made of each chunk.
  using MadeByChunk = std::vector<std::map<SlotId, SlotId>>;
  // The kernel of a stage and its operands, for all chunks.
  struct KernelParts {
    const ChunkStage* stage;
    std::map<int64_t, KernelId> kernels;  // by the share of a chunk
    std::map<SlotId, Rows> rows;          // operands that exist unsplit: chunks are views
    std::map<SlotId, SlotId> shared;      // operands without rows -> views of this rank's block
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
  // A stage with the rows that its matrix products read, if chunks of these are views.
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
