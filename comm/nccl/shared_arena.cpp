#include "comm/nccl/shared_arena.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "comm/nccl/nccl_call.h"
#include "comm/nccl/stream_barrier.h"
#include "comm/process/process_info.h"
#include "ir/base/check.h"

namespace heddle::comm::nccl {
namespace {

constexpr size_t kAlign = 256;
constexpr int kUnknown = -1;
// How long close() waits for ranks of other processes.
constexpr auto kCloseLimit = std::chrono::milliseconds(500);
constexpr auto kClosePoll = std::chrono::milliseconds(1);

// The offer of a rank (SharedArena::offer()) consists of this struct and the machineKey() of the
// rank.
struct Offer {
  int64_t pid;
  int32_t device;
  int32_t index;
  int32_t block;          // number of the block in the CopyChannelTable
  int32_t has_handle;     // 0: the system does not allow access between processes
  uint64_t block_number;  // DeviceBlock::number(), for threads of the same process
  cudaIpcMemHandle_t handle;
};

// Keeps blocks that must outlive their SharedArena. `blocks`: blocks that other ranks may not have
// closed yet. `forever`: blocks that are never freed, because posted work may still use them. The
// object is never destroyed, because CUDA may already be shut down when the process ends.
struct Kept {
  struct Block {
    std::shared_ptr<DeviceBlock> block;
    std::shared_ptr<CopyChannelTable> table;
    int index;
    int number;
    int openers;
    bool isFree() const { return openers >= 0 && table->closedBy(index, number) >= openers; }
  };
  std::mutex mutex;
  std::vector<Block> blocks;
  std::vector<std::shared_ptr<DeviceBlock>> forever;
};
Kept& kept() {
  static auto* const all = new Kept;
  return *all;
}

void keep(Kept::Block block) {
  std::lock_guard lock(kept().mutex);
  kept().blocks.push_back(std::move(block));
}

// Frees the blocks that all ranks have closed. Releases the lock before that, because freeing
// memory may wait for the GPU.
void freeClosed() {
  std::vector<Kept::Block> closed;
  {
    std::lock_guard lock(kept().mutex);
    std::erase_if(kept().blocks, [&](Kept::Block& each) {
      if (!each.isFree()) return false;
      closed.push_back(std::move(each));
      return true;
    });
  }
  for (const Kept::Block& each : closed) each.table->returnBlock(each.index, each.number);
}

// Returns whether NCCL_P2P_DISABLE is set to a number other than 0. Users set it on machines whose
// GPUs report peer access that does not work.
bool isSwitchedOff() {
  const char* given = std::getenv("NCCL_P2P_DISABLE");
  return given != nullptr && std::atoi(given) != 0;
}

void enableAccess(int device, int peer) {
  if (device == peer) return;
  int reaches = 0;
  HEDDLE_CUDA(cudaDeviceCanAccessPeer, &reaches, device, peer);
  HEDDLE_USER_CHECK(reaches != 0, "GPU {} does not reach the memory of GPU {}", device, peer);
  const cudaError_t status = cudaDeviceEnablePeerAccess(peer, 0);
  if (status == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();  // clears the error, which the next launch would report otherwise
    return;
  }
  checkCuda(status, "cudaDeviceEnablePeerAccess");
}

}  // namespace

SharedArena::SharedArena(int device, int size, std::shared_ptr<CopyChannelMember> member)
    : device_(device),
      size_(size),
      part_bytes_(kPieceBytes / static_cast<size_t>(size) / kAlign * kAlign),
      member_(std::move(member)) {
  std::string why;
  HEDDLE_USER_CHECK(StreamBarrier::isAvailable(why), "{}", why);
  HEDDLE_USER_CHECK(!isSwitchedOff(), "NCCL_P2P_DISABLE is set");
  freeClosed();  // before the allocation, which needs the memory
  const size_t parts = 2 * size + 2;
  const size_t flags = static_cast<size_t>(size) * sizeof(uint32_t);
  block_ = DeviceBlock::make(device, parts * part_bytes_ + flags, flags);
  number_ = member_->table()->takeBlock(member_->index());
  Offer mine = {};
  mine.pid = getpid();
  mine.device = device;
  mine.index = member_->index();
  mine.block = number_;
  mine.block_number = block_->number();
  mine.has_handle = cudaIpcGetMemHandle(&mine.handle, block_->data()) == cudaSuccess ? 1 : 0;
  if (mine.has_handle == 0) cudaGetLastError();
  offer_.assign(reinterpret_cast<const char*>(&mine), sizeof mine);
  offer_ += machineKey();
}

const std::string& SharedArena::offer() {
  openers_ = kUnknown;
  return offer_;
}

std::string SharedArena::reach(const std::vector<std::string>& offers, int rank) {
  try {
    HEDDLE_CUDA(cudaSetDevice, device_);
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank) {
        bases_.push_back(block_->data());
      } else {
        reachPeer(offers.at(peer), peer);
      }
    }
  } catch (const UserError& error) {
    cudaGetLastError();
    closePeers(false);  // no report: setReached() does not count this rank as an opener
    return error.what();
  }
  return {};
}

