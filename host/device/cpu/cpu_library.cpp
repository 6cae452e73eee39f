#include "host/device/cpu/cpu_library.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include "ir/base/ceil_div.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

// --- elements: sums of floats are double, sums of integers are computed modulo 2^64 --------------

// The element types below each have a stored type and a type of sums, with conversions between the
// two.
template <class T, class SumT>
struct Plain {
  using Stored = T;
  using Sum = SumT;
  static Sum load(Stored x) { return static_cast<Sum>(x); }
  static Stored store(Sum x) { return static_cast<Stored>(x); }
};
using ElementF64 = Plain<double, double>;
using ElementF32 = Plain<float, double>;
using ElementI64 = Plain<int64_t, uint64_t>;
// Narrow integers are extended to 64 bits when loaded, with their sign if they are signed, and
// truncated when stored.
using ElementI32 = Plain<int32_t, uint64_t>;
using ElementI8 = Plain<int8_t, uint64_t>;
using ElementU8 = Plain<uint8_t, uint64_t>;
struct ElementBool {
  using Stored = uint8_t;
  using Sum = uint64_t;
  static Sum load(Stored x) { return x != 0 ? 1 : 0; }
  static Stored store(Sum x) { return x != 0 ? 1 : 0; }
};
template <auto kFromBits, auto kToBits, class T>
struct Narrow {
  using Stored = T;
  using Sum = double;
  static Sum load(Stored x) { return static_cast<double>(kFromBits(x)); }
  static Stored store(Sum x) { return kToBits(static_cast<float>(x)); }
};
using ElementBf16 = Narrow<floatFromBf16, bf16FromFloat, uint16_t>;
using ElementF16 = Narrow<floatFromF16, f16FromFloat, uint16_t>;

// Calls work(E()), where E is the element type of the dtype.
template <class Work>
void withElement(DType dtype, Work work) {
  switch (dtype) {
    case DType::Bool:
      return work(ElementBool());
    case DType::U8:
      return work(ElementU8());
    case DType::I8:
      return work(ElementI8());
    case DType::I32:
      return work(ElementI32());
    case DType::I64:
      return work(ElementI64());
    case DType::F16:
      return work(ElementF16());
    case DType::BF16:
      return work(ElementBf16());
    case DType::F32:
      return work(ElementF32());
    case DType::F64:
      return work(ElementF64());
    case DType::F8E4M3:
    case DType::F8E5M2:
      break;
  }
  HEDDLE_CHECK(false, "{} can be neither summed nor sorted", name(dtype));
}

// Calls work(E()), where E is an unsigned element type of the same size, for elements that are only
// moved.
template <class Work>
void withBits(DType dtype, Work work) {
  switch (sizeOf(dtype)) {
    case 1:
      return work(Plain<uint8_t, uint64_t>());
    case 2:
      return work(Plain<uint16_t, uint64_t>());
    case 4:
      return work(Plain<uint32_t, uint64_t>());
    default:
      return work(Plain<uint64_t, uint64_t>());
  }
}

// --- distribution of the lines -------------------------------------------------------------------

// Largest number of lines in a block. A lane is a line of a block.
constexpr int64_t kMostLanes = 16;
// Limit of the workspace of a tile, in bytes. A tile exceeds it only if a single line needs more.
constexpr int64_t kMostScratch = int64_t{4} << 20;

// Divides the lines of a call into blocks of `lanes` lines with consecutive numbers. Tile t of
// TilePool::run() computes blocks t, t + tiles, t + 2 tiles and so on. Each tile has its own part
// of the workspace.
struct Distribution {
  int64_t lanes = 1;
  int64_t blocks = 0;
  int64_t tiles = 0;
  int64_t scratch = 0;  // workspace per tile, in bytes
};

// Returns the workspace of a tile in bytes. An argsort stores the keys and indices of one line at a
// time. A scatter stores a sum for each element of the result in a block.
int64_t scratchOf(const LibraryCall& call, const LineShape& shape, int64_t lanes) {
  constexpr int64_t kSum = 8;
  if (call.function == LibraryFunction::Cumsum) return 0;
  if (call.scatters()) return shape.extent * lanes * kSum;
  return shape.n * (sizeOf(call.in_descs[0]->dtype) == 8 ? 16 : 8);
}

Distribution distribute(const LibraryCall& call, int64_t lines, int threads) {
  const LineShape shape = lineShapeOf(call);
  Distribution result;
  result.lanes = std::clamp<int64_t>(ceilDiv(lines, threads), 1, kMostLanes);
  const int64_t line_scratch = scratchOf(call, shape, 1);
  if (call.scatters() && line_scratch > 0) {
    result.lanes = std::clamp<int64_t>(kMostScratch / line_scratch, 1, result.lanes);
  }
  result.blocks = ceilDiv(lines, result.lanes);
  result.tiles = std::min<int64_t>(result.blocks, threads == 1 ? 1 : 4 * threads);
  // The workspaces of two tiles must not share a cache line, because different threads write them.
  constexpr int64_t kCacheLine = 64;
  result.scratch = ceilDiv(scratchOf(call, shape, result.lanes), kCacheLine) * kCacheLine;
  return result;
}

