#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "comm/communicator.h"
#include "comm/monitor/status_memory.h"
#include "ir/base/error.h"

// How the ranks of one host come to memory that all of them see.
namespace heddle::comm {

// The name under which other processes find a file of memory; it goes with this object.
class SharedMemoryFile {
 public:
  // `what`: "job monitor", in the name and in messages.
  explicit SharedMemoryFile(const std::string& what);
  ~SharedMemoryFile();
  SharedMemoryFile(const SharedMemoryFile&) = delete;
  SharedMemoryFile& operator=(const SharedMemoryFile&) = delete;
  std::string path() const { return folder_ + "/memory"; }

 private:
  std::string folder_;
};

// Maps `bytes` of the file, which is made (of zeros) when `fresh`. The caller unmaps.
void* mapSharedMemoryFile(const std::string& what, const std::string& path, size_t bytes,
                          bool fresh);

template <class T>
struct SharedMemoryMaker {
  std::string what;  // as for SharedMemoryFile
  // Where one process holds all ranks of the host: they share the object.
  std::function<std::shared_ptr<T>()> plain;
  // Else each rank makes one over the same file, the first of the host a fresh one.
  std::function<std::shared_ptr<T>(const std::string& path, bool fresh)> mapped;
};

// Collective over the job. The first rank of a host makes the memory and says where it is, the
// others take it, and when all have it the name goes. What fails is told to all, so that none goes
// on alone: UserError on all ranks of the job.
template <class T>
std::shared_ptr<T> shareOnHost(World& world, const JobPlaces& places,
                               const SharedMemoryMaker<T>& maker) {
  const int rank = world.rank();
  const std::vector<int> here = places.onHostOf(rank);
  const bool one_process = places.inProcessOf(rank) == here;
  const bool makes = here.front() == rank;
  std::shared_ptr<T> memory;
  // For the other threads of the process. Kept when the job ends meanwhile: one may be reading it.
  std::shared_ptr<T>* handle = nullptr;
  std::optional<SharedMemoryFile> file;
  std::string where, fault;
  const auto attempt = [&](const auto& work) {
    try {
      work();
    } catch (const UserError& error) {
      fault = error.what();
    }
  };
  if (makes) {
    attempt([&] {
      if (!one_process) file.emplace(maker.what);
      memory = one_process ? maker.plain() : maker.mapped(file->path(), true);
      if (one_process) handle = new std::shared_ptr<T>(memory);
      where = one_process ? std::to_string(reinterpret_cast<uintptr_t>(handle)) : file->path();
    });
  }
  const std::string answer = world.exchange(where)[static_cast<size_t>(here.front())];
  if (!makes && !answer.empty()) {
    attempt([&] {
      memory = one_process ? *reinterpret_cast<std::shared_ptr<T>*>(std::stoull(answer))
                           : maker.mapped(answer, false);
    });
  }
  const std::vector<std::string> faults = world.exchange(fault);
  delete handle;
  for (const std::string& one : faults) HEDDLE_USER_CHECK(one.empty(), "{}", one);
  return memory;
}

}  // namespace heddle::comm