void SharedArena::setReached(const std::vector<std::string>& offers,
                             const std::vector<std::string>& reasons) {
  openers_ = 0;
  for (size_t i = 0; i < offers.size(); ++i) {
    if (!reasons.at(i).empty()) continue;
    Offer theirs;
    std::memcpy(&theirs, offers[i].data(), sizeof theirs);
    if (theirs.pid != getpid()) ++openers_;
  }
}

void SharedArena::reachPeer(const std::string& offer, int peer) {
  HEDDLE_USER_CHECK(offer.size() > sizeof(Offer),
                    "rank {} of the team offers no memory for the copy channel", peer);
  HEDDLE_USER_CHECK(offer.substr(sizeof(Offer)) == machineKey(),
                    "rank {} of the team is on another machine", peer);
  Offer theirs;
  std::memcpy(&theirs, offer.data(), sizeof theirs);
  if (theirs.pid == getpid()) {
    enableAccess(device_, theirs.device);
    std::shared_ptr<DeviceBlock> block = DeviceBlock::find(theirs.block_number);
    HEDDLE_USER_CHECK(block != nullptr, "the memory of rank {} of the team is gone", peer);
    bases_.push_back(block->data());
    shared_.push_back(std::move(block));
    return;
  }
  HEDDLE_USER_CHECK(theirs.has_handle != 0, "the memory of rank {} of the team cannot be opened",
                    peer);
  void* opened = nullptr;
  HEDDLE_CUDA(cudaIpcOpenMemHandle, &opened, theirs.handle, cudaIpcMemLazyEnablePeerAccess);
  opened_.push_back({theirs.index, theirs.block, opened});
  bases_.push_back(static_cast<std::byte*>(opened));
}

std::byte* SharedArena::in(int rank, int half, int part) const {
  return base(rank) + static_cast<size_t>(half * size_ + part) * part_bytes_;
}

std::byte* SharedArena::out(int rank, int half) const {
  return base(rank) + static_cast<size_t>(2 * size_ + half) * part_bytes_;
}

uint32_t* SharedArena::flag(int rank, int from) const {
  std::byte* flags = base(rank) + static_cast<size_t>(2 * size_ + 2) * part_bytes_;
  return reinterpret_cast<uint32_t*>(flags) + from;
}

// --- closing and freeing blocks -----------------------------------------------------------------

void SharedArena::closePeers(bool tell) {
  cudaSetDevice(device_);
  for (const Opened& peer : opened_) {
    cudaIpcCloseMemHandle(peer.base);
    if (tell) member_->table()->closeBlock(peer.index, peer.block);
  }
  opened_.clear();
  shared_.clear();
}

bool SharedArena::isFree() const {
  return openers_ != kUnknown && member_->table()->closedBy(member_->index(), number_) >= openers_;
}

void SharedArena::close(const FaultText& fault) {
  closePeers(true);
  const auto end = std::chrono::steady_clock::now() + kCloseLimit;
  while (!isFree() && std::chrono::steady_clock::now() < end && fault().empty()) {
    std::this_thread::sleep_for(kClosePoll);
  }
}

void SharedArena::leave() {
  std::lock_guard lock(kept().mutex);
  auto& forever = kept().forever;
  forever.push_back(std::move(block_));
  forever.insert(forever.end(), shared_.begin(), shared_.end());
}

SharedArena::~SharedArena() {
  if (block_ == nullptr) return;
  closePeers(true);
  keep({std::move(block_), member_->table(), member_->index(), number_, openers_});
  freeClosed();
}

}  // namespace heddle::comm::nccl
