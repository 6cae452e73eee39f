#include "codegen/compile/load_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "ir/base/check.h"
#include "ir/system/files.h"

namespace heddle::codegen {
namespace {

// Returns a path of the descriptor that no earlier call returned. dlopen identifies a loaded
// library by its path. For a known path it would return the old library, even if the descriptor
// number now belongs to another file. The path therefore contains a counter, in binary: "/" is 0
// and "/." is 1.
std::string uniquePathOf(int file) {
  static std::atomic<uint64_t> counter{0};
  std::string path = "/proc/self/fd";
  for (uint64_t bits = counter.fetch_add(1); bits != 0; bits /= 2) {
    path += bits % 2 == 0 ? "/" : "/.";
  }
  return path + fmt::format("/{}", file);
}

// Returns whether the file contains all parts that its ELF header mentions. dlopen does not check
// this: if a mapped page were beyond the end of the file, the process would get SIGBUS.
bool isWhole(int file) {
  struct stat info {};
  Elf64_Ehdr header;
  if (fstat(file, &info) != 0 || pread(file, &header, sizeof(header), 0) != sizeof(header)) {
    return false;
  }
  const auto size = static_cast<uint64_t>(info.st_size);
  const auto fits = [&](uint64_t offset, uint64_t bytes) {
    return offset <= size && bytes <= size - offset;
  };
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      !fits(header.e_shoff, uint64_t{header.e_shnum} * header.e_shentsize) ||
      !fits(header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr))) {
    return false;
  }
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    const auto at = static_cast<off_t>(header.e_phoff + i * sizeof(part));
    if (pread(file, &part, sizeof(part), at) != sizeof(part)) return false;
    if (!fits(part.p_offset, part.p_filesz)) return false;
  }
  return true;
}

}  // namespace

std::shared_ptr<void> loadLibrary(int file) {
  HEDDLE_USER_CHECK_CODE(
      CompileFailure, isWhole(file),
      "the compiled kernel cannot be loaded: the file is no ELF file, or its end is "
      "missing");
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
