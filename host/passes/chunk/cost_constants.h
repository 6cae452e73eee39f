#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::host {

// The tuned constants of the passes that overlap communication with computation. They describe a
// current data-centre GPU. heddle measures nothing while it compiles a program, because
// measurements differ between ranks, and all ranks must choose the same program.
//
// The passes split matrix products and collectives into chunks of rows. A chunk is moved by NCCL
// kernels or by a copy channel, which uses the copy engines of the GPUs (comm::Carrier).
//
// The comment of a value names its source by one of these words, or gives the measurements:
//   nominal  a typical value; the comment names a measurement or data sheet to compare it with
//   fitted   chosen so that the model predicts the times in the file `chunks` (see below)
//   rule     a limit that keeps the passes cheap, or a copy of a limit elsewhere
// Measurements are files in bench/results, all on NVIDIA H200 GPUs connected by NVLink.
// docs/benchmarks.md has the same numbers as tables. Two files have short names here:
//   lanes    2-x-nvidia-h200-lanes_2026-11-22.json: collectives beside matrix products, 2 GPUs
//   chunks   4-x-nvidia-h200-chunks_2026-11-22.json: an MLP with chunk lengths set by hand, 4 GPUs
struct CostConstants {
  // --- rates of one GPU --------------------------------------------------------------------------

  // FLOP/s of matrix products in f16 and bf16 with f32 sums. Fitted. A matrix product of two bf16
  // matrices of 8192 x 8192 reaches 7.11e14 (nvidia-h200_2026-11-21.json).
  double half_flops = 7.4e14;
  // FLOP/s of matrix products of types of four bytes or more. Nominal, not measured. The data sheet
  // gives 6.7e13 for f32.
  double full_flops = 5e13;
  // Bytes/s that a GPU sends in a collective of NCCL. Nominal. A reduce-scatter of 256 MiB on 4
  // GPUs reaches 3.0e11 (4-x-nvidia-h200_2026-11-21.json), an allreduce of 1 GiB on 8 GPUs 3.6e11
  // (peers-8-x-nvidia-h200_2026-11-20.json).
  double link_bytes = 3.5e11;
  // Bytes/s that the copy engines of a GPU write into the memory of other GPUs. Nominal. With this
  // rate, the model predicts 0.360 ms for 8 reduce-scatters of 16 MiB on 2 GPUs. The measured time
  // is 0.362 ms (lanes).
  double push_bytes = 2.5e11;
  // Bytes/s that the copy engines of a GPU read from the memory of other GPUs. Nominal. 8
  // allgathers of 16 MiB on 2 GPUs take 0.312 ms, which is 2.15e11 (lanes).
  double pull_bytes = 2.2e11;
  // Bytes/s that a kernel reads and writes in the memory of its GPU. Nominal. A device copy reaches
  // 4.2e12 (nvidia-h200_2026-11-21.json).
  double memory_bytes = 3e12;
  // A reduction in which a GPU sends b bytes prolongs a concurrent matrix product by b /
  // beside_bytes seconds, because the reduction and the matrix product share memory and power. The
  // bytes with which an allreduce returns the sums do not count. Fitted. For example, a
  // reduce-scatter that takes t seconds prolongs a concurrent matrix product by t * link_bytes /
  // beside_bytes = 0.7 t.
  double beside_bytes = 5e11;

  // --- fixed costs -------------------------------------------------------------------------------

  // Seconds per library call or kernel. Nominal. The host takes 3.9 to 5.2 us to launch a kernel
  // (docs/benchmarks.md).
  double call_seconds = 6e-6;
  // Seconds to start, synchronise and end one collective of NCCL. Nominal. With NCCL on 2 and 4
  // GPUs, one allreduce, allgather or reduce-scatter of 16 KiB takes 17 to 23 us
  // (2-x-nvidia-h200_2026-11-22.json, 4-x-nvidia-h200_2026-11-22.json).
  double post_seconds = 2e-5;
  // Seconds that one synchronisation of the ranks of a copy channel takes. Fitted.
  double meet_seconds = 3e-6;

  // --- units -------------------------------------------------------------------------------------

  // Bytes that a copy channel moves at once, called a piece. Rule: a copy of
  // SharedArena::kPieceBytes. This file may not include comm/nccl/shared_arena.h, because only the
  // files of a module (a library that is loaded at run time) may include its headers.
  double piece_bytes = 64 << 20;
  // The most pieces per chunk that the cost model simulates. Rule: the limit keeps the simulation
  // short. It hardly changes the result: with so many pieces, the rates of the links determine the
  // time.
  double most_pieces = 64;
  // Rows of one output tile of a matrix product. Nominal, not measured.
  double tile_rows = 128;
  // The most thread blocks that NCCL uses for a chunk beside a matrix product, if no copy channel
  // moves the chunk. 16 blocks are faster than 8 blocks in three of four MLPs on 2 GPUs
  // (2-x-nvidia-h200_2026-11-21.json).
  int32_t thread_blocks = 16;

  // --- choices, as fractions of predicted times --------------------------------------------------

  // A split with more chunks is chosen only if it takes less than this fraction of the time of a
  // split with fewer chunks. Fitted.
  double longer_gain = 0.995;
  // A two-stage chunk passes through two matrix products (OverlapMatch::front of
  // overlap_patterns.h). Two-stage chunks are chosen only if they take less than this fraction of
  // the time of two separate splits. The fraction is above 1, because two-stage chunks have two
  // further advantages. They need less memory. They also depend less on the true speed of the
  // collectives, because two matrix products hide each collective. In each of the seven cases of
  // the file `chunks`, the best two-stage split is faster than the best separate splits.
  double chain_gain = 1.06;
  // Two-stage chunks are chosen only if they take less than this fraction of the time of the
  // unsplit program. Fitted.
  double chain_split_gain = 0.99;

  // --- joined collectives (host/passes/coalesce_collectives.h) -----------------------------------

  // Bytes of the largest collective that may be joined with other collectives. Nominal. In a series
  // of collectives of 16 KiB, each one takes 9 to 16 us, mostly to start (the two files named at
  // post_seconds). Sending 1 MiB at the rate link_bytes takes only 3 us.
  int64_t joined_bytes = int64_t{1} << 20;
  // The most bytes of one group of joined collectives. At the rate link_bytes, a group of this size
  // takes 12 us. Nominal. In a larger group, the first collective would wait for the last one
  // longer than a separate start takes.
  int64_t group_bytes = int64_t{4} << 20;
  // The most collectives of one group. Rule.
  size_t group_posts = 64;
};

inline constexpr CostConstants kCostConstants{};

}  // namespace heddle::host
