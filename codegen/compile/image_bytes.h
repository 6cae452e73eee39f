#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>

#include "codegen/kernel.h"

namespace heddle::codegen {

// Counts the bytes of images that a cache holds, and of the texts by which it finds them. If
// several texts share one image, its bytes count once. Images that are loaded from disk are not
// shared: if one compiler run created an image for several texts, the image is loaded once per
// text, and its bytes count once per text. Not thread-safe.
class ImageBytes {
 public:
  using Image = std::shared_ptr<const KernelImage>;
  void add(const Image& image, std::string_view text) {
    if (++users_[image.get()] == 1) total_ += image->size;
    total_ += static_cast<int64_t>(text.size());
  }
  // Requires that add() was called with the same arguments.
  void remove(const Image& image, std::string_view text) {
    const auto users = users_.find(image.get());
    total_ -= static_cast<int64_t>(text.size());
    if (--users->second > 0) return;
    total_ -= image->size;
    users_.erase(users);
  }
  int64_t total() const { return total_; }
  // Returns the number of texts that were added with this image and not removed.
  int64_t users(const Image& image) const { return users_.at(image.get()); }

 private:
  std::map<const KernelImage*, int64_t> users_;  // number of texts per image
  int64_t total_ = 0;
};

}  // namespace heddle::codegen
