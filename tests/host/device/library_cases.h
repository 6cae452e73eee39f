#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "host/device/library_call.h"
#include "ir/base/error.h"
#include "tests/host/device/matmul_cases.h"

// Calls the library functions (cumsum, argsort, scatter, scatter_add) on any device, and compares
// the results with the definitions of the functions.
namespace heddle::host {

struct LibraryRun {
  LibraryFunction function;
  int64_t axis;
  bool descending;
  std::vector<Matrix> in;
  Matrix out;  // for argsort: may have fewer elements than the line

  LibraryCall call() const {
    LibraryCall call;
    call.function = function;
    call.axis = axis;
    call.descending = descending;
    for (size_t i = 0; i < in.size(); ++i) {
      call.in_descs[i] = &in[i].desc;
      call.in[i] = in[i].bytes.data();
    }
    call.out_desc = &out.desc;
    call.out = const_cast<std::byte*>(out.bytes.data());
    return call;
  }
};
using RunLibrary = std::function<void(LibraryRun&)>;

// Returns a random value for sorting. Floats include ties, both zeros, infinities and NaN; integers
// include the ends of the range.
inline Scalar sortable(DType dtype, std::mt19937& random) {
  const double inf = std::numeric_limits<double>::infinity();
  if (isFloat(dtype)) {
    const double special[] = {inf, -inf, std::nan(""), -std::nan(""), 0.0, -0.0, 0.1, -0.1};
    const auto pick = random() % 16;
    return pick < 8 ? special[pick] : static_cast<double>(random() % 4000) - 2000.5;
  }
  if (dtype == DType::Bool) return random() % 2 == 0;
  const int64_t special[] = {INT64_MIN, INT64_MAX, -1, 0, 255, 256, INT32_MIN, INT32_MAX};
  const auto pick = random() % 32;
  return pick < 8 ? special[pick] : static_cast<int64_t>(random() % 1000) - 500;
}

template <class Visit>
void forIndices(const std::vector<int64_t>& sizes, Visit visit) {
  for (int64_t size : sizes) {
    if (size == 0) return;
  }
  std::vector<int64_t> index(sizes.size(), 0);
  do {
    visit(index);
  } while (nextIndex(index, sizes));
}

inline Scalar scalarAt(const Matrix& x, const std::vector<int64_t>& index) {
  return loadElement(x.bytes.data(), x.desc.dtype, x.place(index));
}

// Returns whether the values are equal or both NaN.
inline bool same(const Scalar& a, const Scalar& b) {
  if (!std::holds_alternative<double>(a)) return toInt(a) == toInt(b);
  return toDouble(a) == toDouble(b) || (std::isnan(toDouble(a)) && std::isnan(toDouble(b)));
}

inline bool above(const Scalar& a, const Scalar& b) {
  if (!std::holds_alternative<double>(a)) return toInt(a) > toInt(b);
  const double x = toDouble(a);
  const double y = toDouble(b);
  return std::isnan(x) ? !std::isnan(y) : x > y;
}

// The operands are small integers, so each result must be the exact sum, rounded once.
inline void checkCumsum(LibraryRun& run, std::mt19937& random, const RunLibrary& device) {
  fillRandom(run.in[0], random);
  device(run);
  const auto axis = static_cast<size_t>(run.axis);
  std::vector<int64_t> starts = run.out.desc.sizes;
  starts[axis] = std::min<int64_t>(starts[axis], 1);
  forIndices(starts, [&](std::vector<int64_t> index) {
    int64_t sum = 0;
    for (int64_t i = 0; i < run.out.desc.sizes[axis]; ++i) {
      index[axis] = i;
      sum += toInt(scalarAt(run.in[0], index));
      const Scalar expected = roundTo(run.out.desc.dtype, sum);
      ASSERT_TRUE(same(scalarAt(run.out, index), expected)) << str(index) << " " << sum;
    }
  });
}

inline void checkArgsort(LibraryRun& run, std::mt19937& random, const RunLibrary& device) {
  Matrix& x = run.in[0];
  forIndices(x.desc.sizes, [&](const std::vector<int64_t>& index) {
    storeElement(x.bytes.data(), x.desc.dtype, x.place(index), sortable(x.desc.dtype, random));
  });
  device(run);
  const auto axis = static_cast<size_t>(run.axis);
  const int64_t n = x.desc.sizes[axis];
  std::vector<int64_t> starts = x.desc.sizes;
  starts[axis] = std::min<int64_t>(n, 1);
  forIndices(starts, [&](std::vector<int64_t> index) {
    std::vector<bool> seen(static_cast<size_t>(n), false);
    int64_t last = -1;
    const auto follows = [&](int64_t place) {
      index[axis] = last;
      const Scalar a = scalarAt(x, index);
      index[axis] = place;
      const Scalar b = scalarAt(x, index);
      const bool wrong = run.descending ? above(b, a) : above(a, b);
      ASSERT_FALSE(wrong) << str(index) << ": " << last << " before " << place;
      ASSERT_TRUE(run.descending ? above(a, b) || last < place : above(b, a) || last < place)
          << "unstable at " << str(index);
    };
    for (int64_t i = 0; i < run.out.desc.sizes[axis]; ++i) {
      index[axis] = i;
      const int64_t place = toInt(scalarAt(run.out, index));
      ASSERT_TRUE(place >= 0 && place < n && !seen[static_cast<size_t>(place)]) << str(index);
      seen[static_cast<size_t>(place)] = true;
      if (last >= 0) follows(place);
      last = place;
    }
    for (int64_t place = 0; place < n && last >= 0; ++place) {
      if (!seen[static_cast<size_t>(place)]) follows(place);
    }
  });
}

inline void checkScatter(LibraryRun& run, std::mt19937& random, const RunLibrary& device) {
  fillRandom(run.in[0], random);
  fillRandom(run.in[2], random);
  const auto axis = static_cast<size_t>(run.axis);
  const int64_t extent = run.out.desc.sizes[axis];
  Matrix& index = run.in[1];
  forIndices(index.desc.sizes, [&](const std::vector<int64_t>& at) {
    // Some indices are outside of the axis, and a few of them are far outside.
    const int64_t target = static_cast<int64_t>(random() % static_cast<uint64_t>(extent + 2)) - 1;
    storeElement(index.bytes.data(), index.desc.dtype, index.place(at),
                 random() % 8 == 0 ? target * 1000000007 : target);
  });
  Matrix expected(DType::I64, run.out.desc.sizes, {});
  forIndices(run.out.desc.sizes, [&](const std::vector<int64_t>& at) {
    storeElement(expected.bytes.data(), DType::I64, expected.place(at),
                 toInt(scalarAt(run.in[0], at)));
  });
  forIndices(run.in[2].desc.sizes, [&](std::vector<int64_t> at) {
    std::vector<int64_t> where = at;
    for (size_t i = 0; i < where.size(); ++i) where[i] = index.desc.sizes[i] == 1 ? 0 : at[i];
    const int64_t value = toInt(scalarAt(run.in[2], at));
    at[axis] = toInt(scalarAt(index, where));
    if (at[axis] < 0 || at[axis] >= extent) return;
    const bool adds = run.function == LibraryFunction::ScatterAdd;
    const int64_t before = adds ? toInt(scalarAt(expected, at)) : 0;
    storeElement(expected.bytes.data(), DType::I64, expected.place(at), before + value);
  });
  device(run);
  forIndices(run.out.desc.sizes, [&](const std::vector<int64_t>& at) {
    const Scalar sum = roundTo(run.out.desc.dtype, scalarAt(expected, at));
    ASSERT_TRUE(same(scalarAt(run.out, at), sum)) << str(at) << " " << toInt(sum);
  });
}

struct LineCase {
  std::vector<int64_t> sizes;
  int64_t axis;
  std::vector<int64_t> in, out;  // strides; empty means dense
};
inline std::vector<LineCase> lineCases() {
  return {{{1}, 0, {}, {}},
          {{7}, 0, {3}, {2}},
          {{3, 5}, 0, {}, {}},
          {{3, 5}, 1, {}, {1, 3}},
          {{2, 3, 4}, 1, {1, 2, 6}, {}},
          {{2, 3, 4}, 2, {0, 4, 1}, {40, 13, 3}},
          {{3, 4}, 1, {1, 0}, {}},
          {{2, 2, 33, 2}, 2, {}, {}},
          {{1, 300, 1}, 1, {7, 1, 9}, {}},
          {{3, 1030}, 1, {}, {}},
          {{5000, 5}, 1, {}, {}},
          {{6, 4100}, 0, {}, {}},
          {{65, 4100}, 0, {}, {}},
          {{2, 2049}, 1, {}, {1, 2}},
          {{1, 9000}, 1, {}, {}},
          {{20000}, 0, {}, {}}};
}

struct ScatterCase {
  std::vector<int64_t> sizes, index, source;
  int64_t axis;
  std::vector<int64_t> index_strides, out;  // empty means dense
};
inline std::vector<ScatterCase> scatterCases() {
  return {{{5}, {9}, {9}, 0, {}, {}},
          {{5}, {0}, {0}, 0, {}, {}},
          {{1}, {40}, {40}, 0, {}, {}},
          {{5, 3}, {9, 3}, {9, 3}, 0, {}, {}},
          {{5, 3}, {9, 1}, {9, 3}, 0, {}, {}},
          {{5, 3}, {9, 3}, {9, 3}, 0, {1, 0}, {1, 6}},
          {{5, 3}, {1, 3}, {4, 3}, 0, {}, {}},
          {{4, 6}, {4, 5}, {4, 5}, 1, {}, {2, 9}},
          {{2, 6, 3}, {2, 5, 1}, {2, 5, 3}, 1, {}, {}},
          {{2, 6, 3}, {1, 5, 3}, {2, 5, 3}, 1, {}, {1, 2, 12}},
          {{2, 3, 7}, {2, 1, 5}, {2, 3, 5}, 2, {}, {}},
          {{300, 2}, {2500, 1}, {2500, 2}, 0, {}, {}},
          {{70000}, {3000}, {3000}, 0, {}, {}},
          {{2, 9}, {2, 5000}, {2, 5000}, 1, {}, {}}};
}

inline bool takesSums(DType dtype) { return !isFloat8(dtype); }

// Checks cumsum and argsort for one case.
inline void checkLineCase(DType dtype, const LineCase& c, std::mt19937& random,
                          const RunLibrary& device) {
  SCOPED_TRACE(std::string(name(dtype)) + str(c.sizes) + " axis " + std::to_string(c.axis));
  const Matrix in(dtype, c.sizes, c.in);
  const DType sum = isFloat(dtype) ? dtype : DType::I64;
  LibraryRun cumsum{LibraryFunction::Cumsum, c.axis, false, {in}, {sum, c.sizes, c.out}};
  checkCumsum(cumsum, random, device);
  for (bool descending : {false, true}) {
    LibraryRun sort{
        LibraryFunction::Argsort, c.axis, descending, {in}, {DType::I64, c.sizes, c.out}};
    checkArgsort(sort, random, device);
    if (descending || c.sizes[static_cast<size_t>(c.axis)] <= 3) continue;
    std::vector<int64_t> fewer = c.sizes;
    fewer[static_cast<size_t>(c.axis)] = 3;
    sort.out = {DType::I64, fewer, {}};
    checkArgsort(sort, random, device);
  }
}

// Checks scatter and scatter_add. If `narrow` is true, scatter gets i32 indices and scatter_add
// gets i64 indices. If it is false, scatter gets i64 indices and scatter_add gets i32 indices.
inline void checkScatterCase(DType dtype, const ScatterCase& c, bool narrow, std::mt19937& random,
                             const RunLibrary& device) {
  for (LibraryFunction function : {LibraryFunction::Scatter, LibraryFunction::ScatterAdd}) {
    const bool adds = function == LibraryFunction::ScatterAdd;
    if (adds && !takesSums(dtype)) continue;
    const DType index = narrow != adds ? DType::I32 : DType::I64;
    SCOPED_TRACE(std::string(name(dtype)) + str(c.sizes) + str(c.source) + " axis " +
                 std::to_string(c.axis) + " by " + std::string(name(index)));
    LibraryRun run{function,
                   c.axis,
                   false,
                   {{dtype, c.sizes, {}}, {index, c.index, c.index_strides}, {dtype, c.source, {}}},
                   {dtype, c.sizes, c.out}};
    checkScatter(run, random, device);
  }
}

// Runs all cases, except cumsum and argsort of tensors with more than `large` elements.
inline void checkEveryLibraryCase(DType dtype, const RunLibrary& device,
                                  int64_t large = INT64_MAX) {
  std::mt19937 random(static_cast<unsigned>(dtype) + 5);
  for (const LineCase& c : lineCases()) {
    const int64_t elements = denseDesc(dtype, c.sizes).numel();
    if (takesSums(dtype) && elements <= large) checkLineCase(dtype, c, random, device);
  }
  bool narrow = false;
  for (const ScatterCase& c : scatterCases()) {
    checkScatterCase(dtype, c, narrow, random, device);
    narrow = !narrow;
  }
}

// Requires that cumsum, argsort and scatter_add refuse f8. Library functions can only move f8.
inline void expectFloat8Refused(const std::function<int64_t(const LibraryCall&)>& workspace) {
  for (DType dtype : {DType::F8E4M3, DType::F8E5M2}) {
    const Matrix x(dtype, {4}, {});
    const Matrix order(DType::I64, {4}, {});
    const LibraryRun refused[] = {{LibraryFunction::Cumsum, 0, false, {x}, x},
                                  {LibraryFunction::Argsort, 0, false, {x}, order},
                                  {LibraryFunction::ScatterAdd, 0, false, {x, order, x}, x}};
    for (const LibraryRun& run : refused) EXPECT_THROW(workspace(run.call()), UserError);
  }
}

}  // namespace heddle::host
