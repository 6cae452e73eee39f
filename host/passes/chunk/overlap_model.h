#pragma once

#include <cstdint>
#include <vector>

namespace heddle::host {

// The seconds for which one chunk occupies each part of a GPU.
struct ChunkSeconds {
  double come = 0;     // links: the gather before the matrix product
  double product = 0;  // SMs: matrix product, kernel and sums
  double push = 0;     // links: copy engines write the terms that the other ranks sum
  double pull = 0;     // links: copy engines fetch the sums of the other ranks
  double alone = 0;    // links: the reduction by NCCL, with no matrix product beside it
  double meet = 0;     // nothing: a copy channel synchronises the ranks before each copy
  int64_t pieces = 1;  // the number of pieces in which a copy channel moves the chunk
};

// Simulates one GPU. Returns the seconds until all chunks and their collectives have completed.
//   Matrix products run one after another. Each starts when its rows have arrived.
//   A copy channel needs an SM once per piece, for a copy within the GPU or a sum. It gets an SM
//     when the running matrix product ends. If `stages` is 2, a chunk has two matrix products of
//     equal length, so the SMs also become free in the middle of a chunk.
//   If `reduces`, two copy channels push and pull all chunks except the last one, in turn. NCCL
//     reduces the last chunk. That reduction shares the links with the copies that still run.
double pipelineSeconds(const std::vector<ChunkSeconds>& chunks, bool reduces, int stages);

}  // namespace heddle::host
