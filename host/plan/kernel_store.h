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

// The kernels of one Executable. Each is compiled and loaded once, for any number of plans.
// Thread-safe.
class KernelStore {
 public:
  // `images` nullptr: a private cache in the default folder. Both must outlive the store.
  KernelStore(Device& device, codegen::ImageCache* images);

  // Compiles all new sources together, and loads every entry point that a stage of the plans names.
  // If several sources fail, prepare() throws the error of the first one.
  void prepare(const std::vector<const codegen::KernelPlan*>& plans);
  // Returns a loaded entry. Call prepare() with its source before.
  KernelHandle handle(const std::string& source, const std::string& entry) const;

 private:
  struct Loaded {
    std::shared_ptr<const codegen::KernelImage> image;
    std::map<std::string, KernelHandle> entries;
  };

  Device& device_;
  std::unique_ptr<codegen::ImageCache> own_images_;
  codegen::ImageCache* images_;
  std::mutex preparing_;                  // held while kernels are compiled
  mutable std::mutex mutex_;              // guards loaded_
  std::map<std::string, Loaded> loaded_;  // by source text
};

}  // namespace heddle::host