struct Work {
  const LibraryCall& call;
  LineSpace lines;
  LineShape shape;
  Distribution distribution;
};

// One block of lines: per operand, the offset of the first element of each line.
struct Block {
  int64_t lanes = 0;
  int64_t at[LineSpace::kMostOperands][kMostLanes];
  Block(const Work& work, int64_t index) {
    const int64_t first = index * work.distribution.lanes;
    lanes = std::min(work.distribution.lanes, work.lines.count - first);
    for (size_t operand = 0; operand < LineSpace::kMostOperands; ++operand) {
      for (int64_t lane = 0; lane < lanes; ++lane) {
        at[operand][lane] = work.lines.offset(operand, first + lane);
      }
    }
  }
};

// --- the functions on one block ------------------------------------------------------------------

template <class In, class Out>
void cumsumBlock(const Work& work, const Block& block, std::byte*) {
  const auto* in = static_cast<const typename In::Stored*>(work.call.in[0]);
  auto* out = static_cast<typename Out::Stored*>(work.call.out);
  typename In::Sum sums[kMostLanes] = {};
  for (int64_t i = 0; i < work.shape.n; ++i) {
    const int64_t from = i * work.shape.strides[1];
    const int64_t to = i * work.shape.strides[0];
    for (int64_t lane = 0; lane < block.lanes; ++lane) {
      sums[lane] += In::load(in[block.at[1][lane] + from]);
      out[block.at[0][lane] + to] = Out::store(sums[lane]);
    }
  }
}

// Returns the sort key of a number: keys have the same order as numbers. -0 and 0 have equal keys,
// and NaN has the largest key.
uint32_t keyOf(float x) {
  if (std::isnan(x)) return ~uint32_t{0};
  const auto bits = std::bit_cast<uint32_t>(x == 0 ? 0.0F : x);
  return (bits >> 31) != 0 ? ~bits : bits | (uint32_t{1} << 31);
}
uint64_t keyOf(double x) {
  if (std::isnan(x)) return ~uint64_t{0};
  const auto bits = std::bit_cast<uint64_t>(x == 0 ? 0.0 : x);
  return (bits >> 63) != 0 ? ~bits : bits | (uint64_t{1} << 63);
}
template <class E>
auto keyOfElement(typename E::Stored x) {
  constexpr bool kLong = sizeof(typename E::Stored) == 8;
  if constexpr (std::is_same_v<typename E::Sum, double>) {
    using Float = std::conditional_t<kLong, double, float>;
    return keyOf(static_cast<Float>(E::load(x)));
  } else if constexpr (kLong) {
    return E::load(x) ^ (uint64_t{1} << 63);
  } else {
    return static_cast<uint32_t>(E::load(x)) ^ (uint32_t{1} << 31);
  }
}

struct LongKey {
  uint64_t key;
  uint64_t index;
  bool operator<(const LongKey& other) const {
    return key != other.key ? key < other.key : index < other.index;
  }
};

// Sorts keys together with their indices. Equal keys are ordered by index, so the sort is stable. A
// key of 32 bits and its index form one integer of 64 bits. If the result has fewer elements than
// the input, the function sorts and stores only the first ones.
template <class E>
void argsortLine(const Work& work, int64_t in_at, int64_t out_at, std::byte* scratch) {
  const auto* in = static_cast<const typename E::Stored*>(work.call.in[0]) + in_at;
  auto* out = static_cast<int64_t*>(work.call.out) + out_at;
  using Key = decltype(keyOfElement<E>(*in));
  using Entry = std::conditional_t<sizeof(Key) == 8, LongKey, uint64_t>;
  auto* entries = reinterpret_cast<Entry*>(scratch);
  const Key flip = work.call.descending ? static_cast<Key>(~Key{0}) : Key{0};
  for (int64_t i = 0; i < work.shape.n; ++i) {
    const Key key = keyOfElement<E>(in[i * work.shape.strides[1]]) ^ flip;
    if constexpr (sizeof(Key) == 8) {
      entries[i] = {key, static_cast<uint64_t>(i)};
    } else {
      entries[i] = uint64_t{key} << 32 | static_cast<uint64_t>(i);
    }
  }
  const int64_t ordered = work.shape.extent;
  if (ordered < work.shape.n) std::nth_element(entries, entries + ordered, entries + work.shape.n);
  std::sort(entries, entries + ordered);
  for (int64_t i = 0; i < ordered; ++i) {
    if constexpr (sizeof(Key) == 8) {
      out[i * work.shape.strides[0]] = static_cast<int64_t>(entries[i].index);
    } else {
      out[i * work.shape.strides[0]] = static_cast<int64_t>(entries[i] & ~uint32_t{0});
    }
  }
}

