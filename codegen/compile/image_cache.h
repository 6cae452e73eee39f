#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codegen/kernel.h"

namespace heddle::codegen {

// Images on disk. Key = full source text + runtime header + compiler identity, hashed; files are
// written under a private name and renamed, so many processes may share a folder; a damaged file
// is recompiled and replaced; a folder that cannot be written is used as it is, said once on
// stderr; the oldest files go when the folder exceeds `max_bytes`. Thread-safe; one image is
// compiled once even when several threads ask for it.
//
// Sources asked for together, of which neither this object nor the folder has an image, are
// compiled in as few runs as the compiler says, several runs at a time; one that does not compile
// is compiled alone again, for its error, and does no harm to the others.
class ImageCache {
 public:
  // Default folder: $HEDDLE_CACHE_DIR, else $XDG_CACHE_HOME/heddle, else ~/.cache/heddle.
  explicit ImageCache(std::string folder = defaultFolder(), int64_t max_bytes = int64_t{1} << 30);
  ~ImageCache();
  std::shared_ptr<const KernelImage> get(const KernelSource& source,
                                         const KernelCompiler& compiler);
  // One image a source; an image may be that of several. Throws the first error by position.
  std::vector<std::shared_ptr<const KernelImage>> get(
      const std::vector<const KernelSource*>& sources, const KernelCompiler& compiler);
  int64_t compiled() const;  // sources compiled by this object, not found on disk
  static std::string defaultFolder();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle::codegen
