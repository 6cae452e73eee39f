#include "comm/nccl/shared_arena.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "comm/nccl/nccl_call.h"
#include "comm/nccl/stream_barrier.h"
#include "comm/process_info.h"
#include "ir/error.h"

namespace heddle::comm::nccl {
namespace {

constexpr size_t kAlign = 256;

// What a rank says of its block, with hostKey() behind it.
struct Offer {
  int64_t pid;
  int device;
  bool has_handle;  // not where the system keeps processes' memory apart
  cudaIpcMemHandle_t handle;
  const std::shared_ptr<DeviceBlock>* block;  // for threads of the same process
};

// NCCL's own switch for machines whose GPUs only seem to reach each other.
bool isSwitchedOff() {
  const char* given = std::getenv("NCCL_P2P_DISABLE");
  return given != nullptr && std::atoi(given) != 0;
}

void enableAccess(int device, int peer) {
  if (device == peer) return;
  int reaches = 0;
  checkCuda("cudaDeviceCanAccessPeer", cudaDeviceCanAccessPeer(&reaches, device, peer));
  HEDDLE_USER_CHECK(reaches != 0, "GPU {} does not reach the memory of GPU {}", device, peer);
  const cudaError_t status = cudaDeviceEnablePeerAccess(peer, 0);
  if (status == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();  // or the next launch would find it
    return;
  }
  checkCuda("cudaDeviceEnablePeerAccess", status);
}

}  // namespace

DeviceBlock::DeviceBlock(int device, size_t bytes) : device_(device) {
  checkCuda("cudaSetDevice", cudaSetDevice(device));
  checkCuda("cudaMalloc", cudaMalloc(&data_, bytes));
  cudaError_t status = cudaMemset(data_, 0, bytes);
  if (status == cudaSuccess) status = cudaStreamSynchronize(cudaStreamLegacy);
  if (status == cudaSuccess) return;
  cudaFree(data_);
  checkCuda("cudaMemset", status);
}

// Perhaps on the thread of a peer.
DeviceBlock::~DeviceBlock() {
  int current = device_;
  cudaGetDevice(&current);
  cudaSetDevice(device_);
  cudaFree(data_);
  cudaSetDevice(current);
}

SharedArena::SharedArena(int device, int size)
    : device_(device),
      size_(size),
      part_bytes_(kPieceBytes / static_cast<size_t>(size) / kAlign * kAlign) {
  std::string why;
  HEDDLE_USER_CHECK(StreamBarrier::isAvailable(why), "{}", why);
  HEDDLE_USER_CHECK(!isSwitchedOff(), "NCCL_P2P_DISABLE is set");
  const size_t parts = static_cast<size_t>(2 * size + 2);
  block_ = std::make_shared<DeviceBlock>(
      device, parts * part_bytes_ + static_cast<size_t>(size) * sizeof(uint32_t));
  Offer mine = {};
  mine.pid = getpid();
  mine.device = device;
  mine.block = &block_;
  mine.has_handle = cudaIpcGetMemHandle(&mine.handle, block_->data()) == cudaSuccess;
  if (!mine.has_handle) cudaGetLastError();
  offer_.assign(reinterpret_cast<const char*>(&mine), sizeof mine);
  offer_ += hostKey();
}

SharedArena::~SharedArena() {
  cudaSetDevice(device_);
  for (void* peer : opened_) cudaIpcCloseMemHandle(peer);
}

std::string SharedArena::reach(const std::vector<std::string>& offers, int rank) {
  try {
    checkCuda("cudaSetDevice", cudaSetDevice(device_));
    for (int peer = 0; peer < size_; ++peer) {
      const std::string& text = offers.at(static_cast<size_t>(peer));
      if (peer == rank) {
        bases_.push_back(block_->data());
        continue;
      }
      HEDDLE_USER_CHECK(text.size() > sizeof(Offer), "rank {} of the team has no memory to share",
                        peer);
      HEDDLE_USER_CHECK(text.substr(sizeof(Offer)) == hostKey(),
                        "rank {} of the team is on another host", peer);
      Offer theirs;
      std::memcpy(&theirs, text.data(), sizeof theirs);
      if (theirs.pid == getpid()) {
        enableAccess(device_, theirs.device);
        shared_.push_back(*theirs.block);
        bases_.push_back(shared_.back()->data());
        continue;
      }
      HEDDLE_USER_CHECK(theirs.has_handle, "the memory of rank {} of the team cannot be opened",
                        peer);
      void* opened = nullptr;
      checkCuda("cudaIpcOpenMemHandle",
                cudaIpcOpenMemHandle(&opened, theirs.handle, cudaIpcMemLazyEnablePeerAccess));
      opened_.push_back(opened);
      bases_.push_back(static_cast<std::byte*>(opened));
    }
  } catch (const UserError& error) {
    cudaGetLastError();
    return error.what();
  }
  return {};
}

std::byte* SharedArena::in(int rank, int turn, int part) const {
  return base(rank) + static_cast<size_t>(turn * size_ + part) * part_bytes_;
}

std::byte* SharedArena::out(int rank, int turn) const {
  return base(rank) + static_cast<size_t>(2 * size_ + turn) * part_bytes_;
}

uint32_t* SharedArena::flag(int rank, int from) const {
  std::byte* flags = base(rank) + static_cast<size_t>(2 * size_ + 2) * part_bytes_;
  return reinterpret_cast<uint32_t*>(flags) + from;
}

void SharedArena::leave() {
  shared_.push_back(std::move(block_));
  static_cast<void>(new auto(std::move(shared_)));
  opened_.clear();
}

}  // namespace heddle::comm::nccl
