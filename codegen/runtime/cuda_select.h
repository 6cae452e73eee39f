// Finds the elements that a sort would put first in a long line (cuda_lines.h), without sorting the
// full line. The line is split into tiles of kTile elements. In one step, blocks select the
// *candidates* of each tile: the Args::keep elements that a sort of the tile would put first.
// Further steps select from the candidates, until one block can sort the rest
// (host/device/cuda_library_launches.h). The selection is stable: of elements with equal keys, it
// takes the elements that come first in the line. In a kernel source, this text follows
// cuda_sort.h.

namespace hdl {

// Says which elements of a tile are selected.
template <class K>
struct Chosen {
  K mask;      // bits of a key that are compared
  K last;      // all elements with a lower key are selected
  U32 equals;  // number of selected elements whose key equals `last`
};

// Shared memory of a block that selects elements of a tile.
struct Choice {
  U32 found[kDigits];
  U32 sums[kWarps];
  U32 digit;
  U32 below;
  U32 less[kWarps];
  U32 equal[kWarps];
};

// Finds the rule that selects the `keep` elements of a tile that a sort would put first. Determines
// Chosen::last digit by digit, starting with the highest digit.
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

// Writes the selected elements of a tile, as keys and indices, to the positions `to`, `to` + 1, ...
// of keys[1 - from] and indices[1 - from]. The elements keep the order that they have in the tile.
template <class K, int J>
__device__ void keepChosen(const Args& args, const K (&key)[J], const U32 (&index)[J], int count,
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
  U32* indices = args.indices[1 - args.from] + to;
  HDL_UNROLL
  for (int j = 0; j < J; ++j) {
    const U32 equals = equal_before + (U32)__popc(equal[j] & lower_lanes);
    const U32 at = less_before + (U32)__popc(less[j] & lower_lanes) +
                   (equals < chosen.equals ? equals : chosen.equals);
    const bool is_less = (less[j] & (lower_lanes + 1u)) != 0;
    const bool is_equal = (equal[j] & (lower_lanes + 1u)) != 0;
    if (is_less || (is_equal && equals < chosen.equals)) {
      keys[at] = key[j];
      indices[at] = index[j];
    }
    less_before += (U32)__popc(less[j]);
    equal_before += (U32)__popc(equal[j]);
  }
}

// Executes one step: selects from each tile the `keep` elements that a sort would put first. The
// elements keep the order that they have in the line. The results of all tiles of a line form one
// line of the next step, with chunks * keep elements. If a tile has fewer than `keep` elements, its
// other results have the largest possible key.
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
    U32 index[J];
    take(args, source, begin + tileItem<J>(0), 32, begin + count, key, index);
    const U32 keep = (U32)(count < args.keep ? count : args.keep);
    const Chosen<K> chosen = chooseInTile(args, key, count, keep, shared);
    keepChosen(args, key, index, count, chosen, item * args.keep, shared);
    for (I64 at = item * args.keep + keep + threadIdx.x; at < (item + 1) * args.keep;
         at += kThreads) {
      ((K*)args.keys[1 - args.from])[at] = (K) ~(K)0;
      args.indices[1 - args.from][at] = kNoIndex;
    }
    __syncthreads();
  }
}

}  // namespace hdl
