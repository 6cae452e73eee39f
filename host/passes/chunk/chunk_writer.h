#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/passes/chunk/cost_model.h"
#include "host/passes/chunk/overlap_patterns.h"

namespace heddle::host {

// Copies a program and splits some of its overlap pattern matches into chunks. Chunks of the first
// and the last tensor of a match are views. The tensors between them are allocated one chunk at a
// time. The terms are defined in these headers of host/passes/chunk:
//   match   a collective and the matrix products next to it (OverlapMatch, overlap_patterns.h)
//   stage   the matrix products of a match and the kernel next to them (ChunkStage)
//   front   the stage that computes the rows that a match reads (OverlapMatch::front)
//   chain   a match and its front, whose chunks pass through both stages
//   shares  the lengths of the chunks, in units of equal numbers of rows (ChunkShares,
//           cost_model.h)
class ChunkWriter {
 public:
  explicit ChunkWriter(const Program& program);

  // Splits a match. For each match, call either this or cutChain(), at most once.
  void cut(const OverlapMatch& match, const ChunkCut& cut, const ChunkShares& shares);
  // Splits a match together with its front. `gather` is the match that gathers the rows that the
  // front reads; it is split too. `gather` is nullptr if the front reads no gathered rows.
  void cutChain(const OverlapMatch& match, const OverlapMatch* gather, const ChunkCut& cut,
                const ChunkShares& shares);
  bool hasCut() const { return has_cut_; }
  Program result() &&;

 private:
  // A view of an unsplit tensor. Each chunk is a slice of the view along `axis`. If each chunk has
  // rows of several blocks, one block per rank, the axis before `axis` counts the blocks.
  struct Rows {
    SlotId slot;
    size_t axis;
    Size unit;  // rows of one unit of the shares in one block
  };
  // The match and the chunk that the writer is writing.
  struct Work {
    const OverlapMatch& match;
    const ChunkCut& cut;
    const ChunkShares& shares;
    bool is_chain;
    int64_t blocks;                   // number of blocks of rows in the tensors between
    Size unit = Size(0);              // rows of one unit of the shares in one block
    int64_t chunk = 0;                // index of the chunk
    std::map<SlotId, SlotId> made{};  // slot of the unsplit tensor -> slot of this chunk
  };
  // Work::made of each chunk.
  using MadeByChunk = std::vector<std::map<SlotId, SlotId>>;
  // The kernel of a stage, with what all its chunks have in common.
  struct KernelParts {
    const ChunkStage* stage;
    std::map<int64_t, KernelId> kernels;  // one kernel for each length of a chunk
    std::map<SlotId, Rows> rows;          // operands in memory in full: their chunks are views
    std::map<SlotId, SlotId> shared;      // operand without rows -> view of this rank's block
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
  // The parts of a stage that all its chunks have in common.
  struct StageParts;
  StageParts stageParts(Work& work, const ChunkStage& stage, const MadeByChunk& gathered);
  void computeChunk(Work& work, StageParts& parts);
  void reduceChunks(Work work, const MadeByChunk& gathered);

  const Program& old_;
  Program new_;
  std::set<std::string> names_;
  std::map<std::string, int> next_number_;  // of fresh(): all lower numbers are in use
  // By index into the body of the old program: the instructions that replace the instruction.
  std::vector<std::optional<std::vector<Instruction>>> instead_;
  size_t current_ = 0;
  bool has_cut_ = false;
};

}  // namespace heddle::host
