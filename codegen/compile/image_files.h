#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/compile/child_process.h"
#include "codegen/kernel.h"

namespace heddle::codegen {

// The key of an image. `text` contains everything that decides the image. `stem` is a hash of
// `text` and names the files of the image. The full text is also stored in a file and compared.
struct ImageKey {
  ImageKey(const KernelSource& source, const KernelCompiler& compiler);
  std::string text;
  std::string stem;
  Target target;
};

// The folder of an ImageCache (see codegen/compile/image_cache.h). An entry consists of two files,
// because dlopen needs the image of a C++ kernel as a file of its own:
//   STEM.cubin or STEM.so   the image
//   STEM.key                the checksum of the image and the key text, written last
// The bytes of a C++ image are only in its file, not in memory. Thread-safe.
class ImageFiles {
 public:
  ImageFiles(std::string folder, int64_t max_bytes);

  // Returns nullptr if the image is missing or damaged.
  std::shared_ptr<const KernelImage> load(const ImageKey& key) const;
  // Stores one image that serves all of `keys`, under each of them. The names are hard links to one
  // file, or copies if the file system has no hard links. Each key gets the path of its own name.
  // Another process may replace the file of a name, but only by an image that serves the same key.
  std::vector<std::shared_ptr<const KernelImage>> save(const std::vector<const ImageKey*>& keys,
                                                       std::vector<std::byte> bytes);

 private:
  std::filesystem::path pathOf(const ImageKey& key) const;
  bool write(const std::vector<const ImageKey*>& keys, const std::string& image);
  std::string keep(const ImageKey& key, const std::string& image);
  void complain(const std::string& what);
  void evict(const std::set<std::string>& keep) const;

  std::filesystem::path folder_;
  int64_t max_bytes_;
  std::mutex mutex_;
  bool complained_ = false;
  std::optional<TempFolder> own_folder_;  // holds shared objects if `folder_` is not writable
};

}  // namespace heddle::codegen
