#include "host/device/choice_cache.h"

#include <fmt/format.h>

#include <cstdint>

#include "codegen/compile/sha256.h"

namespace heddle::host {
namespace {

constexpr int64_t kLargestFile = 1 << 20;

// Returns the first lines of a file: the identity and the key.
std::string headOf(const std::string& identity, const std::string& key) {
  return identity + '\n' + key + '\n';
}

std::string withHash(const std::string& lines) { return lines + codegen::sha256(lines) + '\n'; }

}  // namespace

ChoiceCache::ChoiceCache(std::string folder, std::string identity)
    : identity_(std::move(identity)),
      folder_(codegen::openOrReport(folder,
                                    "algorithms and kernels are chosen again in each process")) {}

std::string ChoiceCache::nameOf(const std::string& key) const {
  return codegen::sha256(headOf(identity_, key)) + ".algorithm";
}

std::optional<std::string> ChoiceCache::find(const std::string& key) {
  std::lock_guard lock(mutex_);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  if (folder_ == nullptr) return std::nullopt;
  const auto file = folder_->read(nameOf(key), kLargestFile);
  const std::string head = headOf(identity_, key);
  if (!file || !file->bytes.starts_with(head)) return std::nullopt;
  const std::string choice =
      file->bytes.substr(head.size(), file->bytes.find('\n', head.size()) - head.size());
  if (file->bytes != withHash(head + choice + '\n')) return std::nullopt;
  known_.emplace(key, choice);
  return choice;
}

void ChoiceCache::put(const std::string& key, const std::string& choice) {
  std::lock_guard lock(mutex_);
  known_[key] = choice;
  // If the file cannot be written, only this object knows the choice.
  if (folder_ != nullptr) {
    folder_->write(nameOf(key), withHash(headOf(identity_, key) + choice + '\n'));
  }
}

}  // namespace heddle::host
