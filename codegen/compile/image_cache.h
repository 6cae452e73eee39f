#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codegen/kernel.h"

namespace heddle::codegen {

// A cache of kernel images on disk. Thread-safe; many processes may share a folder.
// - The key consists of the source text, the runtime header and the compiler identity. Files are
//   named by the SHA-256 hash of the key. The full key is also stored and compared.
// - The folder must be private: it and its files belong to this user, and no other user may write
//   to them. Otherwise the cache prints a message on stderr, and uses a new temporary folder, which
//   is removed when the process ends.
// - An image is stored only if it contains every kernel of its source. The cache loads a C++ image
//   and looks up each kernel. It does not load a CUDA image. Instead it checks the ELF headers of
//   the image, and requires a section for each kernel.
// - A file is written under a temporary name and then renamed. The hash of an image is checked
//   before it is used. A damaged image is compiled again and replaced.
// - If the folder cannot be written, the cache prints a message on stderr once, and only reads the
//   folder.
// - If the folder exceeds `max_bytes`, the least recently used images are removed.
// - The process holds images in memory. If they exceed `memory_bytes`, it drops images that no
//   caller holds, least recently used first, and reads them from the folder again when needed.
// - If several threads of a process request an image, only one of them compiles it.
//
// get() compiles the requested sources that are neither in memory nor in the folder. One run of
// the compiler takes up to KernelCompiler::mostAtOnce() sources, or fewer if cores would otherwise
// be idle. Several runs execute at the same time. If a run of several sources fails, each of its
// sources is compiled alone, so that only the sources with errors fail.
class ImageCache {
 public:
  // The default folder is $HEDDLE_CACHE_DIR, else $XDG_CACHE_HOME/heddle, else ~/.cache/heddle,
  // else heddle-cache-UID in the system's temporary folder.
  explicit ImageCache(std::string folder = defaultFolder(), int64_t max_bytes = int64_t{1} << 30,
                      int64_t memory_bytes = int64_t{256} << 20);
  ~ImageCache();
  std::shared_ptr<const KernelImage> get(const KernelSource& source,
                                         const KernelCompiler& compiler);
  // Returns one image per source. Several sources may share an image. If sources fail to compile,
  // throws the error of the first failed source in the order of `sources`. If `compiled` is not
  // nullptr, adds the number of sources that this call has compiled.
  std::vector<std::shared_ptr<const KernelImage>> get(
      const std::vector<const KernelSource*>& sources, const KernelCompiler& compiler,
      int64_t* compiled = nullptr);
  int64_t compiled() const;  // number of compiled sources, without images found on disk
  static std::string defaultFolder();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle::codegen
