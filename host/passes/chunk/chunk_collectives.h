#pragma once

#include <optional>
#include <string>
#include <vector>

#include "host/program/pass_options.h"

namespace heddle::host {

// A program in which matrix products and the collectives next to them are split into chunks of
// rows, so that computation and communication overlap. While one chunk is communicated, another
// chunk is computed. These patterns are split:
//   allgather (-> kernel) -> matrix products
//       Each chunk gathers some rows of every rank.
//   matrix products (-> kernel) -> reduce-scatter
//       Each chunk holds some rows of the block of every rank.
//   matrix products (-> kernel) -> allreduce
//       Each chunk holds some rows.
//   (allgather ->) matrix products (-> kernel) -> matrix product (-> kernel) -> reduce-scatter
//   matrix products (-> kernel) -> matrix product (-> kernel) -> allreduce
//       Two stages: each chunk passes through all steps.
// Parts in parentheses are optional. Without a kernel, a single matrix product is before the
// reduce-scatter, the allreduce or the second matrix product. The instructions of a program that
// form such a pattern are called a match (OverlapMatch of host/passes/chunk/overlap_patterns.h).
// The kernel in a match must be rowwise: it computes each row of its result from one row of its
// operands (host/passes/chunk/rowwise_kernel.h). It may add the results of several matrix products.
// It is launched once per chunk.
//
// Rows:    a row of a tensor consists of the elements along the last axis, at one index along the
//          other axes. These other axes are called axes of rows. The second operand of the matrix
//          product is a matrix, so each row of the result depends on one row of the first operand.
// Axes:    the split axis is an axis of rows. A chunk must be one contiguous range of the memory of
//          each rank's block, so all axes further out in memory have extent 1. In an allgather, the
//          split axis is the gathered axis; in a reduce-scatter, it is the scattered axis. A flat
//          split treats all axes of rows as one axis. It requires that the rows have the same order
//          in memory on both sides of the matrix product.
// Memory:  chunks of the first and the last tensor of a pattern are views. If a kernel also reads
//          rows of a tensor from outside of the pattern, its chunks are views too. For the tensors
//          between the first and the last one, each chunk is allocated separately.
// Order:   all chunks are on stream 0. For each match, the Wait instructions follow the Communicate
//          instructions that post (start) the collectives of all chunks. The chunks overlap only
//          after later passes have moved the Wait instructions and chosen other streams.
struct Chunked {
  Program program;
  // Zero if the rows of all split tensors divide into chunks on every rank, without padding (the
  // sum of all remainders of host/passes/chunk/remainders.h). `program` may run only with sizes for
  // which `rest` is zero. For all other sizes, the original program must run.
  Size rest;
};

// Splits the matches of a program into chunks. Returns nullopt if no match is split. The result
// depends only on the program and the options, so it is the same on every rank. The pass estimates
// times at nominal sizes (host/passes/analysis/nominal_sizes.h).
//   options.chunks is the number of chunks, which have equal lengths. With kAutoChunks, the cost
//     model (host/passes/chunk/cost_model.h) chooses the lengths that are fastest at the nominal
//     sizes.
//   If the rows of some matches divide into chunks at the nominal sizes, only these matches are
//     split. The reason: each run uses either all splits or none. A match whose rows do not divide
//     would disable the splits of all others.
//   A stream split in the program text, such as `stream(1: 4)` of a slot, requests 4 chunks along
//     axis 1. It applies to the match whose collective reads or writes the slot, or whose matrix
//     product computes it. A stream split takes precedence over the two rules above.
//   In these cases, among others, a collective is not split:
//     The program uses several streams, or its author has ordered its streams (isUnordered() in
//       host/passes/analysis/buffer_accesses.h is false), for example because the body of a loop or
//       branch contains a collective. No collective of such a program is split.
//     The instructions of its match run on different meshes.
//     An instruction outside of its match reads a tensor of the match that is neither the first nor
//       the last one.
// Throws a UserError that names the slot of a stream split in these cases:
//   The mesh of the slot has several devices, but the stream split applies to no match.
//   The match of the slot cannot be split along the requested axis.
//   The stream split requests more than PassOptions::kMostChunks chunks.
//   Another slot of the same collective has a different stream split.
//   The rows divide into the requested number of chunks at no sizes, or whether they divide can
//     differ between ranks.
std::optional<Chunked> chunkCollectives(const Program& program, const PassOptions& options);

// Returns one line for each allgather, reduce-scatter and allreduce of several devices of a mesh of
// known size. The line states the chunks and the split axes, or the reason why the collective is
// not split. Returns no lines if options.overlap is false, if the program uses several streams, or
// if its author has ordered its streams. Throws the same UserErrors as chunkCollectives().
std::vector<std::string> explainChunks(const Program& program, const PassOptions& options);

}  // namespace heddle::host
