#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codegen/kernel.h"

namespace heddle::codegen {

// A cache of kernel images on disk. Thread-safe; many processes may share a folder.
// - The key consists of the source text, the runtime header and the compiler identity. A hash of
//   the key names the files. The full key is also stored and compared.
// - A file is written under a private name and then renamed, so readers never see a partial file.
//   If a file is damaged, the image is compiled again and the file is replaced.
// - If the folder is not writable, the cache only reads files from it, and prints one message on
//   stderr.
// - If the folder becomes larger than `max_bytes`, the least recently used images are removed.
// - If several threads of a process request an image, only one of them compiles it.
//
// get() compiles the requested sources that are neither in memory nor in the folder. One run of the
// compiler takes up to KernelCompiler::mostAtOnce() sources. It takes fewer if cores would
// otherwise be idle. Several runs execute at the same time. If a run of several sources fails, each
// of its sources is compiled alone. Only the sources that contain errors then fail.
class ImageCache {
 public:
  // The default folder is $HEDDLE_CACHE_DIR, else $XDG_CACHE_HOME/heddle, else ~/.cache/heddle,
  // else heddle-cache-UID in the system's temporary folder.
  explicit ImageCache(std::string folder = defaultFolder(), int64_t max_bytes = int64_t{1} << 30);
  ~ImageCache();
  std::shared_ptr<const KernelImage> get(const KernelSource& source,
                                         const KernelCompiler& compiler);
  // Returns one image per source. Several sources may share an image. If sources fail to compile,
  // throws the error of the first failed source in the order of `sources`.
  std::vector<std::shared_ptr<const KernelImage>> get(
      const std::vector<const KernelSource*>& sources, const KernelCompiler& compiler);
  int64_t compiled() const;  // number of compiled sources, without images found on disk
  static std::string defaultFolder();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle::codegen
