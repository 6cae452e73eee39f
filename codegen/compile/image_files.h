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

// What decides an image, and the name of its files, made of it. The whole text is kept in a file
// and compared.
struct ImageKey {
  ImageKey(const KernelSource& source, const KernelCompiler& compiler);
  std::string text;
  std::string stem;
  Target target;
};

// The folder behind an ImageCache (codegen/kernel.h says how it behaves). A Cpp image has to be a
// file of its own for dlopen, so an entry is two files: STEM.cubin (or STEM.so) with the image, and
// STEM.key with the checksum of the image and the key, written last. The bytes of a Cpp image stay
// in its file. Thread-safe.
class ImageFiles {
 public:
  ImageFiles(std::string folder, int64_t max_bytes);

  // nullptr: not there, or damaged.
  std::shared_ptr<const KernelImage> load(const ImageKey& key) const;
  // Stores an image that serves all of `keys`, under each: one file with several links where the
  // file system has them. Another process may put another image under the name of a key, but only
  // one that serves this key: so each key gets the path of its own name.
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
  std::optional<TempFolder> own_folder_;  // where shared objects go when `folder_` takes none
};

}  // namespace heddle::codegen
