#include "host/device/cuda/kernel/strided_copy.h"

#include <algorithm>

#include "ir/base/check.h"
#include "ir/types/tensor.h"

namespace heddle::host {
namespace {

constexpr const char* kCopySource = R"cuda(
struct HeddleCopyArgs {
  void* dst;
  const void* src;
  long long sizes[8];
  long long dst_strides[8];
  long long src_strides[8];
  long long count;
  int axes;
  int element_bytes;
};

extern "C" __global__ void heddleStridedCopy(const __grid_constant__ HeddleCopyArgs args) {
  long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < args.count; i += step) {
    long long rest = i, to = 0, from = 0;
    for (int axis = args.axes - 1; axis >= 0; --axis) {
      long long index = rest % args.sizes[axis];
      rest /= args.sizes[axis];
      to += index * args.dst_strides[axis];
      from += index * args.src_strides[axis];
    }
    switch (args.element_bytes) {
      case 1: ((unsigned char*)args.dst)[to] = ((const unsigned char*)args.src)[from]; break;
      case 2: ((unsigned short*)args.dst)[to] = ((const unsigned short*)args.src)[from]; break;
      case 4: ((unsigned*)args.dst)[to] = ((const unsigned*)args.src)[from]; break;
      case 8:
        ((unsigned long long*)args.dst)[to] = ((const unsigned long long*)args.src)[from];
        break;
    }
  }
}
)cuda";

struct CopyArgs {
  void* dst;
  const void* src;
  int64_t sizes[StridedCopy::kMostAxes];
  int64_t dst_strides[StridedCopy::kMostAxes];
  int64_t src_strides[StridedCopy::kMostAxes];
  int64_t count;
  int32_t axes;
  int32_t element_bytes;
};

}  // namespace

StridedCopy::StridedCopy() : kernel_(kCopySource, "heddleStridedCopy") {}

void StridedCopy::run(const codegen::KernelCompiler& compiler, void* dst,
                      const std::vector<int64_t>& dst_strides, const void* src,
                      const std::vector<int64_t>& src_strides, const std::vector<int64_t>& sizes,
                      int64_t element_bytes, cudaStream_t stream) {
  HEDDLE_USER_CHECK(sizes.size() <= kMostAxes, "a strided copy of {} has more than {} axes",
                    str(sizes), kMostAxes);
  CopyArgs args{};
  args.dst = dst;
  args.src = src;
  args.count = 1;
  for (int64_t size : sizes) args.count *= size;
  if (args.count == 0) return;
  std::copy(sizes.begin(), sizes.end(), args.sizes);
  std::copy(dst_strides.begin(), dst_strides.end(), args.dst_strides);
  std::copy(src_strides.begin(), src_strides.end(), args.src_strides);
  args.axes = static_cast<int32_t>(sizes.size());
  args.element_bytes = static_cast<int32_t>(element_bytes);
  constexpr int64_t kMostBlocks = 4096;
  CudaKernel::Shape shape;
  shape.block = 256;
  shape.grid = std::min(kMostBlocks, (args.count + shape.block - 1) / shape.block);
  kernel_.get(compiler).launch(shape, &args, stream);
}

}  // namespace heddle::host