template <class E>
void argsortBlock(const Work& work, const Block& block, std::byte* scratch) {
  for (int64_t lane = 0; lane < block.lanes; ++lane) {
    argsortLine<E>(work, block.at[1][lane], block.at[0][lane], scratch);
  }
}

int64_t indexAt(const void* index, bool narrow, int64_t at) {
  return narrow ? static_cast<const int32_t*>(index)[at] : static_cast<const int64_t*>(index)[at];
}

// Computes sums[target][lane] in the workspace; a target is an index along the axis of the result.
// Each sum begins with the element of the first input at the target. Then the function goes through
// the source elements in their order along the axis, and adds each one to the sum of its target. If
// `kAdds` is false, a source element replaces the sum instead. The function stores the sums at the
// end, so it rounds each sum once.
template <class E, bool kAdds>
void scatterBlock(const Work& work, const Block& block, std::byte* scratch) {
  using Stored = typename E::Stored;
  const auto* value = static_cast<const Stored*>(work.call.in[0]);
  const bool narrow = work.call.in_descs[1]->dtype == DType::I32;
  const auto* source = static_cast<const Stored*>(work.call.in[2]);
  auto* out = static_cast<Stored*>(work.call.out);
  auto* sums = reinterpret_cast<typename E::Sum*>(scratch);
  const auto& strides = work.shape.strides;
  const int64_t lanes = block.lanes;
  for (int64_t t = 0; t < work.shape.extent; ++t) {
    for (int64_t lane = 0; lane < lanes; ++lane) {
      sums[t * lanes + lane] = E::load(value[block.at[1][lane] + t * strides[1]]);
    }
  }
  for (int64_t i = 0; i < work.shape.n; ++i) {
    for (int64_t lane = 0; lane < lanes; ++lane) {
      // If `named` is less than the index of the first target, the subtraction wraps to a large
      // number, which the comparison rejects.
      const auto named = static_cast<uint64_t>(
          indexAt(work.call.in[1], narrow, block.at[2][lane] + i * strides[2]));
      const uint64_t local = named - static_cast<uint64_t>(work.shape.first);
      if (local >= static_cast<uint64_t>(work.shape.extent)) continue;
      const auto target = static_cast<int64_t>(local);
      const auto element = E::load(source[block.at[3][lane] + i * strides[3]]);
      auto& sum = sums[target * lanes + lane];
      sum = kAdds ? sum + element : element;
    }
  }
  for (int64_t t = 0; t < work.shape.extent; ++t) {
    for (int64_t lane = 0; lane < lanes; ++lane) {
      out[block.at[0][lane] + t * strides[0]] = E::store(sums[t * lanes + lane]);
    }
  }
}

using RunBlock = void (*)(const Work&, const Block&, std::byte* scratch);

struct Job {
  Work work;
  RunBlock run;
};

// A CpuKernelFunction that runs tiles of a Job.
void runTiles(const void* argument, int64_t begin, int64_t end) {
  const Job& job = *static_cast<const Job*>(argument);
  const Distribution& tiles = job.work.distribution;
  for (int64_t tile = begin; tile < end; ++tile) {
    std::byte* scratch = static_cast<std::byte*>(job.work.call.workspace) + tile * tiles.scratch;
    for (int64_t block = tile; block < tiles.blocks; block += tiles.tiles) {
      job.run(job.work, Block(job.work, block), scratch);
    }
  }
}

RunBlock functionOf(const LibraryCall& call) {
  const DType dtype = call.in_descs[0]->dtype;
  RunBlock run = nullptr;
  switch (call.function) {
    case LibraryFunction::Cumsum:
      withElement(dtype, [&](auto element) {
        using E = decltype(element);
        constexpr bool kFloat = std::is_same_v<typename E::Sum, double>;
        run = cumsumBlock<E, std::conditional_t<kFloat, E, ElementI64>>;
      });
      break;
    case LibraryFunction::Argsort:
      withElement(dtype, [&](auto element) { run = argsortBlock<decltype(element)>; });
      break;
    case LibraryFunction::Scatter:
      withBits(dtype, [&](auto element) { run = scatterBlock<decltype(element), false>; });
      break;
    case LibraryFunction::ScatterAdd:
      withElement(dtype, [&](auto element) { run = scatterBlock<decltype(element), true>; });
      break;
  }
  return run;
}

}  // namespace

int64_t cpuLibraryWorkspace(const LibraryCall& call, int threads) {
  refuseFloat8Sums(call);
  const Distribution distribution = distribute(call, lineSpaceOf(call).count, threads);
  return distribution.tiles * distribution.scratch;
}

void cpuLibrary(const LibraryCall& call, TilePool& pool) {
  const LineSpace lines = lineSpaceOf(call);
  const Job job{{call, lines, lineShapeOf(call), distribute(call, lines.count, pool.threads())},
                functionOf(call)};
  pool.run(runTiles, &job, job.work.distribution.tiles);
}

}  // namespace heddle::host
