#pragma once

#include <cstdint>
#include <vector>

namespace heddle::host {

// Predicts the time of matrix products and collectives that are split into chunks of rows. While
// one chunk is communicated, another chunk is computed. A copy channel (comm::Carrier) moves the
// data of a chunk with the copy engines of the GPUs, in one or more pieces.

// Durations of the steps of one chunk, in seconds.
struct ChunkSeconds {
  double come = 0;     // transfer of the rows of the chunk by a gather, on the links
  double matmul = 0;   // matrix product, kernel and additions of the reduction, on the SMs
  double push = 0;     // copies of the data to the GPUs that compute the sums
  double pull = 0;     // copies of the sums from these GPUs to the other GPUs
  double alone = 0;    // reduction of the chunk by NCCL, if no matrix product runs beside it
  double meet = 0;     // one synchronisation of the ranks of a copy channel
  int64_t pieces = 1;  // number of pieces in which a copy channel moves the chunk
};

// Simulates one GPU. Returns the seconds until all chunks and their collectives have completed.
//   Matrix products run one after another. Each one starts when its rows have arrived.
//   `stages` is the number of matrix products through which each chunk passes. The simulation
//     assumes that they take equally long.
//   A copy channel needs an SM once per piece, for a copy within the GPU or for a sum. The channel
//     gets the SM when the running matrix product ends.
//   `reduces` true: a reduction follows the matrix products of each chunk. The chunks use two copy
//     channels in turn, except the last chunk, which NCCL reduces. The simulation assumes that this
//     last reduction starts when all copies have ended, because they share the links.
//   `reduces` false: there are no reductions.
//   In both cases, gathers may precede the matrix products (ChunkSeconds::come). NCCL gathers the
//     first chunk, and copy channels gather all later chunks.
double pipelineSeconds(const std::vector<ChunkSeconds>& chunks, bool reduces, int stages);

}  // namespace heddle::host
