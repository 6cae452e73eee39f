#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace heddle::host {

// Stores chosen algorithms in memory and in files.
// - Each key has one file. The name of the file is a hash of the identity (see the constructor) and
//   the key. The file has three lines: the identity, the key and the choice.
// - A file that is damaged, or that belongs to a different key with the same hash, is ignored.
// - If the folder cannot be written, choices last only as long as the process.
// - The cache is thread-safe. Several processes may share the folder.
class ChoiceCache {
 public:
  // `folder` contains the files. `identity` names the device and the version of the library for
  // which the choices are valid. Choices of other identities are not found.
  ChoiceCache(std::string folder, std::string identity)
      : folder_(std::move(folder)), identity_(std::move(identity)) {}

  // Returns the choice for a key, or nullopt if there is none.
  std::optional<std::string> find(const std::string& key);
  // Stores the choice for a key. Replaces an earlier choice.
  void put(const std::string& key, const std::string& choice);

 private:
  std::string pathOf(const std::string& key) const;

  std::string folder_;
  std::string identity_;
  std::mutex mutex_;
  std::map<std::string, std::string> known_;
};

}  // namespace heddle::host
