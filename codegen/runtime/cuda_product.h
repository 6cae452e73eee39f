// CUDA kernels for two tasks. Some compute matrix products that cuBLASLt does not support. The
// others apply bias and activation after cuBLASLt has computed a matrix product.
// host/device/fallback_matmul.h chooses the kernel. In a kernel source, this text follows
// cuda_elements.h. Operands may have any strides. Each element of the result is a sum of products,
// which are added in order. The bits of the result therefore do not depend on the grid.

namespace hdp {

using hdl::I64;
using hdl::U64;

// The host fills this struct. The struct has the same members as ProductArgs in
// host/device/fallback_matmul.h, in the same order. That header documents the members.
struct Args {
  const void* a;
  const void* b;
  const void* bias;
  void* c;
  I64 m;
  I64 n;
  I64 k;
  I64 batches;
  I64 axes;
  I64 sizes[8];  // sizes of the batch axes, outermost first
  I64 strides[3][8];
  I64 row_strides[3];
  I64 column_strides[3];
  I64 bias_stride;
  I64 types[3];  // types of a, b and c; the bias has the type of c
  I64 activation;
};

constexpr int kThreads = 256;
constexpr int kTile = 64;            // number of rows and of columns of c that a block computes
constexpr int kTerms = 16;           // products that one step adds to each sum
constexpr int kSide = 16;            // number of threads along an edge of the tile
constexpr int kOwn = kTile / kSide;  // a thread computes kOwn x kOwn elements

__device__ inline double tangent(double x) { return ::tanh(x); }
__device__ inline float tangent(float x) { return ::tanhf(x); }

// Applies an activation. The numbers are the values of Activation (host/device/device.h). If x is
// NaN, the result is NaN.
template <class V>
__device__ inline V activated(V x, I64 activation) {
  if (activation == 1) return x < V(0) ? V(0) : x;
  if (activation == 2) {  // gelu, tanh approximation: Hendrycks and Gimpel 2016
    const V inner = V(0.7978845608028654) * (x + V(0.044715) * x * x * x);
    return V(0.5) * x * (V(1) + tangent(inner));
  }
  return x;
}
__device__ inline U64 activated(U64 x, I64 activation) {
  return activation == 1 && (I64)x < 0 ? 0 : x;
}

// Wraps an integer to `type`, the type of c, and extends the wrapped value to 64 bits. Returns
// floats unchanged. The activation must be applied to the wrapped value.
template <class V>
__device__ inline V wrapped(I64, V x) {
  return x;
}
__device__ inline U64 wrapped(I64 type, U64 x) {
  if (type == hdl::kI32) return (U64)(I64)(int)(hdl::U32)x;
  if (type == hdl::kI8) return (U64)(I64)(signed char)(unsigned char)x;
  if (type == hdl::kU8) return (U64)(unsigned char)x;
  return x;
}

__device__ inline I64 sizeOfStride(I64 stride) { return stride < 0 ? -stride : stride; }

// The offsets of one matrix of a batch in a, b and c, in elements.
struct Offsets {
  I64 at[3];
};
__device__ inline Offsets offsetsOf(const Args& args, I64 batch) {
  Offsets offsets = {{0, 0, 0}};
  for (int axis = (int)args.axes - 1; axis >= 0; --axis) {
    const I64 next = batch / args.sizes[axis];
    const I64 index = batch - next * args.sizes[axis];
    for (int k = 0; k < 3; ++k) offsets.at[k] += index * args.strides[k][axis];
    batch = next;
  }
  return offsets;
}

// Loads a tile of `a` (operand 0) or `b` (operand 1) to `tile`. The tile of `a` has kTile rows,
// starting at `first`, and kTerms columns, starting at `base`. The tile of `b` has kTile columns,
// starting at `first`, and kTerms rows, starting at `base`. Elements after the end of the matrix
// are 0. Neighbouring threads read along the axis with the smaller stride.
template <class V>
__device__ inline void loadTile(const Args& args, int operand, I64 offset, I64 first, I64 base,
                                V (*tile)[kTile]) {
  const I64 lines = operand == 0 ? args.m : args.n;
  const I64 line_stride = operand == 0 ? args.row_strides[0] : args.column_strides[1];
  const I64 term_stride = operand == 0 ? args.column_strides[0] : args.row_strides[1];
  const bool by_term = sizeOfStride(term_stride) < sizeOfStride(line_stride);
  const void* data = operand == 0 ? args.a : args.b;
  for (int i = (int)threadIdx.x; i < kTile * kTerms; i += kThreads) {
    const int term = by_term ? i % kTerms : i / kTile;
    const int line = by_term ? i / kTerms : i % kTile;
    V value = V(0);
    if (first + line < lines && base + term < args.k) {
      value = hdl::loadAs(V(), args.types[operand], data,
                          offset + (first + line) * line_stride + (base + term) * term_stride);
    }
    tile[term][line] = value;
  }
}

// Adds the bias, applies the activation and stores the elements of this thread.
template <class V>
__device__ void storeTile(const Args& args, I64 offset, I64 first_row, I64 first_column,
                          V (*sums)[kOwn]) {
  const int x = (int)threadIdx.x % kSide;
  const int y = (int)threadIdx.x / kSide;
  for (int j = 0; j < kOwn; ++j) {
    const I64 column = first_column + x + j * kSide;
    if (column >= args.n) continue;
    V added = V(0);
    if (args.bias != 0)
      added = hdl::loadAs(V(), args.types[2], args.bias, column * args.bias_stride);
    for (int i = 0; i < kOwn; ++i) {
      const I64 row = first_row + y + i * kSide;
      if (row >= args.m) continue;
      const V sum = args.bias != 0 ? sums[i][j] + added : sums[i][j];
      hdl::storeAs(args.types[2], args.c,
                   offset + row * args.row_strides[2] + column * args.column_strides[2],
                   activated(wrapped(args.types[2], sum), args.activation));
    }
  }
}

// Computes a matrix product. A block computes tiles of c one after the other. Both barriers are
// necessary: all threads read the tiles that other threads load.
template <class V>
__device__ void multiply(const Args& args) {
  __shared__ V left[kTerms][kTile];
  __shared__ V right[kTerms][kTile];
  const int x = (int)threadIdx.x % kSide;
  const int y = (int)threadIdx.x / kSide;
  const I64 columns = (args.n + kTile - 1) / kTile;
  const I64 tiles = (args.m + kTile - 1) / kTile * columns;
  for (I64 item = blockIdx.x; item < tiles * args.batches; item += gridDim.x) {
    const Offsets offsets = offsetsOf(args, item / tiles);
    const I64 first_row = item % tiles / columns * kTile;
    const I64 first_column = item % tiles % columns * kTile;
    V sums[kOwn][kOwn];
    for (int i = 0; i < kOwn; ++i) {
      for (int j = 0; j < kOwn; ++j) sums[i][j] = V(0);
    }
    for (I64 base = 0; base < args.k; base += kTerms) {
      loadTile(args, 0, offsets.at[0], first_row, base, left);
      loadTile(args, 1, offsets.at[1], first_column, base, right);
      __syncthreads();
      for (int term = 0; term < kTerms; ++term) {
        for (int i = 0; i < kOwn; ++i) {
          const V factor = left[term][y + i * kSide];
          for (int j = 0; j < kOwn; ++j) sums[i][j] += factor * right[term][x + j * kSide];
        }
      }
      __syncthreads();
    }
    storeTile(args, offsets.at[2], first_row, first_column, sums);
  }
}

// Applies bias and activation in place to the matrix product in c.
template <class V>
__device__ void finish(const Args& args) {
  const I64 count = args.batches * args.m * args.n;
  const bool by_column = sizeOfStride(args.column_strides[2]) <= sizeOfStride(args.row_strides[2]);
  const I64 inner = by_column ? args.n : args.m;
  const I64 step = (I64)gridDim.x * blockDim.x;
  for (I64 item = (I64)blockIdx.x * blockDim.x + threadIdx.x; item < count; item += step) {
    const I64 in_matrix = item % (args.m * args.n);
    const I64 row = by_column ? in_matrix / inner : in_matrix % inner;
    const I64 column = by_column ? in_matrix % inner : in_matrix / inner;
    const I64 at = offsetsOf(args, item / (args.m * args.n)).at[2] + row * args.row_strides[2] +
                   column * args.column_strides[2];
    V value = hdl::loadAs(V(), args.types[2], args.c, at);
    if (args.bias != 0)
      value += hdl::loadAs(V(), args.types[2], args.bias, column * args.bias_stride);
    hdl::storeAs(args.types[2], args.c, at, activated(value, args.activation));
  }
}

}  // namespace hdp

#define HDP_KERNEL(name) extern "C" __global__ void name(const __grid_constant__ hdp::Args args)

HDP_KERNEL(hdpIntegers) { hdp::multiply<hdp::U64>(args); }
HDP_KERNEL(hdpSingles) { hdp::multiply<float>(args); }
HDP_KERNEL(hdpDoubles) { hdp::multiply<double>(args); }
HDP_KERNEL(hdpFinishSingles) { hdp::finish<float>(args); }
HDP_KERNEL(hdpFinishDoubles) { hdp::finish<double>(args); }
