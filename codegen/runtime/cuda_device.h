// The functions of generated CUDA kernels that need the device: PTX, threads and blocks, barriers,
// shuffles, and shared memory. This text is the first part of the source of each such kernel. Tests
// compile kernels for the host with another version of this header
// (tests/codegen/simt/simt_device.h).

namespace hd {

// --- conversions (to nearest even; a NaN becomes quiet) and arithmetic ---------------------------

// Rounds `x` to a bf16 value. Uses the instruction that converts two values, x and 0, because its
// throughput is higher than that of the instruction for one value. The upper half of the result has
// the bf16 bits of `x`, and the lower half is 0. The result therefore has the bits of the rounded
// float.
__device__ inline float roundBf16(float x) {
  unsigned bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(x), "f"(0.0f));
  return __uint_as_float(bits);
}

__device__ inline unsigned short f16Bits(float x) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
// Rounds two values and returns their bits, with the bits of `low` in the lower half.
__device__ inline unsigned bf16Pair(float low, float high) {
  unsigned bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}
__device__ inline unsigned f16Pair(float low, float high) {
  unsigned bits;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}
__device__ inline float f16Value(unsigned short bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}

// maxOrNan() returns the larger operand, and minOrNan() the smaller one. If an operand is NaN, the
// result is NaN.
__device__ inline float maxOrNan(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
__device__ inline float minOrNan(float a, float b) {
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
// Returns a * b + c with one rounding.
__device__ inline float multiplyAdd(float a, float b, float c) { return __fmaf_rn(a, b, c); }
// Returns the lower half of a * b, and stores the upper half in `high`.
__device__ inline unsigned product(unsigned a, unsigned b, unsigned& high) {
  unsigned low;
  asm("{ .reg .u64 p; mul.wide.u32 p, %2, %3; mov.b64 {%0, %1}, p; }"
      : "=r"(low), "=r"(high)
      : "r"(a), "r"(b));
  return low;
}
// Returns 2^x with a relative error of at most 2^-22. A result below 2^-126 becomes 0.
__device__ inline float nearPowerOfTwo(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// Returns 1 / x with a relative error of at most 2^-23, for normal x. A result below 2^-126 becomes
// 0.
__device__ inline float nearReciprocal(float x) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// Returns x / y with an error of at most two units in the last place.
__device__ inline float nearDivision(float x, float y) {
  float result;
  asm("div.full.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(y));
  return result;
}

// Return the sine and the cosine of large angles, of infinity and of NaN. These functions are not
// inline, because their many instructions rarely run.
__device__ __noinline__ inline float sinOfLarge(float x) { return ::sinf(x); }
__device__ __noinline__ inline float cosOfLarge(float x) { return ::cosf(x); }

// --- blocks and warps ----------------------------------------------------------------------------

__device__ inline int thread() { return (int)threadIdx.x; }
__device__ inline int threads() { return (int)blockDim.x; }
__device__ inline long long block() { return (long long)blockIdx.x; }
__device__ inline long long blocks() { return (long long)gridDim.x; }
__device__ inline int blockRow() { return (int)blockIdx.y; }
__device__ inline int blockRows() { return (int)gridDim.y; }
// Waits until all earlier work of the stream has completed, and its writes are visible. Each
// generated kernel calls this function before it accesses memory. The device may therefore start
// the kernel early (programmatic dependent launch, since compute capability 9.0). It places the
// blocks of the kernel when all blocks of the previous kernel have ended, before their writes are
// visible. Kernels do not use the instruction launch_dependents, which permits an even earlier
// start: on an H200, it took about 1 ns per block, so kernels with many short blocks took up
// to 1.16 times as long, and no kernel was more than 1 % faster.
__device__ inline void awaitEarlierWork() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// Makes all threads of a block wait for each other. Writes before the barrier are visible after it.
__device__ inline void barrier() { __syncthreads(); }

// Return the `x` that another thread of the warp passes. The number of that thread in the warp is
// the number of this thread xor `mask`. All 32 threads of the warp must call the function.
__device__ inline float fromPartner(float x, int mask) {
  return __shfl_xor_sync(0xffffffffu, x, mask);
}
__device__ inline double fromPartner(double x, int mask) {
  return __shfl_xor_sync(0xffffffffu, x, mask);
}
__device__ inline long long fromPartner(long long x, int mask) {
  return __shfl_xor_sync(0xffffffffu, x, mask);
}

// Returns x / y with an error of at most two units in the last place, for 2^-126 <= |y| <= 2^126.
__device__ inline float nearQuotient(float x, float y) { return __fdividef(x, y); }

// Load or store a word. If kStreams is true, the cache line of the word leaves the L2 cache before
// other lines.
template <bool kStreams, class Word>
__device__ inline Word loadWord(const Word* from) {
  if constexpr (kStreams) return __ldcs(from);
  return *from;
}
template <bool kStreams, class Word>
__device__ inline void storeWord(Word* to, Word word) {
  if constexpr (kStreams) {
    __stcs(to, word);
  } else {
    *to = word;
  }
}

// --- blocks that wait for each other -------------------------------------------------------------
// These functions access memory that is 0 when the launch begins: the workspace of a launch whose
// blocks share rows (codegen/tile/divided_rows.h), or the counters of a launch whose last blocks
// combine partial results (LaunchStage::kCounters in codegen/kernel.h).

// Returns the next ticket. No two calls return the same ticket.
__device__ inline unsigned takeTicket(unsigned* tickets) { return atomicAdd(tickets, 1u); }
// Counts one more arrival. Returns whether this is arrival number `wanted`. If it is, `arrivals`
// becomes 0 again, and the threads that arrived earlier have completed all memory accesses that
// they began before their arrivals.
__device__ inline bool arriveLast(unsigned* arrivals, unsigned wanted) {
  unsigned before;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(arrivals), "r"(wanted - 1)
               : "memory");
  return before + 1 == wanted;
}

// The 32-bit words of the state of an accumulator.
template <class State>
union Words {
  static constexpr int kCount = (int)(sizeof(State) + 3) / 4;
  State state;
  unsigned word[kCount];
  __device__ Words() {
    for (unsigned& each : word) each = 0;
  }
};
// Each word of a published state is stored together with a mark. A reader that finds all marks has
// the state, so it needs no fence.
constexpr unsigned long long kPublished = 1ull << 32;
template <class State>
__device__ inline void publish(unsigned long long* slot, const State& state) {
  Words<State> words;
  words.state = state;
#pragma unroll
  for (int i = 0; i < Words<State>::kCount; ++i) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;"
                 :
                 : "l"(slot + i), "l"(kPublished | words.word[i])
                 : "memory");
  }
}
// Waits until a state is published, and returns it in `state`.
template <class State>
__device__ inline void awaitState(const unsigned long long* slot, State& state) {
  Words<State> words;
  for (;;) {
    unsigned long long marks = kPublished;
#pragma unroll
    for (int i = 0; i < Words<State>::kCount; ++i) {
      unsigned long long word;
      asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(slot + i) : "memory");
      words.word[i] = (unsigned)word;
      marks &= word;
    }
    if (marks != 0) break;
    __nanosleep(32);
  }
  state = words.state;
}

