#include "comm/nccl/device_block.h"

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>

#include "comm/nccl/nccl_call.h"
#include "ir/base/check.h"

namespace heddle::comm::nccl {
namespace {

struct Known {
  std::mutex mutex;
  uint64_t next = 1;
  std::map<uint64_t, std::weak_ptr<DeviceBlock>> blocks;
};

// Never destroyed, because blocks may be freed at the end of the process.
Known& known() {
  static auto* const all = new Known;
  return *all;
}

}  // namespace

std::shared_ptr<DeviceBlock> DeviceBlock::make(int device, size_t bytes, size_t zeros) {
  std::shared_ptr<DeviceBlock> block(new DeviceBlock(device, bytes, zeros));
  Known& all = known();
  std::lock_guard lock(all.mutex);
  block->number_ = all.next++;
  all.blocks.emplace(block->number_, block);
  return block;
}

std::shared_ptr<DeviceBlock> DeviceBlock::find(uint64_t number) {
  Known& all = known();
  std::lock_guard lock(all.mutex);
  const auto found = all.blocks.find(number);
  return found == all.blocks.end() ? nullptr : found->second.lock();
}

DeviceBlock::DeviceBlock(int device, size_t bytes, size_t zeros) : device_(device) {
  HEDDLE_CUDA(cudaSetDevice, device);
  HEDDLE_CUDA(cudaMalloc, &data_, bytes);
  cudaError_t status = cudaMemset(data() + bytes - zeros, 0, zeros);
  if (status == cudaSuccess) status = cudaStreamSynchronize(cudaStreamLegacy);
  if (status == cudaSuccess) return;
  cudaFree(data_);
  checkCuda(status, "cudaMemset");
}

// This destructor may run on the thread of another rank, whose current device must not change.
DeviceBlock::~DeviceBlock() {
  {
    Known& all = known();
    std::lock_guard lock(all.mutex);
    all.blocks.erase(number_);
  }
  int current = device_;
  cudaGetDevice(&current);
  cudaSetDevice(device_);
  cudaFree(data_);
  cudaSetDevice(current);
}

}  // namespace heddle::comm::nccl
