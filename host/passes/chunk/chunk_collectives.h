#pragma once

#include <optional>
#include <string>
#include <vector>

#include "host/program/pass_options.h"

namespace heddle::host {

// A program in which matrix products overlap with collectives. Both are split into chunks of rows.
// While one chunk is communicated, the next one is computed. These patterns are split:
//   allgather -> matrix products         each chunk gathers some rows of every rank
//   matrix product -> reduce-scatter     each chunk holds some rows of every rank
//   matrix product -> allreduce          each chunk holds some rows
//   (allgather ->) matrix products (-> kernel) -> matrix product -> reduce-scatter or allreduce
//                                        two stages: each chunk passes through all of these
// An occurrence of a pattern is called a match (OverlapMatch of
// host/passes/chunk/overlap_patterns.h). A match may contain a kernel between a matrix product and
// the collective. The kernel must work row by row (host/passes/chunk/rowwise_kernel.h). It then
// runs on the rows of each chunk. It may add the results of several matrix products.
//
// Rows:    all axes except the last. The second operand is a matrix, so each row of the result
//          depends on one row of the first operand.
// Axes:    a chunk is one contiguous range of memory. The split axis is therefore the outermost
//          axis. For an allgather it is the gathered axis, for a reduce-scatter the scattered axis.
//          If the rows have the same order in memory on both sides of the matrix product, all axes
//          of rows can be split as one axis. This is called a flat split.
// Memory:  chunks of the first and the last tensor of a pattern are views. The tensors between them
//          are allocated one chunk at a time.
// Order:   the chunks follow each other in the program, all on stream 0. The waits of a pattern
//          follow right after its posts. Later passes move both, so that the chunks overlap.
struct Chunked {
  Program program;
  // The sum of all remainders (host/passes/chunk/remainders.h). `program` may run only with sizes
  // for which it is zero: the rows then divide into chunks on every rank, without padding. For all
  // other sizes the original program must run.
  Size rest;
};

// Splits the matches of a program. Returns nullopt if no match is split. The result depends on the
// program and the options only. It is therefore the same on every rank.
//   options.chunks gives the number of chunks of equal length. With kAutoChunks, the cost model
//     (host/passes/chunk/cost_model.h) chooses the cheapest lengths at the size defaults.
//   A match whose rows do not divide at the size defaults is not split if the rows of another match
//     do divide. One branch selects the split version of all matches, so the first match would
//     prevent the split of the other one.
//   A stream split of a slot (`stream(1: 4)`) sets the axis and the number of chunks of the
//     collective that reads or writes the slot. It takes precedence over the two rules above.
//   A collective is not split if it is in a body, if its pattern is on ranks of several meshes, or
//     if an instruction outside of the pattern reads a tensor between the first and the last one.
// Throws UserError that names the slot of a stream split in these cases:
//   The mesh of the slot has several devices, but the slot belongs to no match.
//   The match of the slot cannot be split along the requested axis.
//   The stream split requests more than PassOptions::kMostChunks chunks.
//   Another slot of the same collective has a different stream split.
//   The rows do not divide into the requested number of chunks at any sizes.
std::optional<Chunked> chunkCollectives(const Program& program, const PassOptions& options);

// Returns one line for each allgather, reduce-scatter and allreduce of several devices. The line
// gives the chunks and the split axes, or the reason why the collective is not split. Throws the
// same UserErrors as chunkCollectives().
std::vector<std::string> explainChunks(const Program& program, const PassOptions& options);

}  // namespace heddle::host
