#pragma once

#include <optional>
#include <string>
#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// One way to split an overlap pattern match (OverlapMatch, below) into chunks: along one axis of
// rows, or along several axes as one (a flat split). The axes are outermost in memory, so that a
// chunk is one contiguous range.
struct ChunkCut {
  std::vector<size_t> axes;  // the split axes; several axes are in OverlapMatch::order
  std::vector<size_t> ones;  // axes further out in memory, which must have extent 1 in a run
  bool isFlat() const { return axes.size() > 1; }
};

// A stage: the matrix products that compute the rows of a chunk, and possibly a kernel next to
// them. All of them work row by row. Instructions are indices into Program::body.
struct ChunkStage {
  std::vector<size_t> products;  // the matrix products
  std::optional<size_t> kernel;
  std::vector<bool> kernel_rows;  // by operand of the kernel (RowwiseKernel::has_rows)
  std::vector<size_t> allocates;  // the Allocate of each tensor that only this match uses
};

// An overlap pattern match: a collective, and the matrix products that can be split with it. These
// read the gathered tensor or compute the tensor to reduce. If the match has a kernel, the kernel
// is between the collective and the matrix products.
struct OverlapMatch : ChunkStage {
  comm::CollectiveKind kind;  // Allgather, ReduceScatter, Allreduce
  size_t post = 0;
  size_t wait = 0;
  int64_t team = 1;            // number of devices of the collective
  AxisOrder order;             // memory order of the collective's input and output
  std::vector<ChunkCut> cuts;  // at least one; the split that divides the most sizes is first
  // The front of a reduction: the stage that computes the rows that the matrix product of this
  // match reads. No other instruction reads these rows, so a chunk can pass through both stages.
  // nullopt: the match has no front, or is an allgather.
  std::optional<ChunkStage> front;
  // The post of the match that gathers the rows that the front reads. Its chunks can hold the same
  // rows as the chunks of this match. nullopt: the front reads no gathered rows.
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

// Returns all matches in program order. Each instruction belongs to at most one match. Exception:
// the matrix products of a front also belong to the match that gathers their rows. There are no
// matches if the author of the program ordered its streams (isUnordered() in
// host/passes/analysis/buffer_accesses.h is false).
OverlapMatches findOverlapPatterns(const Program& program);

}  // namespace heddle::host
