#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "codegen/compile/private_folder.h"

namespace heddle::host {

// Stores choices in memory and in files: the chosen algorithms of a library, or the chosen
// candidates of kernels (host/device/kernel_choices.h). A key is a text that describes a problem,
// for example the sizes and dtypes of a matrix product.
// - Each pair of identity (see the constructor) and key has one file. The name of the file is a
//   SHA-256 hash of identity and key, with the suffix ".algorithm". The lines of the file are the
//   identity, the key, the choice, and a SHA-256 hash of these lines.
// - A file that is damaged or belongs to another key is ignored.
// - If the folder cannot be used, for example because it is not private
//   (codegen/compile/private_folder.h), a temporary folder replaces it. The temporary folder is
//   removed when the process ends.
// - If a file cannot be written, or if there is no temporary folder either, the choice is only in
//   the memory of this object.
// - The cache is thread-safe. Several processes may share the folder.
class ChoiceCache {
 public:
  // `folder` contains the files. `identity` is a text with all facts that decide choices but are
  // not in the keys, for example the name of the device and the version of the library. find()
  // ignores choices that were stored with a different identity.
  ChoiceCache(std::string folder, std::string identity);

  // Returns the choice for a key, or nullopt if there is none.
  std::optional<std::string> find(const std::string& key);
  // Stores the choice for a key, and replaces an earlier choice. `choice` must be a single line.
  void put(const std::string& key, const std::string& choice);

 private:
  std::string nameOf(const std::string& key) const;

  std::string identity_;
  std::unique_ptr<codegen::PrivateFolder> folder_;
  std::mutex mutex_;
  std::map<std::string, std::string> known_;
};

}  // namespace heddle::host
