#pragma once

#include <optional>
#include <string>
#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// Rows of the tensors at a collective that may be cut: axes that are neither summed over nor made
// by the product's second operand, outside of all others in memory, so that a chunk of them is one
// stretch.
struct ChunkCut {
  std::vector<size_t> axes;  // several: one axis in memory, in OverlapMatch::order
  std::vector<size_t> ones;  // axes outside of them, which must have the extent 1
  bool isFlat() const { return axes.size() > 1; }
};

// Products and a kernel around them that work row by row. Positions are of Program::body.
struct ChunkStage {
  std::vector<size_t> products;
  std::optional<size_t> kernel;
  std::vector<bool> kernel_rows;  // by operand of the kernel (RowwiseKernel::has_rows)
  std::vector<size_t> allocates;  // of the tensors that only they and what follows see
};

// A collective and the products it can be chunked with: one or more that read what is gathered, or
// make what is reduced. The kernel stands between the two.
struct OverlapMatch : ChunkStage {
  comm::CollectiveKind kind;  // Allgather, ReduceScatter, Allreduce
  size_t post = 0;
  size_t wait = 0;
  int64_t team = 1;            // devices
  AxisOrder order;             // in which both sides of the collective lie in memory
  std::vector<ChunkCut> cuts;  // at least one; the one that divides most sizes first
  // Of a reduction: what makes the rows that its product reads, products and perhaps a kernel
  // behind them, which nothing else reads. A chunk may go through both stages.
  std::optional<ChunkStage> front;
  std::optional<size_t> gather;  // the match (by its post) that gathers what the front reads, alike
};

// An allgather, reduce-scatter or allreduce of a team of several that stays whole.
struct WholeCollective {
  size_t post;
  std::string why;
};

struct OverlapMatches {
  std::vector<OverlapMatch> matches;
  std::vector<WholeCollective> whole;
};

// In program order; no instruction is in two of them but those of a front and its gather. None
// where somebody has ordered streams by hand already.
OverlapMatches findOverlapPatterns(const Program& program);

}  // namespace heddle::host
