#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codegen/kernel.h"

namespace heddle::codegen {

// A cache of kernel images, in memory and in a folder on disk. Thread-safe. Several processes may
// share a folder.
// - The key of an image consists of the target, the compiler identity, the runtime header and the
//   source text. The SHA-256 hash of the key names the files of the image. The cache also stores
//   and compares the full key.
// - The folder must be private: it and its files belong to this user, and no other user may write
//   to them (PrivateFolder). If the folder is not private or cannot be opened, the cache prints a
//   message to stderr and uses a new temporary folder, which is removed when the process ends.
// - An image is stored only if it contains every kernel of its source. The cache loads a C++ image
//   and looks up each kernel. In a CUDA image, it checks the ELF headers and requires a section for
//   each kernel.
// - The cache writes a file under a temporary name and then renames the file. It checks the hash of
//   an image before it uses the image. If an image is damaged, the source is compiled again, and
//   the new image replaces the damaged one.
// - If the folder cannot be written, the cache prints the reason to stderr and still reads the
//   folder. A process prints at most one message about a folder.
// - If the files in the folder exceed `max_bytes`, the cache removes the least recently used
//   images.
// - The cache holds images in memory. If they exceed `memory_bytes`, the cache drops images that no
//   caller holds, least recently used first. The memory of an image that several sources share is
//   freed when the image is dropped for all of them. The cache reads a dropped image from the
//   folder when a caller needs it again.
// - If several threads of a process request an image at the same time, one of them compiles the
//   source, and the others wait.
//
// get() compiles the requested sources that are neither in memory nor in the folder. One run of the
// compiler takes up to KernelCompiler::mostAtOnce() sources, or fewer if cores would otherwise be
// idle. Several runs execute at the same time. If a run of several sources fails, get() compiles
// each of them alone, so that only the sources with errors fail.
class ImageCache {
 public:
  // The default folder is $HEDDLE_CACHE_DIR, else $XDG_CACHE_HOME/heddle, else ~/.cache/heddle,
  // else heddle-cache-UID in the system's temporary folder.
  explicit ImageCache(std::string folder = defaultFolder(), int64_t max_bytes = int64_t{1} << 30,
                      int64_t memory_bytes = int64_t{256} << 20);
  ~ImageCache();
  std::shared_ptr<const KernelImage> get(const KernelSource& source,
                                         const KernelCompiler& compiler);
  // Returns one image per source. Several sources may share an image. If sources fail to compile in
  // this call, throws the error of the first one in the order of `sources`. If `compiled` is not
  // nullptr, adds the number of sources that this call has compiled.
  std::vector<std::shared_ptr<const KernelImage>> get(
      const std::vector<const KernelSource*>& sources, const KernelCompiler& compiler,
      int64_t* compiled = nullptr);
  int64_t compiled() const;  // number of sources that this cache has compiled
  static std::string defaultFolder();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle::codegen
