#include "codegen/compile/load_library.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "codegen/compile/elf_file.h"
#include "ir/base/check.h"
#include "ir/system/files.h"

namespace heddle::codegen {
namespace {

// Returns a path of the open file. Every call returns a path that no earlier call has returned.
// dlopen() identifies a loaded library by its path. For a known path, it would return the old
// library, even if the descriptor number now belongs to another file. The path therefore contains a
// counter, in binary: "/" is 0 and "/." is 1.
std::string uniquePathOf(int file) {
  static std::atomic<uint64_t> counter{0};
  std::string path = "/proc/self/fd";
  for (uint64_t bits = counter.fetch_add(1); bits != 0; bits /= 2) {
    path += bits % 2 == 0 ? "/" : "/.";
  }
  return path + fmt::format("/{}", file);
}

std::string faultOf(int file) {
  struct stat info {};
  if (fstat(file, &info) != 0) return fmt::format("fstat: {}", std::strerror(errno));
  const auto read = [file](uint64_t offset, void* to, uint64_t bytes) {
    return pread(file, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
  };
  return faultOfElf(read, static_cast<uint64_t>(info.st_size));
}

}  // namespace

std::shared_ptr<void> loadLibrary(int file) {
  const std::string fault = faultOf(file);
  HEDDLE_USER_CHECK_CODE(CompileFailure, fault.empty(), "the compiled kernel cannot be loaded: {}",
                         fault);
  void* library = dlopen(uniquePathOf(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* said = dlerror();
    userErrorWith(ErrorCode::CompileFailure, "the compiled kernel cannot be loaded: dlopen: {}",
                  said == nullptr ? "unknown error" : said);
  }
  return {library, [](void* handle) { dlclose(handle); }};
}

std::shared_ptr<void> loadLibrary(std::span<const std::byte> image) {
  const FileDescriptor file(memfd_create("heddle_kernel", MFD_CLOEXEC));
  HEDDLE_USER_CHECK(file.isOpen(), "memfd_create: {}", std::strerror(errno));
  const std::string_view bytes(reinterpret_cast<const char*>(image.data()), image.size());
  HEDDLE_USER_CHECK(writeAll(file.get(), bytes),
                    "a kernel image of {} bytes cannot be written to memory: write: {}",
                    image.size(), std::strerror(errno));
  return loadLibrary(file.get());
}

void* findEntry(const std::shared_ptr<void>& library, const std::string& entry) {
  return dlsym(library.get(), entry.c_str());
}

}  // namespace heddle::codegen
