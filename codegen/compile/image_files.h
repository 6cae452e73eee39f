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

// The key of a kernel image. `text` contains everything that decides the bytes of the image. `stem`
// is a hash of `text` and names the files of the image. Two texts may have the same hash. Therefore
// the full text is stored in the folder too, and load() compares it with the text of the requested
// key.
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
// A KernelImage for C++ contains only the path of its file, not the bytes. Thread-safe.
class ImageFiles {
 public:
  ImageFiles(std::string folder, int64_t max_bytes);

  // Returns the image of `key`, or nullptr if the image is missing or damaged.
  std::shared_ptr<const KernelImage> load(const ImageKey& key) const;
  // Stores one image under each of `keys`, and returns one KernelImage per key. The files of the
  // keys are hard links to one file, or copies if the file system has no hard links. For C++, each
  // returned KernelImage has the path of its own key. Another process may replace the file of a
  // key, but only by an image that serves the same key.
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
  std::optional<TempFolder> own_folder_;  // for shared objects, if `folder_` is not writable
};

}  // namespace heddle::codegen