// --- clusters ------------------------------------------------------------------------------------
// The blocks of a cluster run at the same time. Each can store in the shared memory of the others.

// Says that this block has started. A kernel with clusters calls this first.
__device__ inline void arriveInCluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}
// Waits until all blocks of the cluster have started. Call this exactly once, before the first
// sendToBlock().
__device__ inline void awaitCluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}
// Makes all threads of the cluster wait for each other. Writes before the barrier are visible after
// it.
__device__ inline void clusterBarrier() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}
// Stores `value` in element `at` of the array `to` of block number `rank` of the cluster. The
// block reads it after a clusterBarrier().
template <class Array, class T>
__device__ inline void sendToBlock(const Array& to, int at, const T& value, int rank) {
#if __CUDA_ARCH__ >= 900
  unsigned long long remote;
  asm("mapa.u64 %0, %1, %2;" : "=l"(remote) : "l"((unsigned long long)&to[at]), "r"(rank));
  *(T*)remote = value;
#endif
}

// --- shared memory -------------------------------------------------------------------------------
// Kernel text accesses shared memory only by SharedArray, so that tests can observe the accesses.

template <int kBytes>
struct SharedBytes {
  alignas(16) unsigned char bytes[kBytes];
};
// The dynamic shared memory of the launch.
extern __shared__ uint4 dynamicShared[];
template <class T>
struct SharedArray {
  T* first;
  // Refers to the dynamic shared memory from byte `offset` on.
  __device__ explicit SharedArray(int offset)
      : first((T*)((unsigned char*)dynamicShared + offset)) {}
  template <int kBytes>
  __device__ explicit SharedArray(SharedBytes<kBytes>& from) : first((T*)from.bytes) {}
  __device__ T& operator[](int i) const { return first[i]; }
};

// Copies an element from global memory to `to[at]`. The thread does not wait for the copy until it
// calls awaitCopies().
template <class T>
__device__ inline void copyLater(const SharedArray<T>& to, int at, const void* from) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16, "a size of cp.async");
  const unsigned address = (unsigned)__cvta_generic_to_shared(&to[at]);
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
               :
               : "r"(address), "l"(from), "n"((int)sizeof(T))
               : "memory");
}
// Waits for all copies that this thread has begun.
__device__ inline void awaitCopies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

}  // namespace hd
