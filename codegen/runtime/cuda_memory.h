// How generated CUDA kernels load and store vectors of elements, and exchange squares through
// shared memory. A kernel source contains this text after cuda_lanes.h.

namespace hd {

// --- memory --------------------------------------------------------------------------------------
// load() and store() access the first `count` of kLanes neighbouring elements. If `whole` is true,
// the address is aligned for words of up to 16 bytes (Pack). kStreams: see loadWord().

// true: vectors of kLanes elements have fast functions for unaligned addresses (loadPairs() and
// storePairs()). Only vectors of at least two pairs of 16-bit elements have them.
template <int kLanes, class T>
constexpr bool kHasPairs = sizeof(T) == 2 && kLanes >= 4;
// Returns whether the address is aligned for 16-bit words, but not for 32-bit words.
__device__ inline bool isBetweenWords(const void* address) {
  return ((unsigned long long)address & 2) != 0;
}

// Loads a word. kFetches: no thread of the kernel writes it, so the load may use the read-only
// cache.
template <bool kFetches, class Word>
__device__ inline Word readWord(const Word* from) {
  if constexpr (kFetches) {
    return __ldg(from);
  } else {
    return *from;
  }
}

// Loads a complete vector of 16-bit elements from any address, mostly as words of 32 bits. load()
// does not call this function, because a branch for incomplete vectors would delay later loads.
// There are no branches, so that a thread can begin several loads before it waits for the first
// one. If the address is between words, the first and the last element are loaded alone, so that
// the function reads only the bytes of the elements. kFetches: see readWord().
template <int kLanes, bool kFetches = false, class T>
__device__ inline void loadPairs(Pack<kLanes, T>& to, const T* from) {
  constexpr int kPairs = kLanes / 2;
  const bool between = isBetweenWords(from);
  const unsigned short* elements = (const unsigned short*)from;
  const unsigned* words = (const unsigned*)(elements - (between ? 1 : 0));
  unsigned word[kPairs + 1];
  word[0] = between ? (unsigned)readWord<kFetches>(elements) << 16 : readWord<kFetches>(words);
#pragma unroll
  for (int i = 1; i < kPairs; ++i) word[i] = readWord<kFetches>(words + i);
  word[kPairs] = between ? readWord<kFetches>(elements + kLanes - 1) : 0;
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    to.pair[i] = __funnelshift_r(word[i], word[i + 1], between ? 16 : 0);
  }
}
// Stores 16-bit elements to any address, mostly as words of 32 bits.
template <int kLanes, class T>
__device__ inline void storePairs(T* to, const Pack<kLanes, T>& from) {
  if (!isBetweenWords(to)) {
#pragma unroll
    for (int i = 0; i < kLanes / 2; ++i) ((unsigned*)to)[i] = from.pair[i];
    return;
  }
  to[0] = from.lane[0];
#pragma unroll
  for (int i = 1; i + 1 < kLanes; i += 2) {
    Pack<2, T> two;
    two.lane[0] = from.lane[i];
    two.lane[1] = from.lane[i + 1];
    *(unsigned*)(to + i) = two.pair[0];
  }
  to[kLanes - 1] = from.lane[kLanes - 1];
}

// `To` is Lanes or SingleLanes.
template <int kLanes, bool kStreams = false, class To, class T>
__device__ inline void load(To& to, const T* from, bool whole, int count) {
  typedef Pack<kLanes, T> P;
  if (whole && count >= kLanes) {
    P pack;
#pragma unroll
    for (int w = 0; w < P::kWords; ++w) {
      pack.word[w] = loadWord<kStreams>((const typename P::Type*)from + w);
    }
    to.set(pack);
  } else {
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      if (i < count) to.set(i, from[i]);
    }
  }
}

template <int kLanes, bool kStreams = false, class T>
__device__ inline void store(T* to, const T (&from)[kLanes], bool whole, int count) {
  typedef Pack<kLanes, T> P;
  if (whole && count >= kLanes) {
    P pack;
#pragma unroll
    for (int i = 0; i < kLanes; ++i) pack.lane[i] = from[i];
#pragma unroll
    for (int w = 0; w < P::kWords; ++w)
      storeWord<kStreams>((typename P::Type*)to + w, pack.word[w]);
    return;
  }
  if constexpr (kHasPairs<kLanes, T>) {
    if (count >= kLanes) {
      P pack;
#pragma unroll
      for (int i = 0; i < kLanes; ++i) pack.lane[i] = from[i];
      return storePairs<kLanes>(to, pack);
    }
  }
#pragma unroll
  for (int i = 0; i < kLanes; ++i) {
    if (i < count) to[i] = from[i];
  }
}

