#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace heddle::host {

// Stores the chosen algorithms, in memory and as files next to the kernel images. `identity` is the
// device and the library version for which the choices are valid.
// - Each key has one file. Its name is a hash of identity and key. Its lines are the identity, the
//   key, and the choice.
// - A file that is damaged or belongs to another key is ignored.
// - If the folder cannot be written, choices last only as long as the process.
// - Thread-safe. Several processes may share the folder.
class ChoiceCache {
 public:
  ChoiceCache(std::string folder, std::string identity)
      : folder_(std::move(folder)), identity_(std::move(identity)) {}

  std::optional<std::string> find(const std::string& key);
  void put(const std::string& key, const std::string& choice);  // replaces an earlier choice

 private:
  std::string pathOf(const std::string& key) const;

  std::string folder_;
  std::string identity_;
  std::mutex mutex_;
  std::map<std::string, std::string> known_;
};

}  // namespace heddle::host
