#pragma once

#include <optional>
#include <string>
#include <vector>

#include "host/program/pass_options.h"

namespace heddle::host {

// A program whose products next to collectives are cut in chunks, so that the chunks of the one run
// beside those of the other:
//   allgather of rows -> products of them      each chunk gathers some rows of every rank
//   product -> reduce-scatter of its rows      each chunk holds some rows of every rank
//   product -> allreduce                       each chunk holds some rows
// or the same with a kernel between the two that works row by row
// (host/passes/chunk/rowwise_kernel.h), as where the sum of several products is reduced once: it is
// run on the rows of each chunk. A chunk that is reduced may begin at the products before that
// which make its rows, and at the gather of what these read:
//   (allgather ->) products (-> kernel) -> product -> reduce-scatter or allreduce
// Rows are what a matrix as the second operand leaves as it is, all axes but the last. They are cut
// where a chunk is one stretch of memory: along the axis that is outermost in it (which of a
// gathered or scattered tensor is the axis that moves), or, where they lie alike on both sides of
// the product, all of them as one. The chunks stand one after the other, as the lowering would have
// written them, and the passes after this one order them; tensors that only product, kernel and
// collective see are made a chunk at a time. Where the rows come from or go to, chunks are views.
struct Chunked {
  Program program;
  // Zero for sizes of which every chunk has the same rows on every rank, and padding is nowhere;
  // for others the program that was given must run.
  Size rest;
};

// nullopt when nothing is cut. There are options.chunks chunks of one length or, where that is
// kAutoChunks, those that host/passes/chunk/cost_model.h finds cheapest at the size defaults: a
// function of the program and the options, the same on every rank. What does not divide at the size
// defaults stays whole where something else does. A collective between instructions of another
// mesh's ranks, in a body, or of a tensor that others than these read stays whole.
//
// A stream split of a slot (`stream(1: 4)`) gives axis and count of its collective whatever the
// options say. UserError naming the slot: on a mesh of several devices no product and collective
// that can be cut make or read it, they cannot be cut along its axis, it asks for more than
// PassOptions::kMostChunks, two of one collective differ, or its rows never divide.
std::optional<Chunked> chunkCollectives(const Program& program, const PassOptions& options);

// One line for each allgather, reduce-scatter and allreduce of several devices: in how many chunks
// of what it is cut, or why it stays whole. UserError as above.
std::vector<std::string> explainChunks(const Program& program, const PassOptions& options);

}  // namespace heddle::host
