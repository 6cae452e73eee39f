#include "host/device/cuda/kernel/reduce_kernel.h"

#include <algorithm>

#include "host/device/cuda/kernel/cuda_check.h"
#include "host/device/cuda/kernel/lazy_kernel.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

// The kernel identifies dtypes and ops by the numbers of DType and ReduceOp; static_asserts below
// check these numbers. No op adds a product of elements to a sum. The compiler therefore cannot use
// fused multiply-adds, which would change the rounding.
constexpr const char* kReduceSource = R"cuda(
struct HeddleReduceArgs {
  void* dst;
  const void* srcs[64];
  long long count;
  int ranks;
  int dtype;
  int op;
};

struct HeddleReduceBool {
  typedef unsigned char Stored;
  typedef unsigned Value;
  static __device__ Value load(Stored x) { return x != 0; }
  static __device__ Stored store(Value x) { return (Stored)x; }
  static __device__ Value sum(Value a, Value b) { return a | b; }
  static __device__ Value product(Value a, Value b) { return a & b; }
  static __device__ Value average(Value a, int) { return a; }
};
template <class T>
struct HeddleReduceInt {
  typedef T Stored;
  typedef long long Value;
  static __device__ Value load(Stored x) { return x; }
  static __device__ Stored store(Value x) { return (Stored)x; }
  static __device__ Value sum(Value a, Value b) {
    return (long long)((unsigned long long)a + (unsigned long long)b);
  }
  static __device__ Value product(Value a, Value b) {
    return (long long)((unsigned long long)a * (unsigned long long)b);
  }
  static __device__ Value average(Value a, int) { return a; }
};
template <class T>
struct HeddleReduceFloat {
  typedef T Stored;
  typedef T Value;
  static __device__ Value load(Stored x) { return x; }
  static __device__ Stored store(Value x) { return x; }
  static __device__ Value sum(Value a, Value b) { return a + b; }
  static __device__ Value product(Value a, Value b) { return a * b; }
  static __device__ Value average(Value a, int ranks) { return a / (Value)ranks; }
};
struct HeddleReduceF16 : HeddleReduceFloat<float> {
  typedef unsigned short Stored;
  static __device__ float load(Stored x) { return hd::f16Value(x); }
  static __device__ Stored store(float x) { return hd::f16Bits(x); }
};
struct HeddleReduceBf16 : HeddleReduceFloat<float> {
  typedef unsigned short Stored;
  static __device__ float load(Stored x) { return __uint_as_float((unsigned)x << 16); }
  static __device__ Stored store(float x) {
    unsigned bits = __float_as_uint(x);
    if (x != x) return (Stored)((bits >> 16) | 0x40u);
    return (Stored)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  }
};

template <class E>
__device__ typename E::Value heddleCombine(int op, typename E::Value a, typename E::Value b) {
  switch (op) {
    case 1: return E::product(a, b);
    case 2: return b < a || b != b ? b : a;
    case 3: return b > a || b != b ? b : a;
    default: return E::sum(a, b);
  }
}

// Reduces 16 bytes of each buffer at a time. Returns the number of elements that all threads of the
// grid together reduce in this way. Returns 0 if a buffer is not aligned to 16 bytes.
template <class E>
__device__ long long heddleReduceWide(const HeddleReduceArgs& args) {
  constexpr int kWide = 16 / (int)sizeof(typename E::Stored);
  union Wide {
    uint4 bits;
    typename E::Stored each[kWide];
  };
  unsigned long long addresses = (unsigned long long)args.dst;
  for (int r = 0; r < args.ranks; ++r) addresses |= (unsigned long long)args.srcs[r];
  if (addresses % 16 != 0) return 0;
  long long count = args.count / kWide;
  long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    Wide wide;
    typename E::Value values[kWide];
    wide.bits = ((const uint4*)args.srcs[0])[i];
    for (int k = 0; k < kWide; ++k) values[k] = E::load(wide.each[k]);
    for (int r = 1; r < args.ranks; ++r) {
      wide.bits = ((const uint4*)args.srcs[r])[i];
      for (int k = 0; k < kWide; ++k) {
        values[k] = heddleCombine<E>(args.op, values[k], E::load(wide.each[k]));
      }
    }
    for (int k = 0; k < kWide; ++k) {
      if (args.op == 4) values[k] = E::average(values[k], args.ranks);
      wide.each[k] = E::store(values[k]);
    }
    ((uint4*)args.dst)[i] = wide.bits;
  }
  return count * kWide;
}

