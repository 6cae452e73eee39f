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

// The key of an image. `text` contains everything on which the image depends: target, compiler
// identity, runtime header and source text. `stem` is the SHA-256 hash of `text` and names the
// files of the image.
struct ImageKey {
  ImageKey(const KernelSource& source, const KernelCompiler& compiler);
  std::string text;
  std::string stem;
  Target target;
  std::vector<std::string> entries;  // names of the entry points of the source
};

// The images in the folder of an ImageCache (codegen/compile/image_cache.h). If the folder violates
// the rules of PrivateFolder (codegen/compile/private_folder.h) or cannot be opened, a temporary
// folder replaces it (openOrReport()). Each image has two files:
//   STEM.cubin or STEM.so   the image
//   STEM.key                size and SHA-256 hash of the image, and the key text; written last
// load() checks the content of an image. For a .cubin, the loaded image then consists of the bytes
// that load() has checked. For a .so, load() opens the library through the file descriptor from
// which it has read the checked bytes. Nobody can therefore replace the file between the check and
// the load. Thread-safe.
class ImageFiles {
 public:
  ImageFiles(std::string folder, int64_t max_bytes);

  // Returns the image of `key`. Returns nullptr if it is missing, damaged, not private, or cannot
  // be loaded. If it is damaged or cannot be loaded, prints a warning to stderr. A process prints
  // at most one warning per folder.
  std::shared_ptr<const KernelImage> load(const ImageKey& key);
  // Stores one image under each of `keys`. The image must contain the kernels of all these keys.
  // The image files are hard links to one file, or copies if the file system has no hard links. If
  // the folder exceeds `max_bytes`, removes the least recently used images. If the folder cannot be
  // written, prints the reason, unless the process has already printed a warning about this folder.
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
