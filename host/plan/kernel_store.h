#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codegen/compile/image_cache.h"
#include "codegen/kernel.h"
#include "host/device/device.h"

namespace heddle::host {

// The kernels of one Executable, compiled and loaded once whatever the number of plans.
// Thread-safe.
class KernelStore {
 public:
  // `images` nullptr: a private cache in the default folder. Both outlive the store.
  KernelStore(Device& device, codegen::ImageCache* images);

  // Compiles the sources that are new, together, and loads every entry of their stages. Throws the
  // first error by position.
  void prepare(const std::vector<const codegen::KernelPlan*>& plans);
  // After prepare().
  KernelHandle handle(const std::string& source, const std::string& entry) const;

 private:
  struct Loaded {
    std::shared_ptr<const codegen::KernelImage> image;
    std::map<std::string, KernelHandle> entries;
  };

  Device& device_;
  std::unique_ptr<codegen::ImageCache> own_images_;
  codegen::ImageCache* images_;
  std::mutex preparing_;
  mutable std::mutex mutex_;              // of loaded_
  std::map<std::string, Loaded> loaded_;  // by source text
};

}  // namespace heddle::host
