// Runtime of generated CUDA kernels. It stands before every kernel text and includes nothing, so
// that NVRTC has little to read. Kernel text spells no intrinsic and no PTX itself.

namespace hd {

typedef unsigned char Bool;
struct alignas(2) BFloat16 {
  unsigned short bits;
};

template <class T>
__device__ inline T smaller(T a, T b) {
  return a < b ? a : b;
}

__device__ inline float infF32() { return __int_as_float(0x7f800000); }
__device__ inline double infF64() { return __longlong_as_double(0x7ff0000000000000ll); }
__device__ inline float nanF32() { return __int_as_float(0x7fc00000); }
__device__ inline double nanF64() { return __longlong_as_double(0x7ff8000000000000ll); }

// --- bf16: to nearest even; a NaN stays a quiet NaN ---------------------------------------------

// The packed conversion runs at a multiple of the rate of the single one, and with the value in
// the upper half its result is the float already.
__device__ inline float roundBf16(float x) {
  unsigned bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(x), "f"(0.0f));
  return __uint_as_float(bits);
}

__device__ inline bool get(Bool x) { return x != 0; }
__device__ inline long long get(long long x) { return x; }
__device__ inline float get(BFloat16 x) { return __uint_as_float((unsigned)x.bits << 16); }
__device__ inline float get(float x) { return x; }
__device__ inline double get(double x) { return x; }

template <class T, class V>
struct Put {
  __device__ static T from(V x) { return (T)x; }
};
template <>
struct Put<BFloat16, float> {
  // The value is rounded already.
  __device__ static BFloat16 from(float x) { return {(unsigned short)(__float_as_uint(x) >> 16)}; }
};
template <class T, class V>
__device__ inline T put(V x) {
  return Put<T, V>::from(x);
}

// --- memory: `count` of kLanes neighbours, in wide accesses when `whole` (all are aligned)
// --------

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

// kLanes elements as words of up to 16 bytes.
template <int kLanes, class T>
union Pack {
  static constexpr int kBytes = kLanes * sizeof(T);
  static constexpr int kWordBytes = kBytes < 16 ? kBytes : 16;
  static constexpr int kWords = kBytes / kWordBytes;
  typedef typename Word<kWordBytes>::Type Type;
  Type word[kWords];
  T lane[kLanes];
  __device__ Pack() {}
};

template <int kLanes, class T>
__device__ inline bool aligned(const T* pointer) {
  return (unsigned long long)pointer % Pack<kLanes, T>::kWordBytes == 0;
}

template <int kLanes, class T>
__device__ inline void load(T (&to)[kLanes], const T* from, bool whole, int count) {
  typedef Pack<kLanes, T> P;
  if (whole && count >= kLanes) {
    P pack;
#pragma unroll
    for (int w = 0; w < P::kWords; ++w) pack.word[w] = ((const typename P::Type*)from)[w];
#pragma unroll
    for (int i = 0; i < kLanes; ++i) to[i] = pack.lane[i];
  } else {
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      if (i < count) to[i] = from[i];
    }
  }
}

template <int kLanes, class T>
__device__ inline void store(T* to, const T (&from)[kLanes], bool whole, int count) {
  typedef Pack<kLanes, T> P;
  if (whole && count >= kLanes) {
    P pack;
#pragma unroll
    for (int i = 0; i < kLanes; ++i) pack.lane[i] = from[i];
#pragma unroll
    for (int w = 0; w < P::kWords; ++w) ((typename P::Type*)to)[w] = pack.word[w];
  } else {
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      if (i < count) to[i] = from[i];
    }
  }
}

template <int kLanes, class T, class Index>
__device__ inline void loadStrided(T (&to)[kLanes], const T* from, Index stride, int count) {
#pragma unroll
  for (int i = 0; i < kLanes; ++i) {
    if (i < count) to[i] = from[i * stride];
  }
}

template <int kLanes, class T, class Index>
__device__ inline void storeStrided(T* to, const T (&from)[kLanes], Index stride, int count) {
#pragma unroll
  for (int i = 0; i < kLanes; ++i) {
    if (i < count) to[i * stride] = from[i];
  }
}

// A read at a computed place. One unsigned comparison covers both ends of an axis.
__device__ inline bool inside(long long place, long long extent) {
  return (unsigned long long)place < (unsigned long long)extent;
}
// Memory that is read in this way is written by no thread of the kernel, so that the load may pass
// stores and may come from the read-only cache.
template <class T>
__device__ inline T fetch(const T* from) {
  typedef Pack<1, T> P;
  P pack;
  pack.word[0] = __ldg((const typename P::Type*)from);
  return pack.lane[0];
}

// --- blocks and warps ---------------------------------------------------------------------------

__device__ inline int thread() { return (int)threadIdx.x; }
__device__ inline int threads() { return (int)blockDim.x; }
__device__ inline long long block() { return (long long)blockIdx.x; }
__device__ inline long long blocks() { return (long long)gridDim.x; }
__device__ inline int blockRow() { return (int)blockIdx.y; }
__device__ inline void barrier() { __syncthreads(); }

// The value of the thread whose number in the warp differs by `mask`. All 32 take part.
__device__ inline float fromPartner(float x, int mask) {
  return __shfl_xor_sync(0xffffffffu, x, mask);
}
__device__ inline double fromPartner(double x, int mask) {
  return __shfl_xor_sync(0xffffffffu, x, mask);
}
__device__ inline long long fromPartner(long long x, int mask) {
  return __shfl_xor_sync(0xffffffffu, x, mask);
}

}  // namespace hd
