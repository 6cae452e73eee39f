#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace heddle::host {

// Choices among algorithms, in memory and as files beside the kernel images: one file a key, named
// by its hash, with the key and the choice as two lines. `identity` (device and library version)
// stands in front of every key. Files that are damaged or of another key are as good as absent; a
// folder that takes no files keeps nothing beyond the process. Safe for threads and for processes.
class ChoiceCache {
 public:
  ChoiceCache(std::string folder, std::string identity)
      : folder_(std::move(folder)), identity_(std::move(identity)) {}

  std::optional<std::string> find(const std::string& key);
  void put(const std::string& key, const std::string& choice);

 private:
  std::string pathOf(const std::string& key) const;

  std::string folder_;
  std::string identity_;
  std::mutex mutex_;
  std::map<std::string, std::string> known_;
};

}  // namespace heddle::host
