#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "ir/base/ceil_div.h"

namespace heddle::host::matmul {

// Divides the result of a matrix product into parts that threads compute independently.
struct PartGrid {
  static constexpr int64_t kMostElements = int64_t{1} << 20;  // largest size of a part

  int64_t rows = 0;     // rows per part; the last part may have fewer
  int64_t columns = 0;  // columns per part; the last part may have fewer
  int64_t row_parts = 0;
  int64_t column_parts = 0;
  int64_t parts() const { return row_parts * column_parts; }
};

// Tries several grids and returns the one for which the estimated time of all batches is shortest.
// The grid depends only on the arguments, so every run computes the same parts.
inline PartGrid partGrid(int64_t batches, int64_t m, int64_t n, int64_t k, int64_t threads) {
  // Except at the end of an axis, the sizes of parts are multiples of the tiles that the kernels of
  // libraries compute.
  constexpr int64_t kRowStep = 16;
  constexpr int64_t kColumnStep = 64;
  // The longest range of rows or columns. A longer axis is first split into ranges of at most this
  // length. If each range is then divided into 4, no part has more than kMostElements elements.
  constexpr int64_t kMostSplit = 4096;
  // The search divides each range of rows into i parts and each range of columns into j parts. It
  // tries all pairs with i * j up to this number, or up to 4 * threads if that is more. Because it
  // tries i = j = 4, it always finds a grid.
  constexpr int64_t kLeastTried = 16;
  // Before a library computes a part, it copies the rows of a and the columns of b that the part
  // needs. Copying an element takes about as long as this number of multiplications.
  constexpr double kCopyCost = 48;
  constexpr double kPartCost = 1 << 19;  // time to begin a part, in multiplications
  const auto sizeOf = [](int64_t extent, int64_t parts, int64_t step) {
    const int64_t split = ceilDiv(extent, kMostSplit);
    return std::min(extent, ceilDiv(ceilDiv(extent, parts * split), step) * step);
  };
  const int64_t most_tried = std::max(kLeastTried, 4 * threads);
  PartGrid best;
  double best_cost = std::numeric_limits<double>::infinity();
  for (int64_t i = 1; i <= most_tried; ++i) {
    for (int64_t j = 1; i * j <= most_tried; ++j) {
      const int64_t rows = sizeOf(m, i, kRowStep);
      const int64_t columns = sizeOf(n, j, kColumnStep);
      if (rows * columns > PartGrid::kMostElements) continue;
      const PartGrid grid{rows, columns, ceilDiv(m, rows), ceilDiv(n, columns)};
      const auto rounds = static_cast<double>(ceilDiv(batches * grid.parts(), threads));
      const double copied = kCopyCost * static_cast<double>(rows + columns);
      const double multiplied = static_cast<double>(rows * columns) + copied;
      const double cost = rounds * (static_cast<double>(k) * multiplied + kPartCost);
      if (cost >= best_cost) continue;
      best = grid;
      best_cost = cost;
    }
  }
  return best;
}

}  // namespace heddle::host::matmul
