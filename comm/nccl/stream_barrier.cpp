#include "comm/nccl/stream_barrier.h"

#include <algorithm>

#include "comm/cuda_call/driver_function.h"
#include "comm/nccl/nccl_call.h"
#include "ir/base/check.h"

namespace heddle::comm::nccl {
namespace {

using BatchMemOp = CUresult (*)(CUstream, unsigned, CUstreamBatchMemOpParams*, unsigned);

// Returns the driver function cuStreamBatchMemOp, or nullptr if the driver does not have it.
BatchMemOp batchMemOp() {
  static const auto found = driverFunction<BatchMemOp>("cuStreamBatchMemOp");
  return found;
}

// The largest number of operations that the driver accepts in one call.
constexpr size_t kMostAtOnce = 256;

CUstreamBatchMemOpParams storeTo(uint32_t* flag) {
  CUstreamBatchMemOpParams op = {};
  op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  op.writeValue.address = reinterpret_cast<CUdeviceptr>(flag);
  op.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;  // includes a system-wide fence
  return op;
}

CUstreamBatchMemOpParams waitFor(uint32_t* flag) {
  CUstreamBatchMemOpParams op = {};
  op.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  op.waitValue.address = reinterpret_cast<CUdeviceptr>(flag);
  op.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
  return op;
}

}  // namespace

bool StreamBarrier::isAvailable(std::string& why) {
  if (batchMemOp() != nullptr) return true;
  why = "the driver has no cuStreamBatchMemOp";
  return false;
}

StreamBarrier::StreamBarrier(std::span<uint32_t* const> theirs, std::span<uint32_t* const> mine)
    : stores_(theirs.size()) {
  for (uint32_t* flag : theirs) ops_.push_back(storeTo(flag));
  for (uint32_t* flag : mine) ops_.push_back(waitFor(flag));
}

void StreamBarrier::arriveAndWait(cudaStream_t stream, uint32_t value) {
  for (size_t i = 0; i < ops_.size(); ++i) {
    (i < stores_ ? ops_[i].writeValue.value : ops_[i].waitValue.value) = value;
  }
  issue(stream, ops_.size());
}

void StreamBarrier::arrive(cudaStream_t stream, uint32_t value) {
  for (size_t i = 0; i < stores_; ++i) ops_[i].writeValue.value = value;
  issue(stream, stores_);
}

void StreamBarrier::issue(cudaStream_t stream, size_t count) {
  for (size_t at = 0; at < count; at += kMostAtOnce) {
    const auto some = static_cast<unsigned>(std::min(kMostAtOnce, count - at));
    const CUresult status =
        batchMemOp()(reinterpret_cast<CUstream>(stream), some, ops_.data() + at, 0);
    HEDDLE_USER_CHECK(status == CUDA_SUCCESS, "cuStreamBatchMemOp failed: CUDA error {}",
                      static_cast<int>(status));
  }
}

}  // namespace heddle::comm::nccl
