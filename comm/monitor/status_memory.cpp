#include "comm/monitor/status_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>
#include <sstream>

#include "comm/monitor/shared_memory.h"
#include "comm/process/process_info.h"

namespace heddle::comm {
namespace {

std::vector<int> ranksLike(const JobPlaces& places, int rank, bool same_process) {
  const JobPlaces::Place& mine = places.ranks[static_cast<size_t>(rank)];
  std::vector<int> found;
  for (size_t i = 0; i < places.ranks.size(); ++i) {
    const JobPlaces::Place& other = places.ranks[i];
    if (other.host_key != mine.host_key || (same_process && other.pid != mine.pid)) continue;
    found.push_back(static_cast<int>(i));
  }
  return found;
}

bool hasCounts(int size) { return size <= PostedCounts::kMostRanks; }

size_t slotBytes(int size) { return static_cast<size_t>(size) * sizeof(RankStatus); }

size_t bytesOf(int size) {
  const auto ranks = static_cast<size_t>(size);
  return slotBytes(size) + (hasCounts(size) ? ranks * sizeof(PostedCounts) : 0);
}

PostedCounts* countsIn(void* memory, int size) {
  if (!hasCounts(size)) return nullptr;
  return reinterpret_cast<PostedCounts*>(static_cast<std::byte*>(memory) + slotBytes(size));
}

constexpr const char* kStatusName = "status";
constexpr std::align_val_t kAlignment{alignof(RankStatus)};

// Fresh memory of bytesOf(size).
void makeEmpty(void* memory, int size) {
  for (int rank = 0; rank < size; ++rank) {
    new (static_cast<RankStatus*>(memory) + rank) RankStatus;
    if (hasCounts(size)) new (countsIn(memory, size) + rank) PostedCounts;
  }
}

}  // namespace

std::vector<int> JobPlaces::onHostOf(int rank) const { return ranksLike(*this, rank, false); }
std::vector<int> JobPlaces::inProcessOf(int rank) const { return ranksLike(*this, rank, true); }

std::vector<int> JobPlaces::leaders() const {
  std::vector<int> found;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const int rank = static_cast<int>(i);
    if (onHostOf(rank).front() == rank) found.push_back(rank);
  }
  return found;
}

JobPlaces findPlaces(World& world, const std::string& host_key) {
  const int pid = static_cast<int>(getpid());
  const std::string mine = fmt::format("{}\n{}\n{} {}", host_key.empty() ? hostKey() : host_key,
                                       hostName(), pid, processState(pid).started);
  JobPlaces places;
  for (const std::string& text : world.exchange(mine)) {
    JobPlaces::Place& place = places.ranks.emplace_back();
    std::istringstream in(text);
    std::getline(in, place.host_key);
    std::getline(in, place.host);
    in >> place.pid >> place.started;
  }
  return places;
}

StatusMemory::StatusMemory(int size, void* memory, size_t mapped_bytes)
    : size_(size),
      statuses_(static_cast<RankStatus*>(memory)),
      counts_(countsIn(memory, size)),
      mapped_bytes_(mapped_bytes) {}

StatusMemory::~StatusMemory() {
  if (mapped_bytes_ > 0) {
    munmap(statuses_, mapped_bytes_);
  } else {
    operator delete(statuses_, kAlignment);
  }
}

std::shared_ptr<StatusMemory> StatusMemory::makePlain(int size) {
  void* memory = operator new(bytesOf(size), kAlignment);
  makeEmpty(memory, size);
  return std::shared_ptr<StatusMemory>(new StatusMemory(size, memory, 0));
}

std::shared_ptr<StatusMemory> StatusMemory::map(int size, const std::string& path, bool fresh) {
  const size_t bytes = bytesOf(size);
  void* memory = mapSharedMemoryFile(kStatusName, path, bytes, fresh);
  if (fresh) makeEmpty(memory, size);
  return std::shared_ptr<StatusMemory>(new StatusMemory(size, memory, bytes));
}

std::shared_ptr<StatusMemory> StatusMemory::share(World& world, const JobPlaces& places) {
  const int size = world.size();
  return shareOnHost<StatusMemory>(
      world, places,
      {kStatusName, [=] { return makePlain(size); },
       [=](const std::string& path, bool fresh) { return map(size, path, fresh); }});
}

}  // namespace heddle::comm
