// Sorts lines (cuda_lines.h) by key. Elements with equal keys are sorted by index, so the sort is
// stable. cuda_keys.h defines keys and indices. In a kernel source, this text follows cuda_keys.h.
// - A warp sorts a line of up to kWarpLine elements.
// - A block sorts a longer line of up to kTile elements.
// - A line of more than kTile elements is sorted by digits of 8 bits, starting with the lowest
//   digit. For each digit, one kernel counts the keys with each value of the digit, and a later
//   kernel moves the keys.
//
// A line of up to kTile elements needs only one kernel, which loads, sorts and stores the line. The
// results do not depend on the order in which blocks or threads run.

namespace hdl {

// --- one line per warp: bitonic sort by key and then by index ------------------------------------

template <class K>
__device__ inline bool isAbove(K key, U32 index, K other, U32 other_index) {
  return key > other || (key == other && index > other_index);
}

// Sorts the 32 * J elements of a warp. Afterwards thread t of the warp holds elements t * J to
// t * J + J - 1 of the sorted line.
template <class K, int J>
__device__ void sortInWarp(K (&key)[J], U32 (&index)[J]) {
  const int first = (int)(threadIdx.x % 32) * J;
  for (int size = 2; size <= 32 * J; size *= 2) {
    for (int step = size / 2; step >= J; step /= 2) {  // the partner is in another thread
      const bool low = (first & step) == 0;
      HDL_UNROLL
      for (int j = 0; j < J; ++j) {
        const K other = __shfl_xor_sync(kAllLanes, key[j], step / J);
        const U32 other_index = __shfl_xor_sync(kAllLanes, index[j], step / J);
        const bool up = ((first + j) & size) == 0;
        if (isAbove(key[j], index[j], other, other_index) == (up == low)) {
          key[j] = other;
          index[j] = other_index;
        }
      }
    }
    HDL_UNROLL
    for (int step = J / 2; step > 0; step /= 2) {  // the partner is in the same thread
      if (2 * step > size) continue;
      HDL_UNROLL
      for (int j = 0; j < J; ++j) {
        if ((j & step) != 0) continue;
        const int k = j | step;
        const bool up = ((first + j) & size) == 0;
        if (isAbove(key[j], index[j], key[k], index[k]) == up) {
          const K other = key[j];
          const U32 other_index = index[j];
          key[j] = key[k];
          index[j] = index[k];
          key[k] = other;
          index[k] = other_index;
        }
      }
    }
  }
}

template <class K, int J>
__device__ void sortWarpLines(const Args& args) {
  const int lane = (int)threadIdx.x % 32;  // number of this thread in its warp
  const int warp = (int)threadIdx.x / 32;
  for (I64 first = (I64)blockIdx.x * kWarps; first < args.group; first += (I64)gridDim.x * kWarps) {
    const bool own = first + warp < args.group;
    const I64 line = own ? first + warp : first;
    const Source source = sourceOf(args, line);
    K key[J];
    U32 index[J];
    take(args, source, lane, 32, own ? args.n : 0, key, index);
    sortInWarp(key, index);
    const Target target = targetOf(args, line);
    HDL_UNROLL
    for (int j = 0; j < J; ++j) {
      const int i = lane * J + j;
      if (own && i < args.n) put(args, target, i, key[j], index[j]);
    }
  }
}

template <class K>
__device__ void sortWarps(const Args& args) {
  if (args.n <= 32) {
    sortWarpLines<K, 1>(args);
  } else if (args.n <= 64) {
    sortWarpLines<K, 2>(args);
  } else if (args.n <= 128) {
    sortWarpLines<K, 4>(args);
  } else {
    sortWarpLines<K, kWarpLine / 32>(args);
  }
}

// --- one tile per block: a radix sort, the lowest digit first ------------------------------------

// Shared memory of a block that computes the ranks of the elements of a tile (rankByDigit()).
struct Ranks {
  U32 before[kWarps][kDigits];  // by warp and digit; rankByDigit() explains the contents
  U32 sums[kWarps];
};

// Returns the index of element j of this thread in a tile of kThreads * J elements.
template <int J>
__device__ inline int tileItem(int j) {
  return (int)(threadIdx.x / 32) * 32 * J + j * 32 + (int)(threadIdx.x % 32);
}

template <class K>
__device__ inline int digitOf(K key, I64 shift) {
  return (int)((key >> shift) & (kDigits - 1));
}

// Computes the rank of each element: its position after a stable sort of the tile by one digit.
// During the call, Ranks::before first contains, by warp and digit, the number of elements of the
// warp with this digit. After the call, it contains the rank of the first of these elements. The
// function has no barrier at its start and end, so the caller must put a barrier between two
// calls.
template <class K, int J>
__device__ void rankByDigit(const K (&key)[J], I64 shift, U32 (&rank)[J], Ranks& shared) {
  const int warp = (int)threadIdx.x / 32;
  const U32 lower_lanes = (1u << (threadIdx.x % 32)) - 1u;
  for (int w = 0; w < kWarps; ++w) shared.before[w][threadIdx.x] = 0;
  __syncthreads();
  HDL_UNROLL
  for (int j = 0; j < J; ++j) {
    const int digit = digitOf(key[j], shift);
    const U32 same_digit = __match_any_sync(kAllLanes, digit);
    const U32 lower = same_digit & lower_lanes;
    rank[j] = shared.before[warp][digit] + (U32)__popc(lower);
    __syncwarp();
    if (lower == 0) shared.before[warp][digit] += (U32)__popc(same_digit);
    __syncwarp();
  }
  __syncthreads();
  U32 own = 0;
  for (int w = 0; w < kWarps; ++w) {
    const U32 count = shared.before[w][threadIdx.x];
    shared.before[w][threadIdx.x] = own;
    own += count;
  }
  U32 total;
  const U32 lower_digits = sumBefore(own, shared.sums, total);
  for (int w = 0; w < kWarps; ++w) shared.before[w][threadIdx.x] += lower_digits;
  __syncthreads();
  HDL_UNROLL
  for (int j = 0; j < J; ++j) rank[j] += shared.before[warp][digitOf(key[j], shift)];
}

// Moves the elements of a tile to their ranks. The barriers of this function also separate the
// accesses of rankByDigit() and moveByDigit() to `Ranks` from later accesses.
template <class T, int J>
__device__ void moveToRanks(T (&value)[J], const U32 (&rank)[J], T* moved) {
  HDL_UNROLL
  for (int j = 0; j < J; ++j) moved[rank[j]] = value[j];
  __syncthreads();
  HDL_UNROLL
  for (int j = 0; j < J; ++j) value[j] = moved[tileItem<J>(j)];
  __syncthreads();
}

template <class K, int J>
__device__ void sortTile(const Args& args, I64 line, K* moved, Ranks& shared) {
  const Source source = sourceOf(args, line);
  K key[J];
  U32 index[J];
  take(args, source, tileItem<J>(0), 32, args.n, key, index);
  for (I64 shift = args.first_bit; shift < args.bits; shift += 8) {
    U32 rank[J];
    rankByDigit(key, shift, rank, shared);
    moveToRanks(key, rank, moved);
    moveToRanks(index, rank, (U32*)moved);
  }
  const Target target = targetOf(args, line);
  HDL_UNROLL
  for (int j = 0; j < J; ++j) {
    const int i = tileItem<J>(j);
    if (i < args.n) put(args, target, i, key[j], index[j]);
  }
}

template <class K>
__device__ void sortTiles(const Args& args) {
  __shared__ K moved[kTile];
  __shared__ Ranks shared;
  for (I64 line = blockIdx.x; line < args.group; line += gridDim.x) {
    if (args.n <= kTile / 4) {
      sortTile<K, kTile / kThreads / 4>(args, line, moved, shared);
    } else {
      sortTile<K, kTile / kThreads>(args, line, moved, shared);
    }
  }
}

// --- long lines: steps move keys[from] and indices[from] to keys[1 - from], indices[1 - from]

// Sets counts[line][digit][chunk] to the number of elements of the chunk that have this digit. A
// chunk consists of kTile neighbouring elements of a line.
template <class K>
__device__ void countDigits(const Args& args) {
  constexpr int J = kTile / kThreads;
  __shared__ U32 found[kDigits];
  for (I64 item = blockIdx.x; item < args.group * args.chunks; item += gridDim.x) {
    const I64 line = item / args.chunks;
    const I64 chunk = item - line * args.chunks;
    const K* keys = (const K*)args.keys[args.from] + line * args.n + chunk * kTile;
    const I64 count = args.n - chunk * kTile;
    K key[J];
    HDL_UNROLL
    for (int j = 0; j < J; ++j) {
      const int i = tileItem<J>(j);
      key[j] = i < count ? keys[i] : (K)0;
    }
    found[threadIdx.x] = 0;
    __syncthreads();
    HDL_UNROLL
    for (int j = 0; j < J; ++j) {
      if (tileItem<J>(j) < count) atomicAdd(&found[digitOf(key[j], args.shift)], 1u);
    }
    __syncthreads();
    args.counts[(line * kDigits + threadIdx.x) * args.chunks + chunk] = found[threadIdx.x];
    __syncthreads();
  }
}

// Moves the elements of each chunk to their positions in the line. The positions follow from the
// prefix sums of the counts (countDigits()). The block orders the elements by digit in shared
// memory before it writes them, so that neighbouring threads write neighbouring elements.
template <class K>
__device__ void moveByDigit(const Args& args) {
  constexpr int J = kTile / kThreads;
  __shared__ K moved[kTile];
  __shared__ Ranks shared;
  __shared__ U32 base[kDigits];  // by digit: where its elements start in the line
                                 // minus where they start in the tile
  for (I64 item = blockIdx.x; item < args.group * args.chunks; item += gridDim.x) {
    const I64 line = item / args.chunks;
    const I64 chunk = item - line * args.chunks;
    const I64 from = line * args.n + chunk * kTile;
    const I64 left = args.n - chunk * kTile;
    const int count = (int)(left < kTile ? left : kTile);
    K key[J];
    U32 index[J];
    HDL_UNROLL
    for (int j = 0; j < J; ++j) {
      const int i = tileItem<J>(j);
      key[j] = i < count ? ((const K*)args.keys[args.from])[from + i] : (K) ~(K)0;
      index[j] = i < count ? args.indices[args.from][from + i] : kNoIndex;
    }
    U32 rank[J];
    rankByDigit(key, args.shift, rank, shared);
    const I64 at = (line * kDigits + (I64)threadIdx.x) * args.chunks + chunk;
    const bool first = threadIdx.x == 0 && chunk == 0;
    // The difference may wrap. The addition below wraps back.
    base[threadIdx.x] = (first ? 0u : (U32)args.counts[at - 1]) - shared.before[0][threadIdx.x];
    moveToRanks(key, rank, moved);
    moveToRanks(index, rank, (U32*)moved);
    K* keys_to = (K*)args.keys[1 - args.from] + line * args.n;
    U32* indices_to = args.indices[1 - args.from] + line * args.n;
    HDL_UNROLL
    for (int j = 0; j < J; ++j) {
      const int i = tileItem<J>(j);
      if (i < count) {
        const U32 to = base[digitOf(key[j], args.shift)] + (U32)i;
        keys_to[to] = key[j];
        indices_to[to] = index[j];
      }
    }
    __syncthreads();
  }
}

}  // namespace hdl
