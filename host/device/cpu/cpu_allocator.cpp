#include "host/device/cpu/cpu_allocator.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

namespace heddle::host {
namespace {

constexpr int64_t kAlignment = 256;
// If more bytes than this are free in the pool, deallocate() returns free blocks to the system.
constexpr int64_t kMostCached = int64_t{4} << 30;

class PoisonTask : public TaskBody {
 public:
  PoisonTask(void* memory, int64_t bytes) : memory_(memory), bytes_(bytes) {}
  bool poll() override {
    std::memset(memory_, 0xFF, bytes_);
    return true;
  }

 private:
  void* memory_;
  int64_t bytes_;
};

}  // namespace

CpuAllocator::CpuAllocator(StreamTable& streams, int64_t limit, bool poison)
    : streams_(streams), limit_(limit), poison_(poison) {}

CpuAllocator::~CpuAllocator() {
  for (auto& [size, blocks] : free_) {
    for (const Block& block : blocks) std::free(block.memory);
  }
}

// Size classes are multiples of 256 bytes up to 2 KiB. Above that, the range from each power of two
// to the next one has four classes. In a block of more than 1 KiB, less than a fifth of the bytes
// are unused.
int64_t CpuAllocator::classOf(int64_t bytes) {
  if (bytes <= 0 || bytes > std::numeric_limits<int64_t>::max() / 2) throw std::bad_alloc();
  const auto value = static_cast<uint64_t>(bytes);
  const uint64_t step = std::max<uint64_t>(kAlignment, std::bit_floor(value - 1) / 4);
  return static_cast<int64_t>((value + step - 1) / step * step);
}

void* CpuAllocator::reuse(int64_t size, const CpuStream& stream) {
  const auto found = free_.find(size);
  if (found == free_.end()) return nullptr;
  std::vector<Block>& blocks = found->second;
  // The search begins with the block that was freed last, because its bytes are most likely in a
  // CPU cache.
  for (size_t i = blocks.size(); i-- > 0;) {
    if (blocks[i].freed.stream != &stream && !blocks[i].freed.passed()) continue;
    void* memory = blocks[i].memory;
    blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(i));
    cached_ -= size;
    return memory;
  }
  return nullptr;
}

void* CpuAllocator::fresh(int64_t size) {
  if (limit_ > 0 && size > limit_ - reserved_) return nullptr;
  void* memory = std::aligned_alloc(kAlignment, static_cast<size_t>(size));
  if (memory == nullptr) return nullptr;
  reserved_ += size;
  return memory;
}

bool CpuAllocator::trim() {
  const int64_t before = cached_;
  for (auto& [size, blocks] : free_) {
    const auto drop = [this, bytes = size](const Block& block) {
      if (!block.freed.passed()) return false;
      std::free(block.memory);
      reserved_ -= bytes;
      cached_ -= bytes;
      return true;
    };
    std::erase_if(blocks, drop);
  }
  return cached_ < before;
}

std::vector<StreamPoint> CpuAllocator::freePoints() {
  std::lock_guard lock(mutex_);
  std::vector<StreamPoint> points;
  for (const auto& [size, blocks] : free_) {
    for (const Block& block : blocks) points.push_back(block.freed);
  }
  return points;
}

void* CpuAllocator::allocate(int64_t bytes, Stream stream) {
  const int64_t size = classOf(bytes);
  const CpuStream& user = streams_.stream(stream);
  // There are three attempts. The second and the third attempt first return free blocks to the
  // system. Before that, the third attempt waits until the streams have passed the points at which
  // the blocks were freed.
  for (int attempt = 0; attempt < 3; ++attempt) {
    if (attempt == 2) {
      for (const StreamPoint& point : freePoints()) point.stream->wait(point.tasks);
    }
    std::lock_guard lock(mutex_);
    if (attempt > 0) trim();
    if (void* memory = reuse(size, user)) return memory;
    if (void* memory = fresh(size)) {
      // No stream uses the memory yet, so the fill needs no stream order.
      if (poison_) std::memset(memory, 0xFF, size);
      return memory;
    }
  }
  throw std::bad_alloc();
}

void CpuAllocator::deallocate(void* memory, int64_t bytes, Stream stream) noexcept {
  if (memory == nullptr) return;
  CpuStream& user = streams_.stream(stream);
  if (poison_) user.enqueue<PoisonTask>(Issue{}, memory, bytes);
  const int64_t size = classOf(bytes);
  const StreamPoint freed = user.end();
  std::lock_guard lock(mutex_);
  free_[size].push_back({memory, freed});
  cached_ += size;
  if (cached_ > kMostCached) trim();
}

}  // namespace heddle::host
