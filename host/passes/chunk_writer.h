#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/passes/chunk_sites.h"

namespace heddle::host {

// Writes a program anew, with sites in chunks. Where a site's tensors come from or go to, chunks
// are views; the tensor between product and collective is made a chunk at a time.
class ChunkWriter {
 public:
  explicit ChunkWriter(const Program& program);

  // Each site once.
  void cut(const ChunkSite& site, const ChunkCut& cut, int64_t chunks);
  bool hasCut() const { return has_cut_; }
  Program result() &&;

 private:
  // The rows of a tensor as chunks take them: an axis of them, or of those of one of several blocks
  // when each chunk has rows of every block (the axis before).
  struct Rows {
    SlotId slot;
    size_t axis;
    Size count;  // rows of one chunk in one block
  };
  // What is written now.
  struct Work {
    const ChunkSite& site;
    const ChunkCut& cut;
    int64_t chunks;
    int64_t blocks;                   // of rows, in the tensor between product and collective
    Size count = Size(0);             // rows of a chunk in one block
    std::map<SlotId, SlotId> made{};  // of the chunk that is written now, by slot of the whole
  };
  // The kernel between, for any chunk.
  struct KernelParts {
    KernelId kernel = -1;
    std::map<SlotId, Rows> rows;      // of operands that are whole before it
    std::map<SlotId, SlotId> shared;  // what all rows share, as this rank has it
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
  SlotId chunkOf(const Rows& rows, SlotId of, int64_t chunk);
  SlotId newChunk(Work& work, SlotId like);
  KernelParts kernelParts(const Work& work);
  void launchChunk(Work& work, KernelParts& parts, int64_t chunk);
  void gatherChunks(Work work);
  void reduceChunks(Work work);

  const Program& old_;
  Program new_;
  std::set<std::string> names_;
  std::vector<std::optional<std::vector<Instruction>>> instead_;  // by position
  size_t current_ = 0;
  bool has_cut_ = false;
};

}  // namespace heddle::host
