#pragma once

#include <optional>
#include <string>
#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// Finds the matrix products and collectives of a host program that can be split into chunks of
// rows. One chunk can then be communicated while another chunk is computed. A row of a tensor
// consists of the elements along the last axis, at one index along the other axes. These other axes
// are called axes of rows. Each instruction is given as an index into Program::body.

// One way to split a match (OverlapMatch, below) into chunks of rows. The split is along one axis,
// or along several axes as if they were one axis (a flat split). All axes further out in memory
// have extent 1, so a chunk is one contiguous range of the memory of each rank's block.
struct ChunkCut {
  std::vector<size_t> axes;  // the split axes; those of a flat split are in memory order
  std::vector<size_t> ones;  // axes further out in memory than `axes`; all need extent 1 in a run
  bool isFlat() const { return axes.size() > 1; }
};

// A stage: the matrix products that compute the rows of a chunk, and possibly a kernel next to
// them. Each row of a result depends on one row of the first operand of a matrix product, and on
// one row of those operands of the kernel that have rows.
struct ChunkStage {
  std::vector<size_t> matmuls;
  std::optional<size_t> kernel;  // nullopt: the stage has no kernel
  // By operand of the kernel: whether the operand has rows (RowwiseKernel::has_rows of
  // host/passes/chunk/rowwise_kernel.h).
  std::vector<bool> kernel_rows;
  std::vector<size_t> allocates;  // the Allocate of each tensor that chunks replace
};

// A match: a collective, and the matrix products that can be split together with it. The matrix
// products read the gathered tensor, or compute the tensor that is reduced. If the match has a
// kernel, the kernel is between the collective and the matrix products.
struct OverlapMatch : ChunkStage {
  comm::CollectiveKind kind;   // Allgather, ReduceScatter or Allreduce
  size_t post = 0;             // the Communicate instruction
  size_t wait = 0;             // the Wait instruction for its token
  int64_t team = 1;            // number of devices that take part in the collective
  AxisOrder order;             // memory order of input and output of the collective
  std::vector<ChunkCut> cuts;  // at least one; the result of cutsOf() (row_cuts.h)
  // For reductions with one matrix product: the stage that computes the rows that this matrix
  // product reads. No other instruction reads these rows, so a chunk can pass through both stages.
  // nullopt: there is no such stage, or it cannot be split together with this match.
  std::optional<ChunkStage> front;
  // The Communicate instruction that gathers the rows that the front reads. It belongs to another
  // match, whose chunks contain the same rows as the chunks of this match. Set only if this match
  // is a reduce-scatter. nullopt: no match gathers rows in this way for the front alone.
  std::optional<size_t> gather;
};

// An allgather, reduce-scatter or allreduce of several devices that cannot be split.
struct WholeCollective {
  size_t post;      // the Communicate instruction
  std::string why;  // the reason, for messages
};

struct OverlapMatches {
  std::vector<OverlapMatch> matches;
  std::vector<WholeCollective> whole;
};

// Returns all matches in program order. Each instruction belongs to at most one match, with one
// exception: the matrix products of a front also belong to the match that gathers their rows.
// Returns no matches if the program uses several streams, or if its author ordered the streams
// (isUnordered() in host/passes/analysis/buffer_accesses.h is false).
OverlapMatches findOverlapPatterns(const Program& program);

}  // namespace heddle::host
