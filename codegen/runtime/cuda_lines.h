// The arguments of heddle's library kernels (cuda_library.h), and functions that these kernels
// share. A *line* consists of the elements along the axis on which a library function such as
// cumsum works, at one index along each other axis. In a kernel source, this text follows
// cuda_elements.h and precedes cuda_keys.h, cuda_sort.h, cuda_select.h and cuda_library.h.

namespace hdl {

// The arguments of a kernel (Args), which the host fills. Args has the same members as LibraryArgs
// in host/device/cuda_library_launches.h, in the same order. That header documents the members of
// Args and Lines.
struct Lines {
  I64 count;
  I64 axes;
  I64 sizes[8];  // outermost first
  I64 strides[4][8];
};
struct Args {
  void* out;
  const void* in[3];
  Lines lines;
  Lines lanes;
  I64 axis_strides[4];
  void* keys[2];
  U32* indices[2];
  U32* starts;
  I64* counts;
  void* totals;
  I64 n;
  I64 extent;
  I64 first_target;
  I64 first_line;
  I64 group;
  I64 chunk;
  I64 chunks;
  I64 keep;
  I64 from;
  I64 shift;
  I64 first_bit;
  I64 bits;
  I64 order;
  I64 in_type;
  I64 out_type;
  I64 index_type;
  I64 flip;
  I64 add;
  I64 by_index;
  I64 by_keys;
  I64 to_keys;
};

#ifdef __CUDACC__
#define HDL_UNROLL _Pragma("unroll")
#define HDL_ROLLED _Pragma("unroll 1")
#else
#define HDL_UNROLL
#define HDL_ROLLED
#endif

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

// --- positions -----------------------------------------------------------------------------------

// Returns the offset of the first element of line `line` of operand `operand`, in elements.
__device__ inline I64 offsetOf(const Lines& lines, int operand, I64 line) {
  I64 offset = 0;
  HDL_ROLLED  // divisions are long code, so the loop must not be unrolled
      for (int axis = (int)lines.axes - 1; axis >= 0; --axis) {
    I64 next = axis == 0 ? 0 : line / lines.sizes[axis];
    offset += (line - next * lines.sizes[axis]) * lines.strides[operand][axis];
    line = next;
  }
  return offset;
}

// Items of work are distributed to the threads of the grid: thread t computes items t, t + step,
// ...
__device__ inline I64 firstItem() { return (I64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline I64 itemStep() { return (I64)gridDim.x * blockDim.x; }

// Returns the sum of `own` over the threads of the block that have a lower number than this thread.
// Sets `total` to the sum of `own` over all threads of the block. The function contains one
// barrier. The caller must execute another barrier before the next call.
template <class V>
__device__ V sumBefore(V own, V* shared, V& total) {
  int lane = (int)threadIdx.x % 32;  // number of this thread in its warp
  int warp = (int)threadIdx.x / 32;
  V inclusive = own;
  for (int step = 1; step < 32; step *= 2) {
    V other = __shfl_up_sync(0xffffffffu, inclusive, step);
    if (lane >= step) inclusive += other;
  }
  if (lane == 31) shared[warp] = inclusive;
  V before = __shfl_up_sync(0xffffffffu, inclusive, 1);
  if (lane == 0) before = 0;
  __syncthreads();
  V earlier = 0;
  total = 0;
  for (int w = 0; w < kWarps; ++w) {
    if (w == warp) earlier = total;
    total += shared[w];
  }
  return earlier + before;
}

}  // namespace hdl
