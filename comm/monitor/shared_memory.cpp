#include "comm/monitor/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "ir/base/check.h"
#include "ir/system/temp_folders.h"

namespace heddle::comm {
namespace {

constexpr std::align_val_t kAlignment{64};

// Returns the folder for the shared files. Prefers /dev/shm, whose files are in memory.
std::string folderForFiles() {
  if (access("/dev/shm", W_OK) == 0) return "/dev/shm";
  const char* folder = std::getenv("TMPDIR");
  return folder == nullptr || *folder == '\0' ? "/tmp" : folder;
}

// A file name by which other processes find the shared memory. The destructor unlinks the file.
class NamedFile {
 public:
  // Also removes the files that killed jobs have left.
  explicit NamedFile(const std::string& what) {
    const std::string prefix = "heddle-" + what + "-memory-";
    removeUnlockedFolders(folderForFiles(), prefix);
    try {
      folder_ = createLockedFolder(folderForFiles(), prefix);
    } catch (const UserError& error) {
      userErrorWith(error.code(), "memory of the {}: {}", what, error.what());
    }
  }
  ~NamedFile() {
    unlink(path().c_str());
    rmdir(folder_.path.c_str());
  }
  NamedFile(const NamedFile&) = delete;
  NamedFile& operator=(const NamedFile&) = delete;
  std::string path() const { return folder_.path + "/memory"; }

 private:
  LockedFolder folder_;
};

std::shared_ptr<void> mapFile(const std::string& what, const std::string& path, size_t bytes,
                              bool create) {
  const FileDescriptor opened(
      open(path.c_str(),
           O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (create ? O_CREAT | O_EXCL : 0), 0600));
  const int file = opened.get();
  struct stat status {};
  HEDDLE_USER_CHECK(file >= 0 && fstat(file, &status) == 0, "memory of the {}: open {}: {}", what,
                    path, std::strerror(errno));
  const bool fits = create || status.st_size >= static_cast<off_t>(bytes);
  HEDDLE_USER_CHECK(S_ISREG(status.st_mode) && status.st_uid == geteuid() && fits,
                    "memory of the {}: {} is not the file of {} bytes that a rank of this user "
                    "has created",
                    what, path, bytes);
  // Allocates all pages now. Otherwise, if memory is short, a later access would raise SIGBUS.
  const int refused = create ? posix_fallocate(file, 0, static_cast<off_t>(bytes)) : 0;
  void* memory =
      refused != 0 ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const std::string why = std::strerror(refused != 0 ? refused : errno);
  HEDDLE_USER_CHECK(memory != MAP_FAILED, "memory of the {}: {} bytes in {}: {}", what, bytes, path,
                    why);
  return {memory, [bytes](void* mapped) { munmap(mapped, bytes); }};
}

std::shared_ptr<void> allocate(size_t bytes) {
  return {operator new(bytes, kAlignment),
          [](void* memory) { operator delete(memory, kAlignment); }};
}

}  // namespace

// The first exchange tells the other ranks where the memory is. The second one tells them whether
// a rank has failed.
std::shared_ptr<void> shareOnHost(World& world, const JobPlaces& places, const std::string& what,
                                  size_t bytes, const std::function<void(void*)>& construct) {
  using Handle = std::shared_ptr<void>;
  const std::vector<int> here = places.onHostOf(world.rank());
  const bool one_process = places.inProcessOf(world.rank()) == here;
  const bool creates = here.front() == world.rank();
  Handle memory;
  // If all ranks of the host are in this process, they copy *handle on their own threads. If an
  // exchange throws, *handle leaks on purpose, because another thread may still read it.
  Handle* handle = nullptr;
  std::optional<NamedFile> file;
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
      if (!one_process) file.emplace(what);
      memory = one_process ? allocate(bytes) : mapFile(what, file->path(), bytes, true);
      construct(memory.get());
      if (one_process) handle = new Handle(memory);
      where = one_process ? std::to_string(reinterpret_cast<uintptr_t>(handle)) : file->path();
    });
  }
  const std::string found = world.exchange(where)[static_cast<size_t>(here.front())];
  if (!creates && !found.empty()) {
    attempt([&] {
      memory = one_process ? *reinterpret_cast<Handle*>(std::stoull(found))
                           : mapFile(what, found, bytes, false);
    });
  }
  const std::vector<std::string> errors = world.exchange(error);
  delete handle;
  for (const std::string& one : errors) HEDDLE_USER_CHECK(one.empty(), "{}", one);
  return memory;
}

}  // namespace heddle::comm
