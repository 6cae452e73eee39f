#include "host/device/kept_blocks.h"

namespace heddle::host {

void* KeptBlocks::take(int64_t bytes, uint64_t stream) {
  if (bytes > kMostBytes) return nullptr;
  const int64_t size = rounded(bytes);
  std::lock_guard lock(mutex_);
  const auto found = blocks_.find({stream, size});
  if (found == blocks_.end() || found->second.empty()) return nullptr;
  // Takes the block that was kept last, because the cache of the device most likely contains it.
  void* const memory = found->second.back();
  found->second.pop_back();
  held_ -= size;
  return memory;
}

bool KeptBlocks::keep(void* memory, int64_t bytes, uint64_t stream) {
  if (bytes > kMostBytes) return false;
  const int64_t size = rounded(bytes);
  std::lock_guard lock(mutex_);
  if (held_ + size > kMostTotal) return false;
  blocks_[{stream, size}].push_back(memory);
  held_ += size;
  return true;
}

std::vector<void*> KeptBlocks::drop(uint64_t stream) {
  std::lock_guard lock(mutex_);
  std::vector<void*> dropped;
  auto at = blocks_.lower_bound({stream, 0});
  while (at != blocks_.end() && at->first.first == stream) {
    held_ -= at->first.second * static_cast<int64_t>(at->second.size());
    dropped.insert(dropped.end(), at->second.begin(), at->second.end());
    at = blocks_.erase(at);
  }
  return dropped;
}

std::vector<void*> KeptBlocks::dropAll() {
  std::lock_guard lock(mutex_);
  std::vector<void*> dropped;
  for (const auto& [key, blocks] : blocks_) {
    dropped.insert(dropped.end(), blocks.begin(), blocks.end());
  }
  blocks_.clear();
  held_ = 0;
  return dropped;
}

int64_t KeptBlocks::heldBytes() {
  std::lock_guard lock(mutex_);
  return held_;
}

}  // namespace heddle::host
