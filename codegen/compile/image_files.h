#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "codegen/compile/private_folder.h"
#include "codegen/kernel.h"

namespace heddle::codegen {

// The key of an image. `text` contains everything on which the image depends: compiler identity,
// runtime header and source text. `stem` is the SHA-256 hash of `text` and names the files of the
// image.
struct ImageKey {
  ImageKey(const KernelSource& source, const KernelCompiler& compiler);
  std::string text;
  std::string stem;
  Target target;
  std::vector<std::string> entries;  // KernelSource::entries
};

// The folder of an ImageCache (see codegen/compile/image_cache.h), which must be a PrivateFolder.
// An entry consists of two files:
//   STEM.cubin or STEM.so   the image
//   STEM.key                size and SHA-256 hash of the image, and the key text; written last
// A C++ image is loaded through the same file descriptor through which its content was checked.
// Nobody can therefore replace the file in between. Thread-safe.
class ImageFiles {
 public:
  ImageFiles(std::string folder, int64_t max_bytes);

  // Returns nullptr if the image is missing, damaged, not private, or cannot be loaded. Reports the
  // first damaged image of the folder.
  std::shared_ptr<const KernelImage> load(const ImageKey& key);
  // Stores one image under each of `keys`. The image must contain the kernels of all these keys.
  // The names are hard links to one file, or copies if the file system has no hard links. If the
  // folder cannot be written, reports the reason once.
  void save(const std::vector<const ImageKey*>& keys, std::string_view image);

 private:
  const PrivateFolder* folder();
  void evict(const std::set<std::string>& keep);

  std::string path_;
  int64_t max_bytes_;
  std::once_flag opened_;
  std::unique_ptr<PrivateFolder> folder_;
};

}  // namespace heddle::codegen
