#pragma once

#include <optional>
#include <string>
#include <vector>

#include "host/program/pass_options.h"

namespace heddle::host {

// A program with overlapping matrix products and collectives. Both are split into chunks of rows.
// While one chunk is communicated, the next one is computed. These patterns are split:
//   allgather -> matrix products         each chunk gathers some rows of every rank
//   matrix product -> reduce-scatter     each chunk holds some rows of every rank
//   matrix product -> allreduce          each chunk holds some rows
//   (allgather ->) matrix products (-> kernel) -> matrix product -> reduce-scatter or allreduce
//                                        two stages: each chunk passes through all of these
// A kernel between a matrix product and the collective runs on the rows of each chunk, if it works
// row by row (host/passes/chunk/rowwise_kernel.h). It may add the results of several matrix
// products.
//
// Rows:    all axes except the last. The second operand is a matrix, so each row of the result
//          depends on one row of the first operand.
// Axes:    a chunk is one contiguous range of memory. The split axis is the outermost one; in a
//          gathered or scattered tensor it is the gathered or scattered axis. If the rows have the
//          same order in memory on both sides of the matrix product, all rows can be split as one
//          axis.
// Memory:  chunks of the first and the last tensor of a pattern are views. The tensors between them
//          are allocated one chunk at a time.
// Order:   the program contains the chunks one after another, all on stream 0, with waits right
//          after the posts of a pattern. Later passes order them.
struct Chunked {
  Program program;
  // Zero for the sizes at which every chunk has the same rows on every rank, without padding. For
  // all other sizes the original program must run.
  Size rest;
};

// Returns nullopt if nothing is split. The result depends on the program and the options only. It
// is therefore the same on every rank.
//   options.chunks gives the number of chunks of equal length. With kAutoChunks, the cost model
//     (host/passes/chunk/cost_model.h) chooses the cheapest lengths at the size defaults.
//   If the rows of some matches divide at the size defaults, all other matches are not split.
//   A stream split of a slot (`stream(1: 4)`) sets axis and number of chunks of its collective. It
//     takes precedence over the options.
//   A collective is not split if it is in a body, if its pattern is on ranks of several meshes, or
//     if other instructions read the tensors between.
// UserError names the slot of a stream split if
//   its mesh has several devices, but no matrix product and collective that can be split use it,
//   they cannot be split along its axis,
//   it requests more than PassOptions::kMostChunks,
//   another stream split of the same collective differs, or
//   its rows never divide.
std::optional<Chunked> chunkCollectives(const Program& program, const PassOptions& options);

// Returns one line for each allgather, reduce-scatter and allreduce of several devices. The line
// gives the chunks and the split axes, or the reason why the collective is not split. UserError as
// above.
std::vector<std::string> explainChunks(const Program& program, const PassOptions& options);

}  // namespace heddle::host
