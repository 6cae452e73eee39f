#pragma once

#include <array>
#include <memory>

#include "host/device/cpu/matmul_library.h"
#include "host/device/cpu/part_grid.h"
#include "host/device/cpu/tile_pool.h"
#include "host/device/matmul_shape.h"

namespace heddle::host::matmul {

// A matrix product of f32 or bf16 whose operands oneDNN reads in place. The result of all batches
// is divided into parts, and the threads of the pool compute the parts. The thread that computes a
// part also applies bias and activation and rounds, while the sums are still in its cache. A
// PartMatmul never changes, so several threads may call run().
class PartMatmul {
 public:
  // Returns nullptr if oneDNN cannot compute the matrix product in this way, or if k is 0. c must
  // have at least one element. `shape` and `library` must outlive the result.
  static std::unique_ptr<const PartMatmul> make(const MatmulShape& shape,
                                                const MatmulLibrary& library, int threads);

  // Returns the size of the workspace for all threads: per thread, at most 4 MiB for sums, and the
  // scratch memory that oneDNN needs.
  int64_t workspaceBytes() const { return tile_bytes_ * (tile_bytes_ > 0 ? tiles_ : 0); }
  void run(const MatmulOperands& operands, TilePool& pool) const;

 private:
  struct Job;
  struct Part;

  PartMatmul(const MatmulShape& shape, const MatmulLibrary& library, int threads);
  bool prepareProducts();
  void setTiles(int threads);
  Part partAt(int64_t index) const;
  template <class T>
  void runPart(const MatmulOperands& operands, const Part& part, std::byte* workspace) const;

  const MatmulShape& shape_;
  const MatmulLibrary& library_;
  MatrixLayout a_;
  MatrixLayout b_;
  MatrixLayout c_;
  PartGrid grid_;
  bool direct_ = false;  // true: oneDNN writes to c; false: it writes sums to the workspace
  // For bf16: the matrix products of parts. The first index is 1 for parts in the last row of
  // parts, otherwise 0. The second index is 1 for parts in the last column of parts, otherwise 0.
  std::array<std::array<std::unique_ptr<const PreparedBf16Matmul>, 2>, 2> products_;
  int64_t sum_bytes_ = 0;   // workspace of the sums of one part
  int64_t tile_bytes_ = 0;  // workspace of a tile
  int64_t tiles_ = 0;       // number of tiles; tile t computes the parts t, t + tiles_ and so on
};

}  // namespace heddle::host::matmul
