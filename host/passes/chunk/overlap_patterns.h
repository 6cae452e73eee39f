#pragma once

#include <optional>
#include <string>
#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// Axes of rows along which a match may be split. They are outermost in memory, so that a chunk is
// one contiguous range.
struct ChunkCut {
  std::vector<size_t> axes;  // several: they are split as one axis, in OverlapMatch::order
  std::vector<size_t> ones;  // axes further out in memory, which must have extent 1
  bool isFlat() const { return axes.size() > 1; }
};

// Matrix products and a kernel next to them that work row by row. Positions are indices into
// Program::body.
struct ChunkStage {
  std::vector<size_t> products;
  std::optional<size_t> kernel;
  std::vector<bool> kernel_rows;  // by operand of the kernel (RowwiseKernel::has_rows)
  std::vector<size_t> allocates;  // of the tensors that only this match uses
};

// An overlap pattern match: a collective, and the matrix products that can be split with it. They
// read the gathered tensor or compute the reduced one. The kernel is between the two.
struct OverlapMatch : ChunkStage {
  comm::CollectiveKind kind;  // Allgather, ReduceScatter, Allreduce
  size_t post = 0;
  size_t wait = 0;
  int64_t team = 1;            // devices
  AxisOrder order;             // of both sides of the collective in memory
  std::vector<ChunkCut> cuts;  // at least one; the one that divides most sizes first
  // Reductions: the matrix products and the kernel that compute the rows that the matrix product of
  // this match reads. Nothing else reads these rows. A chunk may pass through both stages.
  std::optional<ChunkStage> front;
  // The post of the match that gathers the rows that the front reads, in chunks of the same rows.
  std::optional<size_t> gather;
};

// An allgather, reduce-scatter or allreduce of several devices that cannot be split.
struct WholeCollective {
  size_t post;
  std::string why;
};

struct OverlapMatches {
  std::vector<OverlapMatch> matches;
  std::vector<WholeCollective> whole;
};

// Returns all matches in program order. An instruction is in one match only, except that a front
// and its gather share their matrix products. A program with an order of its own has no matches
// (isUnordered() in host/passes/analysis/buffer_accesses.h).
OverlapMatches findOverlapPatterns(const Program& program);

}  // namespace heddle::host