template <class E>
__device__ void heddleReduceElements(const HeddleReduceArgs& args) {
  long long step = (long long)gridDim.x * blockDim.x;
  long long first = heddleReduceWide<E>(args) + (long long)blockIdx.x * blockDim.x + threadIdx.x;
  for (long long i = first; i < args.count; i += step) {
    typename E::Value value = E::load(((const typename E::Stored*)args.srcs[0])[i]);
    for (int r = 1; r < args.ranks; ++r) {
      value = heddleCombine<E>(args.op, value, E::load(((const typename E::Stored*)args.srcs[r])[i]));
    }
    if (args.op == 4) value = E::average(value, args.ranks);
    ((typename E::Stored*)args.dst)[i] = E::store(value);
  }
}

extern "C" __global__ void heddleReduce(const __grid_constant__ HeddleReduceArgs args) {
  switch (args.dtype) {
    case 0: heddleReduceElements<HeddleReduceBool>(args); break;
    case 1: heddleReduceElements<HeddleReduceInt<unsigned char> >(args); break;
    case 2: heddleReduceElements<HeddleReduceInt<signed char> >(args); break;
    case 3: heddleReduceElements<HeddleReduceInt<int> >(args); break;
    case 4: heddleReduceElements<HeddleReduceInt<long long> >(args); break;
    case 7: heddleReduceElements<HeddleReduceF16>(args); break;
    case 8: heddleReduceElements<HeddleReduceBf16>(args); break;
    case 9: heddleReduceElements<HeddleReduceFloat<float> >(args); break;
    case 10: heddleReduceElements<HeddleReduceFloat<double> >(args); break;
  }
}
)cuda";

static_assert(static_cast<int>(DType::Bool) == 0 && static_cast<int>(DType::U8) == 1 &&
              static_cast<int>(DType::I8) == 2 && static_cast<int>(DType::I32) == 3 &&
              static_cast<int>(DType::I64) == 4 && static_cast<int>(DType::F16) == 7 &&
              static_cast<int>(DType::BF16) == 8 && static_cast<int>(DType::F32) == 9 &&
              static_cast<int>(DType::F64) == 10);
static_assert(static_cast<int>(ReduceOp::Sum) == 0 && static_cast<int>(ReduceOp::Prod) == 1 &&
              static_cast<int>(ReduceOp::Min) == 2 && static_cast<int>(ReduceOp::Max) == 3 &&
              static_cast<int>(ReduceOp::Avg) == 4);

struct ReduceArgs {
  void* dst;
  const void* srcs[kMostReduced];
  int64_t count;
  int32_t ranks;
  int32_t dtype;
  int32_t op;
};

struct Reducer {
  int device;
  std::shared_ptr<const codegen::KernelCompiler> compiler;
  LazyKernel kernel{kReduceSource, "heddleReduce"};

  void run(void* dst, std::span<const void* const> srcs, int64_t count, DType dtype, ReduceOp op,
           void* stream) {
    HEDDLE_USER_CHECK(!srcs.empty() && srcs.size() <= kMostReduced,
                      "a reduction on one GPU takes 1 to {} buffers, found {}", kMostReduced,
                      srcs.size());
    HEDDLE_USER_CHECK(op != ReduceOp::Avg || isFloat(dtype),
                      "average needs a float type, found {}; use sum instead", name(dtype));
    HEDDLE_USER_CHECK(!isFloat8(dtype), "{} cannot be reduced: f8 types can only be moved",
                      name(dtype));
    if (count <= 0) return;
    DeviceGuard guard(device);
    ReduceArgs args{};
    args.dst = dst;
    std::copy(srcs.begin(), srcs.end(), args.srcs);
    args.count = count;
    args.ranks = static_cast<int32_t>(srcs.size());
    args.dtype = static_cast<int32_t>(dtype);
    args.op = static_cast<int32_t>(op);
    // This number of blocks fills any GPU. If there are more elements than threads, each thread
    // reduces several elements.
    constexpr int64_t kMostBlocks = 2048;
    CudaKernel::Shape shape;
    shape.block = 256;
    shape.grid = std::min(kMostBlocks, (count + shape.block - 1) / shape.block);
    kernel.get(*compiler).launch(shape, &args, static_cast<cudaStream_t>(stream));
  }
};

}  // namespace

comm::DeviceReduce makeDeviceReduce(int device,
                                    std::shared_ptr<const codegen::KernelCompiler> compiler) {
  auto reducer = std::make_shared<Reducer>();
  reducer->device = device;
  reducer->compiler = std::move(compiler);
  return
      [reducer](void* dst, std::span<const void* const> srcs, int64_t count, DType dtype,
                ReduceOp op, void* stream) { reducer->run(dst, srcs, count, dtype, op, stream); };
}

}  // namespace heddle::host
