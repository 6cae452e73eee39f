#include "comm/monitor/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "ir/base/check.h"
#include "ir/system/files.h"

namespace heddle::comm {
namespace {

// A file in memory. It has no name in any folder, so nothing remains if the processes that map it
// are killed. Another process of the same user can open it by path() while this object exists.
class MemoryFile {
 public:
  // Allocates all pages now. Otherwise, if memory is short, a later access would raise SIGBUS.
  MemoryFile(const std::string& what, size_t bytes)
      : file_(memfd_create(("heddle-" + what).c_str(), MFD_CLOEXEC)) {
    const int error =
        file_.get() < 0 ? errno : posix_fallocate(file_.get(), 0, static_cast<off_t>(bytes));
    HEDDLE_USER_CHECK(error == 0, "memory of the {}: {} bytes: {}", what, bytes,
                      std::strerror(error));
  }
  std::string path() const {
    std::error_code error;
    const std::string process = std::filesystem::read_symlink("/proc/self", error);
    HEDDLE_USER_CHECK(!error, "/proc/self: {}", error.message());
    return fmt::format("/proc/{}/fd/{}", process, file_.get());
  }

 private:
  FileDescriptor file_;
};

std::shared_ptr<void> map(const std::string& what, const std::string& path, size_t bytes) {
  const FileDescriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  HEDDLE_USER_CHECK(file.isOpen(), "memory of the {}: open {}: {}", what, path,
                    std::strerror(errno));
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  HEDDLE_USER_CHECK(memory != MAP_FAILED, "memory of the {}: map {} bytes: {}", what, bytes,
                    std::strerror(errno));
  return {memory, [bytes](void* mapped) { munmap(mapped, bytes); }};
}

}  // namespace

// The first exchange tells the other ranks where the memory is. The second exchange tells them
// whether a rank has failed. After the second exchange, all ranks have mapped the memory, so this
// rank may close the file and delete the handle.
std::shared_ptr<void> shareOnMachine(World& world, const RankLocations& locations,
                                     const std::string& what, size_t bytes,
                                     const std::function<void(void*)>& construct) {
  using Handle = std::shared_ptr<void>;
  const std::vector<int> here = locations.onMachineOf(world.rank());
  const bool one_process = locations.inProcessOf(world.rank()) == here;
  const bool creates = here.front() == world.rank();
  Handle memory;
  // If all ranks of the machine are in this process, the other ranks copy *handle on their own
  // threads. If an exchange throws, *handle leaks on purpose, because another thread may still read
  // it.
  Handle* handle = nullptr;
  std::optional<MemoryFile> file;
  std::string where, error;
  const auto attempt = [&](const auto& work) {
    try {
      work();
    } catch (const UserError& thrown) {
      error = thrown.what();
    }
  };
  if (creates) {
    attempt([&] {
      file.emplace(what, bytes);
      memory = map(what, file->path(), bytes);
      construct(memory.get());
      if (one_process) handle = new Handle(memory);
      where = one_process ? std::to_string(reinterpret_cast<uintptr_t>(handle)) : file->path();
    });
  }
  const std::string found = world.exchange(where)[here.front()];
  if (!creates && !found.empty()) {
    attempt([&] {
      memory =
          one_process ? *reinterpret_cast<Handle*>(std::stoull(found)) : map(what, found, bytes);
    });
  }
  const std::vector<std::string> errors = world.exchange(error);
  delete handle;
  for (const std::string& one : errors) HEDDLE_USER_CHECK(one.empty(), "{}", one);
  return memory;
}

}  // namespace heddle::comm
