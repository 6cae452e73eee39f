#include "host/device/choice_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace heddle::host {
namespace {

// Returns the FNV-1a hash, which is the same in every process. The result of std::hash may differ
// between processes.
uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

}  // namespace

std::string ChoiceCache::pathOf(const std::string& key) const {
  return fmt::format("{}/{:016x}.algorithm", folder_, fnv1a(identity_ + '\n' + key));
}

std::optional<std::string> ChoiceCache::find(const std::string& key) {
  std::lock_guard lock(mutex_);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  std::ifstream file(pathOf(key));
  std::string identity, written, choice;
  if (!std::getline(file, identity) || !std::getline(file, written) ||
      !std::getline(file, choice) || identity != identity_ || written != key) {
    return std::nullopt;
  }
  known_.emplace(key, choice);
  return choice;
}

void ChoiceCache::put(const std::string& key, const std::string& choice) {
  std::lock_guard lock(mutex_);
  known_[key] = choice;
  // The text is written to a temporary file, which is renamed once it is complete. Other processes
  // therefore never read an incomplete file.
  static std::atomic<int> counter{0};
  const std::string path = pathOf(key);
  const std::string temporary = fmt::format("{}.{}.{}.tmp", path, getpid(), counter.fetch_add(1));
  std::error_code ignored;
  std::filesystem::create_directories(folder_, ignored);
  std::ofstream file(temporary);
  file << identity_ << '\n' << key << '\n' << choice << '\n';
  file.close();
  if (file) {
    std::filesystem::rename(temporary, path, ignored);
  } else {
    std::filesystem::remove(temporary, ignored);
  }
}

}  // namespace heddle::host