// Stores floats as elements of a 16-bit type, rounded to nearest even.
template <int kLanes, bool kStreams = false, class T>
__device__ inline void storeRounded(T* to, const float (&from)[kLanes], bool whole, int count) {
  typedef Pack<kLanes, T> P;
  if (kLanes > 1 && count >= kLanes && (whole || kHasPairs<kLanes, T>)) {
    P pack;
#pragma unroll
    for (int i = 0; i + 1 < kLanes; i += 2) pack.pair[i / 2] = Round<T>::pair(from[i], from[i + 1]);
    if constexpr (kHasPairs<kLanes, T>) {
      if (!whole) return storePairs<kLanes>(to, pack);
    }
#pragma unroll
    for (int w = 0; w < P::kWords; ++w)
      storeWord<kStreams>((typename P::Type*)to + w, pack.word[w]);
    return;
  }
#pragma unroll
  for (int i = 0; i < kLanes; ++i) {
    if (i < count) to[i] = Round<T>::one(from[i]);
  }
}

// Functions with Part in their names access elements `first` to `end` - 1 of kLanes elements.
template <int kLanes, bool kStreams = false, class To, class T>
__device__ inline void loadPart(To& to, const T* from, bool whole, int first, int end) {
  if constexpr (kHasPairs<kLanes, T>) {
    if (!whole && first <= 0 && end >= kLanes) {
      Pack<kLanes, T> pack;
      loadPairs<kLanes>(pack, from);
      return to.set(pack);
    }
  }
  if (first <= 0) return load<kLanes, kStreams>(to, from, whole, end);
#pragma unroll
  for (int i = 0; i < kLanes; ++i) {
    if (i >= first && i < end) to.set(i, from[i]);
  }
}
// Loads elements `first` to `end` - 1 of kLanes elements. Requires an aligned address. The other
// elements get any values. `whole`: all kLanes elements belong to the tensor.
template <int kLanes, bool kStreams = false, class T>
__device__ inline void loadShifted(Lanes<kLanes, T>& to, const T* from, int first, int end,
                                   bool whole) {
  if (whole || (first <= 0 && end >= kLanes)) {
    return load<kLanes, kStreams>(to, from, true, kLanes);
  }
#pragma unroll
  for (int i = 0; i < kLanes; ++i) to.set(i, i >= first && i < end ? from[i] : T());
}
// Does the same as loadPart() for `to[at]`. Call awaitCopies() before the thread reads the vector.
template <int kLanes, class T>
__device__ inline void holdPart(const SharedArray<HeldLanes<kLanes, T>>& to, int at, const T* from,
                                bool whole, int first, int end) {
  if constexpr (kLanes * sizeof(T) >= 4) {
    if (whole && first <= 0 && end >= kLanes) return copyLater(to, at, from);
  }
  HeldLanes<kLanes, T> part;
  loadPart<kLanes>(part.lanes, from, whole, first, end);
  to[at] = part;
}
template <int kLanes, bool kStreams = false, class T>
__device__ inline void storePart(T* to, const T (&from)[kLanes], bool whole, int first, int end) {
  if (first <= 0) return store<kLanes, kStreams>(to, from, whole, end);
#pragma unroll
  for (int i = 0; i < kLanes; ++i) {
    if (i >= first && i < end) to[i] = from[i];
  }
}
template <int kLanes, bool kStreams = false, class T>
__device__ inline void storeRoundedPart(T* to, const float (&from)[kLanes], bool whole, int first,
                                        int end) {
  if (first <= 0) return storeRounded<kLanes, kStreams>(to, from, whole, end);
#pragma unroll
  for (int i = 0; i < kLanes; ++i) {
    if (i >= first && i < end) to[i] = Round<T>::one(from[i]);
  }
}
// Returns how many elements `address` is after the last address that is aligned for kLanes
// elements.
template <int kLanes, class T>
__device__ inline int shiftOf(const T* address) {
  return (int)((unsigned long long)address / sizeof(T) % kLanes);
}

template <int kLanes, class T, class Index>
__device__ inline void loadStrided(Lanes<kLanes, T>& to, const T* from, Index stride, int count) {
#pragma unroll
  for (int i = 0; i < kLanes; ++i) {
    if (i < count) to.set(i, from[i * stride]);
  }
}

template <int kLanes, class T, class Index>
__device__ inline void storeStrided(T* to, const T (&from)[kLanes], Index stride, int count) {
#pragma unroll
  for (int i = 0; i < kLanes; ++i) {
    if (i < count) to[i * stride] = from[i];
  }
}

// Loads an element. No thread of the kernel may write this element. The compiler may therefore
// reorder the load with stores, and the load may use the read-only cache.
template <class T>
__device__ inline T fetch(const T* from) {
  typedef Pack<1, T> P;
  P pack;
  pack.word[0] = __ldg((const typename P::Type*)from);
  return pack.lane[0];
}

// The unsigned type that holds the distance of two integers. Computations with 32 bits are faster.
template <int kBytes>
struct DistanceOf {
  typedef unsigned long long Type;
};
template <>
struct DistanceOf<4> {
  typedef unsigned Type;
};

// Returns a word of kLanes bits. Bit i says whether a + i * kStepA < b + i * kStepB. The steps
// differ by 1, so either the first or the last bits are 1. No sum may overflow. A and B are int or
// long long.
template <int kLanes, int kStepA, int kStepB, class A, class B>
__device__ inline unsigned lanesBelow(A a, B b) {
  constexpr unsigned kAll = (1u << kLanes) - 1u;
  typedef typename DistanceOf<sizeof(a + b)>::Type Distance;
  if constexpr (kStepA > kStepB) {  // the lanes i < b - a
    if (a >= b) return 0;
    const Distance count = (Distance)b - (Distance)a;
    return count >= kLanes ? kAll : (1u << (int)count) - 1u;
  } else {  // the lanes i > a - b
    if (a < b) return kAll;
    const Distance last = (Distance)a - (Distance)b;
    return last >= kLanes ? 0 : kAll & ~((2u << (int)last) - 1u);
  }
}

