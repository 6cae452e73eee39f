#include "comm/monitor/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace heddle::comm {
namespace {

// In memory where there is a file system for it.
std::string folderForFiles() {
  if (access("/dev/shm", W_OK) == 0) return "/dev/shm";
  const char* folder = std::getenv("TMPDIR");
  return folder == nullptr || *folder == '\0' ? "/tmp" : folder;
}

}  // namespace

SharedMemoryFile::SharedMemoryFile(const std::string& what) {
  folder_ = folderForFiles() + "/heddle-" + what + "-XXXXXX";
  HEDDLE_USER_CHECK(mkdtemp(folder_.data()) != nullptr, "memory of the {}: mkdtemp {}: {}", what,
                    folder_, std::strerror(errno));
}

SharedMemoryFile::~SharedMemoryFile() {
  unlink(path().c_str());
  rmdir(folder_.c_str());
}

void* mapSharedMemoryFile(const std::string& what, const std::string& path, size_t bytes,
                          bool fresh) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC | (fresh ? O_CREAT | O_EXCL : 0), 0600);
  HEDDLE_USER_CHECK(file >= 0, "memory of the {}: open {}: {}", what, path, std::strerror(errno));
  // All of it now: a page that cannot be had later would be a signal, not an error.
  const int refused = fresh ? posix_fallocate(file, 0, static_cast<off_t>(bytes)) : 0;
  void* memory =
      refused != 0 ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const std::string why = std::strerror(refused != 0 ? refused : errno);
  close(file);
  HEDDLE_USER_CHECK(memory != MAP_FAILED, "memory of the {}: {} bytes in {}: {}", what, bytes, path,
                    why);
  return memory;
}

}  // namespace heddle::comm
