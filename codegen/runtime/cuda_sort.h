// Sorting lines and taking the first of them, stable: by key, and by place where keys are equal.
// Behind the text of cuda_lines.h. A line of up to kWarpLine elements is sorted by a warp, of up to
// kTile by a block, both from where it stands to where it is wanted; a longer one by digits, a
// kernel for each step. No result depends on the order in which blocks or threads run.

namespace hdl {

constexpr int kDigits = 256;
constexpr int kWarpLine = 256;  // a line that a warp sorts
constexpr int kTile = 4096;     // elements that a block holds
constexpr U32 kNoPlace = 0xffffffffu;
constexpr U32 kAllLanes = 0xffffffffu;

// --- keys: unsigned integers in the order of the elements ----------------------------------------

// How the bits of an element become a key: 8 bits for bool and the 8-bit integers, else 32, or 64.
template <class K>
struct KeyRule {
  bool real;
  int shift;  // half types stand in the upper half of a key
  K infinity;
  K most;  // of an integer: a bool is 0 or 1
  K turned;
};
template <class K>
__device__ inline KeyRule<K> keyRuleOf(I64 type, I64 flip) {
  const K sign = (K)1 << (8 * sizeof(K) - 1);
  KeyRule<K> rule = {isFloatType(type), 0, 0, (K) ~(K)0, (K)flip};
  if (type == kBF16 || type == kF16) rule.shift = 16;
  if (type == kBF16 || type == kF32) rule.infinity = (K)0x7f800000u;
  if (type == kF16) rule.infinity = (K)0x7c000000u;
  if (type == kF64) rule.infinity = (K)0x7ff0000000000000ull;
  if (type == kBool) rule.most = 1;
  if (type == kI8) rule.turned ^= 0x80u;
  if (type == kI32 || type == kI64) rule.turned ^= sign;
  return rule;
}
template <class K>
__device__ inline K keyOf(const KeyRule<K>& rule, K bits) {
  const K sign = (K)1 << (8 * sizeof(K) - 1);
  K key = bits < rule.most ? bits : rule.most;
  if (rule.real) {
    bits <<= rule.shift;
    const K size = bits & ~sign;
    key = bits != size ? ~bits : bits | sign;
    if (size == 0) key = sign;  // -0 is 0
    if (size > rule.infinity) key = (K) ~(K)0;
  }
  return key ^ rule.turned;
}
// Of an index the key is the target it names, or `extent` when it names none.
__device__ inline U64 keyOfIndex(const Args& args, U64 bits) {
  const U64 index = args.index_type == kI32 ? (U64)(I64)(int)bits : bits;
  // Targets that lie before the first one wrap around to beyond the last.
  const U64 target = index - (U64)args.first_target;
  return target < (U64)args.extent ? target : (U64)args.extent;
}

// A line that is to be sorted: elements of a tensor or an index, or keys and places.
struct Source {
  I64 begin;
  I64 stride;
};
__device__ inline Source sourceOf(const Args& args, I64 line) {
  if (args.by_keys != 0) return {line * args.n, 1};
  const int operand = args.by_index != 0 ? 2 : 1;
  return {offsetOf(args.lines, operand, args.first_line + line), args.axis_strides[operand]};
}

template <class R, class K, int J>
__device__ __forceinline__ void loadBits(const void* from, const Source& source, I64 first,
                                         int step, I64 end, K (&bits)[J]) {
  const R* at = (const R*)from + source.begin + first * source.stride;
  const I64 next = step * source.stride;
  HDL_UNROLL
  for (int j = 0; j < J; ++j) bits[j] = first + j * step < end ? (K)at[j * next] : (K)0;
}
template <class K, int J>
__device__ __forceinline__ void takeTargets(const Args& args, const Source& source, I64 first,
                                            int step, I64 end, K (&key)[J]) {
  U64 bits[J];
  if (args.index_type == kI64) {
    loadBits<U64>(args.in[1], source, first, step, end, bits);
  } else {
    loadBits<U32>(args.in[1], source, first, step, end, bits);
  }
  HDL_UNROLL
  for (int j = 0; j < J; ++j) {
    key[j] = (K)keyOfIndex(args, bits[j]);
  }
}
template <class K, int J>
__device__ __forceinline__ void takeElements(const Args& args, const Source& source, I64 first,
                                             int step, I64 end, K (&key)[J]) {
  switch (args.in_type) {
    case kI64:
    case kF64:
      loadBits<U64>(args.in[0], source, first, step, end, key);
      break;
    case kI32:
    case kF32:
      loadBits<U32>(args.in[0], source, first, step, end, key);
      break;
    case kBF16:
    case kF16:
      loadBits<unsigned short>(args.in[0], source, first, step, end, key);
      break;
    default:
      loadBits<unsigned char>(args.in[0], source, first, step, end, key);
  }
  const KeyRule<K> rule = keyRuleOf<K>(args.in_type, args.flip);
  HDL_UNROLL
  for (int j = 0; j < J; ++j) key[j] = keyOf(rule, key[j]);
}
// Elements first, first + step ... of a line; beyond the end stands what comes last. All loads go
// out before the first is used.
template <class K, int J>
__device__ __forceinline__ void take(const Args& args, const Source& source, I64 first, int step,
                                     I64 end, K (&key)[J], U32 (&place)[J]) {
  if (args.by_keys != 0) {
    const Source dense = {source.begin, 1};
    loadBits<K>(args.keys[args.from], dense, first, step, end, key);
    loadBits<U32>(args.places[args.from], dense, first, step, end, place);
  } else if (args.by_index != 0) {
    takeTargets(args, source, first, step, end, key);
  } else {
    takeElements(args, source, first, step, end, key);
  }
  HDL_UNROLL
  for (int j = 0; j < J; ++j) {
    const I64 i = first + j * step;
    if (i >= end) {
      key[j] = (K) ~(K)0;
      place[j] = kNoPlace;
    } else if (args.by_keys == 0) {
      place[j] = (U32)i;
    }
  }
}

// Where element i of a sorted line goes. Of the result of argsort places from `extent` on are -1.
struct Target {
  I64 begin;
  I64 stride;
};
__device__ inline Target targetOf(const Args& args, I64 line) {
  if (args.to_keys != 0) return {line * args.n, 1};
  return {offsetOf(args.lines, 0, args.first_line + line), args.axis_strides[0]};
}
template <class K>
__device__ inline void put(const Args& args, const Target& target, I64 i, K key, U32 place) {
  const I64 to = target.begin + i * target.stride;
  if (args.to_keys != 0) {
    ((K*)args.keys[args.from])[to] = key;
    args.places[args.from][to] = place;
  } else {
    ((I64*)args.out)[to] = i < args.extent ? (I64)place : -1;
  }
}

// keys[0] and places[0] of a group of lines.
template <class K>
__device__ void makeKeys(const Args& args) {
  constexpr int J = 4;
  for (I64 item = blockIdx.x; item < args.group * args.chunks; item += gridDim.x) {
    const I64 line = item / args.chunks;
    const I64 begin = (item - line * args.chunks) * kTile;
    const I64 end = args.n - begin < kTile ? args.n : begin + kTile;
    const Source source = sourceOf(args, line);
    for (I64 first = begin + threadIdx.x; first < end; first += J * kThreads) {
      K key[J];
      U32 place[J];
      take(args, source, first, kThreads, end, key, place);
      HDL_UNROLL
      for (int j = 0; j < J; ++j) {
        const I64 i = first + j * kThreads;
        if (i < end) {
          ((K*)args.keys[0])[line * args.n + i] = key[j];
          args.places[0][line * args.n + i] = place[j];
        }
      }
    }
  }
}

// --- a line a warp: bitonic, by key and then by place --------------------------------------------

template <class K>
__device__ inline bool isAbove(K key, U32 place, K other, U32 other_place) {
  return key > other || (key == other && place > other_place);
}

// Lane l ends with elements l * J to l * J + J - 1.
template <class K, int J>
__device__ void sortInWarp(K (&key)[J], U32 (&place)[J]) {
  const int first = (int)(threadIdx.x % 32) * J;
  for (int size = 2; size <= 32 * J; size *= 2) {
    for (int step = size / 2; step >= J; step /= 2) {  // partners are lanes
      const bool low = (first & step) == 0;
      HDL_UNROLL
      for (int j = 0; j < J; ++j) {
        const K other = __shfl_xor_sync(kAllLanes, key[j], step / J);
        const U32 other_place = __shfl_xor_sync(kAllLanes, place[j], step / J);
        const bool up = ((first + j) & size) == 0;
        if (isAbove(key[j], place[j], other, other_place) == (up == low)) {
          key[j] = other;
          place[j] = other_place;
        }
      }
    }
    HDL_UNROLL
    for (int step = J / 2; step > 0; step /= 2) {  // partners are of one lane
      if (2 * step > size) continue;
      HDL_UNROLL
      for (int j = 0; j < J; ++j) {
        if ((j & step) != 0) continue;
        const int k = j | step;
        const bool up = ((first + j) & size) == 0;
        if (isAbove(key[j], place[j], key[k], place[k]) == up) {
          const K other = key[j];
          const U32 other_place = place[j];
          key[j] = key[k];
          place[j] = place[k];
          key[k] = other;
          place[k] = other_place;
        }
      }
    }
  }
}

template <class K, int J>
__device__ void sortWarpLines(const Args& args) {
  const int lane = (int)threadIdx.x % 32;
  const int warp = (int)threadIdx.x / 32;
  for (I64 first = (I64)blockIdx.x * kWarps; first < args.group; first += (I64)gridDim.x * kWarps) {
    const bool own = first + warp < args.group;
    const I64 line = own ? first + warp : first;
    const Source source = sourceOf(args, line);
    K key[J];
    U32 place[J];
    take(args, source, lane, 32, own ? args.n : 0, key, place);
    sortInWarp(key, place);
    const Target target = targetOf(args, line);
    HDL_UNROLL
    for (int j = 0; j < J; ++j) {
      const int i = lane * J + j;
      if (own && i < args.n) put(args, target, i, key[j], place[j]);
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

// --- a tile a block: by digits, the last ones first ----------------------------------------------

// What the threads of a block share when they rank a tile.
struct Ranks {
  U32 before[kWarps][kDigits];  // elements of a digit in earlier warps and of all lower digits
  U32 sums[kWarps];
};

// Element j of this thread in the order of a tile of kThreads * J.
template <int J>
__device__ inline int tileItem(int j) {
  return (int)(threadIdx.x / 32) * 32 * J + j * 32 + (int)(threadIdx.x % 32);
}

template <class K>
__device__ inline int digitOf(K key, I64 shift) {
  return (int)((key >> shift) & (kDigits - 1));
}

// Where each element goes when the tile is ordered by one digit. Begins and ends with no barrier:
// one must stand between two calls.
template <class K, int J>
__device__ void rankByDigit(const K (&key)[J], I64 shift, U32 (&rank)[J], Ranks& shared) {
  const int warp = (int)threadIdx.x / 32;
  const U32 lower_lanes = (1u << (threadIdx.x % 32)) - 1u;
  for (int w = 0; w < kWarps; ++w) shared.before[w][threadIdx.x] = 0;
  __syncthreads();
  HDL_UNROLL
  for (int j = 0; j < J; ++j) {
    const int digit = digitOf(key[j], shift);
    const U32 peers = __match_any_sync(kAllLanes, digit);
    const U32 lower = peers & lower_lanes;
    rank[j] = shared.before[warp][digit] + (U32)__popc(lower);
    __syncwarp();
    if (lower == 0) shared.before[warp][digit] += (U32)__popc(peers);
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

// The elements of a tile at their ranks. Begins and ends with no barrier that others need.
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
  U32 place[J];
  take(args, source, tileItem<J>(0), 32, args.n, key, place);
  for (I64 shift = args.first_bit; shift < args.bits; shift += 8) {
    U32 rank[J];
    rankByDigit(key, shift, rank, shared);
    moveToRanks(key, rank, moved);
    moveToRanks(place, rank, (U32*)moved);
  }
  const Target target = targetOf(args, line);
  HDL_UNROLL
  for (int j = 0; j < J; ++j) {
    const int i = tileItem<J>(j);
    if (i < args.n) put(args, target, i, key[j], place[j]);
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

// --- the first of long lines ---------------------------------------------------------------------

template <class K>
struct Chosen {
  K mask;  // bits that decide
  K last;  // elements below are taken, of those that are equal the first `equals`
  U32 equals;
};

// What the threads of a block share when they choose.
struct Choice {
  U32 found[kDigits];
  U32 sums[kWarps];
  U32 digit;
  U32 below;
  U32 less[kWarps];
  U32 equal[kWarps];
};

// Digit by digit from the highest: which one holds the last element that is taken.
template <class K, int J>
__device__ Chosen<K> chooseInTile(const Args& args, const K (&key)[J], int count, U32 keep,
                                  Choice& shared) {
  Chosen<K> chosen = {0, 0, keep};
  for (I64 shift = args.bits - 8; shift > args.first_bit - 8; shift -= 8) {
    shared.found[threadIdx.x] = 0;
    __syncthreads();
    HDL_UNROLL
    for (int j = 0; j < J; ++j) {
      if (tileItem<J>(j) < count && (key[j] & chosen.mask) == chosen.last) {
        atomicAdd(&shared.found[digitOf(key[j], shift)], 1u);
      }
    }
    __syncthreads();
    const U32 own = shared.found[threadIdx.x];
    U32 total;
    const U32 below = sumBefore(own, shared.sums, total);
    if (below < chosen.equals && chosen.equals <= below + own) {
      shared.digit = threadIdx.x;
      shared.below = below;
    }
    __syncthreads();
    chosen.mask |= (K)(kDigits - 1) << shift;
    chosen.last |= (K)shared.digit << shift;
    chosen.equals -= shared.below;
  }
  return chosen;
}

template <class K, int J>
__device__ void keepChosen(const Args& args, const K (&key)[J], const U32 (&place)[J], int count,
                           const Chosen<K>& chosen, I64 to, Choice& shared) {
  const int warp = (int)threadIdx.x / 32;
  const U32 lower_lanes = (1u << (threadIdx.x % 32)) - 1u;
  U32 less[J];
  U32 equal[J];
  U32 all_less = 0;
  U32 all_equal = 0;
  HDL_UNROLL
  for (int j = 0; j < J; ++j) {
    const bool valid = tileItem<J>(j) < count;
    const K digits = key[j] & chosen.mask;
    less[j] = __ballot_sync(kAllLanes, valid && digits < chosen.last);
    equal[j] = __ballot_sync(kAllLanes, valid && digits == chosen.last);
    all_less += (U32)__popc(less[j]);
    all_equal += (U32)__popc(equal[j]);
  }
  if (lower_lanes == 0) {
    shared.less[warp] = all_less;
    shared.equal[warp] = all_equal;
  }
  __syncthreads();
  U32 less_before = 0;
  U32 equal_before = 0;
  for (int w = 0; w < warp; ++w) {
    less_before += shared.less[w];
    equal_before += shared.equal[w];
  }
  K* keys = (K*)args.keys[1 - args.from] + to;
  U32* places = args.places[1 - args.from] + to;
  HDL_UNROLL
  for (int j = 0; j < J; ++j) {
    const U32 equals = equal_before + (U32)__popc(equal[j] & lower_lanes);
    const U32 at = less_before + (U32)__popc(less[j] & lower_lanes) +
                   (equals < chosen.equals ? equals : chosen.equals);
    const bool is_less = (less[j] & (lower_lanes + 1u)) != 0;
    const bool is_equal = (equal[j] & (lower_lanes + 1u)) != 0;
    if (is_less || (is_equal && equals < chosen.equals)) {
      keys[at] = key[j];
      places[at] = place[j];
    }
    less_before += (U32)__popc(less[j]);
    equal_before += (U32)__popc(equal[j]);
  }
}

// The first `keep` of each tile, in the order of their places, become lines of keys and places of
// chunks * keep elements.
template <class K>
__device__ void selectTiles(const Args& args) {
  constexpr int J = kTile / kThreads;
  __shared__ Choice shared;
  for (I64 item = blockIdx.x; item < args.group * args.chunks; item += gridDim.x) {
    const I64 line = item / args.chunks;
    const I64 begin = (item - line * args.chunks) * kTile;
    const int count = (int)(args.n - begin < kTile ? args.n - begin : kTile);
    const Source source = sourceOf(args, line);
    K key[J];
    U32 place[J];
    take(args, source, begin + tileItem<J>(0), 32, begin + count, key, place);
    const U32 keep = (U32)(count < args.keep ? count : args.keep);
    const Chosen<K> chosen = chooseInTile(args, key, count, keep, shared);
    keepChosen(args, key, place, count, chosen, item * args.keep, shared);
    for (I64 at = item * args.keep + keep + threadIdx.x; at < (item + 1) * args.keep;
         at += kThreads) {
      ((K*)args.keys[1 - args.from])[at] = (K) ~(K)0;
      args.places[1 - args.from][at] = kNoPlace;
    }
    __syncthreads();
  }
}

// --- long lines: keys[from] and places[from] become keys[1 - from] and places[1 - from]
// -----------

// counts[line][digit][chunk] = how often the chunk holds the digit.
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

// Moves the elements of each chunk to where the summed counts say, ordered by digit first, so that
// neighbours go to neighbours.
template <class K>
__device__ void moveByDigit(const Args& args) {
  constexpr int J = kTile / kThreads;
  __shared__ K moved[kTile];
  __shared__ Ranks shared;
  __shared__ U32 base[kDigits];  // wraps: where a digit begins in the line, less where in the tile
  for (I64 item = blockIdx.x; item < args.group * args.chunks; item += gridDim.x) {
    const I64 line = item / args.chunks;
    const I64 chunk = item - line * args.chunks;
    const I64 from = line * args.n + chunk * kTile;
    const I64 left = args.n - chunk * kTile;
    const int count = (int)(left < kTile ? left : kTile);
    K key[J];
    U32 place[J];
    HDL_UNROLL
    for (int j = 0; j < J; ++j) {
      const int i = tileItem<J>(j);
      key[j] = i < count ? ((const K*)args.keys[args.from])[from + i] : (K) ~(K)0;
      place[j] = i < count ? args.places[args.from][from + i] : kNoPlace;
    }
    U32 rank[J];
    rankByDigit(key, args.shift, rank, shared);
    const I64 at = (line * kDigits + (I64)threadIdx.x) * args.chunks + chunk;
    const bool first = threadIdx.x == 0 && chunk == 0;
    base[threadIdx.x] = (first ? 0u : (U32)args.counts[at - 1]) - shared.before[0][threadIdx.x];
    moveToRanks(key, rank, moved);
    moveToRanks(place, rank, (U32*)moved);
    K* keys_to = (K*)args.keys[1 - args.from] + line * args.n;
    U32* places_to = args.places[1 - args.from] + line * args.n;
    HDL_UNROLL
    for (int j = 0; j < J; ++j) {
      const int i = tileItem<J>(j);
      if (i < count) {
        const U32 to = base[digitOf(key[j], args.shift)] + (U32)i;
        keys_to[to] = key[j];
        places_to[to] = place[j];
      }
    }
    __syncthreads();
  }
}

}  // namespace hdl