// Loads kLanes neighbours from any address. No thread of the kernel may write them.
template <int kLanes, class T>
__device__ inline void fetchVector(Lanes<kLanes, T>& to, const T* from) {
  typedef Pack<kLanes, T> P;
  P pack;
  if ((unsigned)(unsigned long long)from % P::kWordBytes == 0) {
#pragma unroll
    for (int w = 0; w < P::kWords; ++w) pack.word[w] = __ldg((const typename P::Type*)from + w);
    to.set(pack);
  } else if constexpr (kHasPairs<kLanes, T>) {
    loadPairs<kLanes, true>(pack, from);
    to.set(pack);
  } else {
#pragma unroll
    for (int i = 0; i < kLanes; ++i) to.set(i, fetch(from + i));
  }
}

// Loads the elements `first`, `first` + 1, ... of a line of `extent` elements into the lanes of
// `to` whose bits in `wanted` are 1. Elements outside of the line have the value `outside`. No
// thread of the kernel may write the line.
template <int kLanes, class T, class Position, class Index>
__device__ inline void loadWindow(Lanes<kLanes, T>& to, const T* line, Position first, Index extent,
                                  T outside, unsigned wanted) {
  if (wanted == 0) return;  // for example, all lanes are in another part of a cat
  const T* const from = line + first;
  // The number of indices at which a complete vector may begin.
  const Index begins = extent < kLanes ? 0 : extent - (kLanes - 1);
  if (wanted == (1u << kLanes) - 1u && inside(first, begins)) return fetchVector(to, from);
  const unsigned held =
      lanesBelow<kLanes, 1, 0>(first, extent) & ~lanesBelow<kLanes, 1, 0>(first, 0);
#pragma unroll
  for (int i = 0; i < kLanes; ++i) {
    if (wanted >> i & 1u) to.set(i, held >> i & 1u ? fetch(from + i) : outside);
  }
}

// --- squares -------------------------------------------------------------------------------------
// A block of threads exchanges a square of kEdge x kEdge elements through shared memory, one word
// per element. kEdge is 32 or 64. The block writes vectors along one axis and reads vectors along
// the other axis. Vector `number` of the square begins at element alongOf() of its axis, and at
// element acrossOf() of the other axis. A warp has 32 / kLanes neighbouring vectors in each
// of kLanes lines. With lines of kEdge + 1 words, no two threads of a warp access the same bank.
template <int kLanes, int kEdge>
__device__ inline int alongOf(int number) {
  return ((number / 32 % (kEdge / 32)) * (32 / kLanes) + number % (32 / kLanes)) * kLanes;
}
template <int kLanes, int kEdge>
__device__ inline int acrossOf(int number) {
  return number / kEdge * kLanes + number % 32 / (32 / kLanes);
}

// The square that a block computes: its column and row, counted in squares. Blocks are numbered
// along the rows of a band of kBand columns, then along the bands. Squares that are neighbours
// along either axis therefore run at nearly the same time. If the lines of a tensor begin at
// unaligned addresses, these squares share sectors of memory, which then are in the cache.
template <class Index>
struct SquareIndex {
  static constexpr Index kBand = 8;
  Index column, row;

  __device__ SquareIndex(Index block, Index columns, Index rows) {
    const Index inside = block % (columns * rows);
    const Index band = inside / (kBand * rows);
    const Index in_band = inside - band * (kBand * rows);
    const Index width = smaller<Index>(kBand, columns - band * kBand);
    row = in_band / width;
    column = band * kBand + in_band - row * width;
  }
};

template <int kBytes>  // the word that stands for an element in shared memory
struct WordFor {
  typedef unsigned Type;
};
template <>
struct WordFor<8> {
  typedef unsigned long long Type;
};
template <class T>
struct Exchange {
  typedef typename WordFor<sizeof(T)>::Type Word;
  union Bits {
    Word word;
    T value;
    __device__ Bits() : word(0) {}
  };
  __device__ static Word word(T x) {
    Bits bits;
    bits.value = x;
    return bits.word;
  }
  __device__ static T value(Word word) {
    Bits bits;
    bits.word = word;
    return bits.value;
  }
  __device__ static T stored(Word word) { return value(word); }  // as stored in a tensor
};
template <>
struct Exchange<BFloat16> {
  typedef unsigned Word;
  __device__ static unsigned word(UpperHalf x) { return x.bits; }
  __device__ static unsigned word(BFloat16 x) { return (unsigned)x.bits << 16; }
  __device__ static UpperHalf value(unsigned word) { return {word}; }
  __device__ static BFloat16 stored(unsigned word) { return {(unsigned short)(word >> 16)}; }
};

}  // namespace hd
