// Vectors of elements in memory, in registers and in shared memory. A kernel source contains this
// text after cuda_runtime.h.

namespace hd {

template <int kBytes>
struct Word;
template <>
struct Word<1> {
  typedef unsigned char Type;
};
template <>
struct Word<2> {
  typedef unsigned short Type;
};
template <>
struct Word<4> {
  typedef unsigned Type;
};
template <>
struct Word<8> {
  typedef uint2 Type;
};
template <>
struct Word<16> {
  typedef uint4 Type;
};

// Holds kLanes elements as words of up to 16 bytes.
template <int kLanes, class T>
union Pack {
  static constexpr int kBytes = kLanes * sizeof(T);
  static constexpr int kWordBytes = kBytes < 16 ? kBytes : 16;
  static constexpr int kWords = kBytes / kWordBytes;
  typedef typename Word<kWordBytes>::Type Type;
  Type word[kWords];
  T lane[kLanes];
  unsigned pair[kBytes < 4 ? 1 : kBytes / 4];  // for types of two bytes
  __device__ Pack() {}
};

// The elements of a vector, each in its own register.
template <int kLanes, class T>
struct SingleLanes {
  T lane[kLanes];
  __device__ T operator[](int i) const { return lane[i]; }
  __device__ void set(int i, T x) { lane[i] = x; }
  __device__ void set(const Pack<kLanes, T>& from) {
#pragma unroll
    for (int i = 0; i < kLanes; ++i) lane[i] = from.lane[i];
  }
};
// The elements of a vector in registers. Two 16-bit floats share a register, and one instruction
// yields the float of either of them.
template <int kLanes, class T>
struct Lanes : SingleLanes<kLanes, T> {};
// The bits of a bf16 in the upper half, and 0 in the lower half.
struct UpperHalf {
  unsigned bits;
};
__device__ inline float get(UpperHalf x) { return __uint_as_float(x.bits); }
template <class T>
struct PairHalf;  // value(): one of the two elements of a pair, in the form that get() accepts
template <>
struct PairHalf<BFloat16> {
  typedef UpperHalf Type;
  __device__ static UpperHalf value(unsigned pair, bool upper) {
    return {upper ? pair & 0xffff0000u : pair << 16};
  }
};
template <>
struct PairHalf<Half> {
  typedef Half Type;
  __device__ static Half value(unsigned pair, bool upper) {
    return {(unsigned short)(upper ? pair >> 16 : pair)};
  }
};
template <int kPairs, class T>
struct Pairs {
  unsigned pair[kPairs];
  __device__ typename PairHalf<T>::Type operator[](int i) const {
    return PairHalf<T>::value(pair[i / 2], i % 2 != 0);
  }
  __device__ void set(int i, T x) {
    unsigned& to = pair[i / 2];
    to = i % 2 == 0 ? (to & 0xffff0000u) | x.bits : (to & 0xffffu) | (unsigned)x.bits << 16;
  }
  __device__ void set(const Pack<2 * kPairs, T>& from) {
#pragma unroll
    for (int i = 0; i < kPairs; ++i) pair[i] = from.pair[i];
  }
};
template <>
struct Lanes<2, BFloat16> : Pairs<1, BFloat16> {};
template <>
struct Lanes<4, BFloat16> : Pairs<2, BFloat16> {};
template <>
struct Lanes<8, BFloat16> : Pairs<4, BFloat16> {};
template <>
struct Lanes<2, Half> : Pairs<1, Half> {};
template <>
struct Lanes<4, Half> : Pairs<2, Half> {};
template <>
struct Lanes<8, Half> : Pairs<4, Half> {};

// The elements of a vector in shared memory. The alignment permits accesses of up to 16 bytes.
template <int kLanes, class T>
struct alignas(kLanes * sizeof(T)) HeldLanes {
  Lanes<kLanes, T> lanes;
};

}  // namespace hd
