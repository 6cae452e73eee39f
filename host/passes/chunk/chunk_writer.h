#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/passes/chunk/cost_model.h"
#include "host/passes/chunk/overlap_patterns.h"

namespace heddle::host {

// Copies a program and splits some of its matrix products and collectives into chunks of rows. The
// following words are defined in headers of host/passes/chunk:
//   match   a collective and the matrix products next to it (OverlapMatch, overlap_patterns.h)
//   stage   the matrix products of a match and the kernel next to them (ChunkStage,
//           overlap_patterns.h)
//   front   the stage that computes the rows that a match reads (OverlapMatch::front)
//   chain   a match and its front, if each chunk passes through both stages
//   cut     a way to split a match: the axes along which it is split (ChunkCut, overlap_patterns.h)
//   shares  the lengths of the chunks, in units of a fixed number of rows (ChunkShares,
//           cost_model.h)
class ChunkWriter {
 public:
  explicit ChunkWriter(const Program& program);

  // Splits a match along `cut`. For each match, call either cut() or cutChain(), at most once.
  void cut(const OverlapMatch& match, const ChunkCut& cut, const ChunkShares& shares);
  // Splits a match and its front along `cut`. Also splits `gather`, the match that gathers the rows
  // for the front. `gather` is nullptr if the front reads no gathered rows.
  void cutChain(const OverlapMatch& match, const OverlapMatch* gather, const ChunkCut& cut,
                const ChunkShares& shares);
  bool hasCut() const { return has_cut_; }
  Program result() &&;

 private:
  // A view of an unsplit tensor whose slices along `axis` are the chunks. If a chunk contains rows
  // of the blocks of several ranks, the axis before `axis` counts the blocks.
  struct Rows {
    SlotId slot;  // names the view
    size_t axis;
    Size unit;  // extent along `axis` of one unit of the shares
  };
  // The match that the writer splits, and the chunk that it is writing.
  struct Work {
    const OverlapMatch& match;
    const ChunkCut& cut;
    const ChunkShares& shares;
    bool is_chain;
    // In the tensors between the first and the last tensor of the match, each chunk contains rows
    // of this number of blocks (one block per rank).
    int64_t blocks;
    Size unit = Size(0);              // extent along the split axis of one unit of the shares
    size_t chunk = 0;                 // index of the chunk
    std::map<SlotId, SlotId> made{};  // slot of the unsplit tensor -> slot of this chunk
  };
  // Work::made of each chunk, by index of the chunk.
  using MadeByChunk = std::vector<std::map<SlotId, SlotId>>;
  // The kernel of a stage, and the slots that the launches for all chunks share.
  struct KernelParts {
    const ChunkStage* stage;
    std::map<int64_t, KernelId> kernels;  // length of a chunk in units -> kernel for this length
    std::map<SlotId, Rows> rows;          // unsplit operand -> view whose slices are the chunks
    std::map<SlotId, SlotId> shared;      // operand without rows -> view without padding
  };

  const Slot& slot(SlotId id) const { return new_.slots[id]; }
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
  void clear(const ChunkStage& stage);  // removes the instructions of the stage
  MadeByChunk postGathers(Work& work);
  void gatherChunks(Work work);
  // The slots that all chunks of a stage share.
  struct StageParts;
  StageParts stageParts(Work& work, const ChunkStage& stage, const MadeByChunk& gathered);
  void computeChunk(Work& work, StageParts& parts);
  void reduceChunks(Work work, const MadeByChunk& gathered);

  const Program& old_;
  Program new_;
  std::set<std::string> names_;
  std::map<std::string, int> next_number_;  // for fresh(): per base name, the next number to try
  // By index into the body of the old program: the instructions that replace the old instruction.
  // nullopt: the old instruction is copied.
  std::vector<std::optional<std::vector<Instruction>>> instead_;
  size_t current_ = 0;  // index of the old instruction for which emit() writes
  bool has_cut_ = false;
};

}  // namespace heddle::host
