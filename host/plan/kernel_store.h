#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/compile/image_cache.h"
#include "codegen/kernel.h"
#include "codegen/plan/desc_list.h"
#include "host/device/device.h"
#include "host/plan/stored_segment.h"
#include "ir/graph/fusion.h"
#include "ir/types/tensor.h"

namespace heddle::host {

// Holds the kernels of one Executable, or of several that share the store. A kernel is compiled and
// loaded only once, even if several plans use it. Thread-safe.
class KernelStore {
 public:
  // `device` and `images` must outlive the store. `images` nullptr: the store creates a private
  // cache in the default folder.
  KernelStore(Device& device, codegen::ImageCache* images);

  // Compiles all new sources of the kernel plans together, and loads the entry points of their
  // launches. If several sources fail to compile, throws the error of the first one in the order of
  // `plans`. While the compiler runs, no lock is held. If two threads need the same source, it is
  // compiled once (codegen/compile/image_cache.h).
  void prepare(const std::vector<const codegen::KernelPlan*>& plans);
  // Does the same, but loads nothing: prepare() then finds the images in the image cache.
  void compile(const std::vector<const codegen::KernelPlan*>& plans);
  // Returns entry point `entry` of a source. Requires that prepare() has loaded it before.
  KernelHandle handle(const std::string& source, const std::string& entry) const;

  // A kernel that is ready to launch. The text of its source is empty.
  struct Kernel {
    codegen::KernelPlan plan;
    std::vector<KernelHandle> handles;  // one per stage of `plan`
  };
  // Everything that decides a kernel and its arguments on one device.
  struct Key {
    int64_t segment = -1;  // StoredSegment::number()
    std::vector<TensorDesc> inputs;
    std::vector<TensorDesc> outputs;
    std::vector<int32_t> alignments;  // as for codegen::planKernel()
    codegen::RunSizes run;            // the same
    bool operator==(const Key&) const = default;
  };
  // Returns the object for a segment. Equal segments share it, also if they belong to different
  // programs. The names of values do not count, because kernels do not depend on them. Requires
  // that the device has a compiler.
  std::shared_ptr<StoredSegment> segmentOf(const Fusion& segment);
  // Returns StoredSegment::bind() for these operands, and counts the kernel if it exists.
  std::optional<StoredSegment::Bound> bind(StoredSegment& segment,
                                           const codegen::SegmentPlanner::Operands& operands);
  // Returns the kernel that add() has stored for the key, or nullptr.
  std::shared_ptr<const Kernel> find(const Key& key);
  // Stores a kernel that has no form (StoredSegment::add()). When kMostKernels are stored, all of
  // them are dropped first.
  void add(Key key, std::shared_ptr<const Kernel> kernel);
  static constexpr size_t kMostKernels = 8192;

  // How the plans got their kernels so far.
  struct Counts {
    int64_t texts = 0;           // number of generated texts
    int64_t reused = 0;          // number of kernels that were found without generating a text
    int64_t compiled = 0;        // number of texts that were compiled
    int64_t loaded = 0;          // number of texts whose image was on disk or in the image cache
    double compile_seconds = 0;  // time that calls spent on getting images, in seconds
  };
  Counts counts() const;

 private:
  struct Loaded {
    std::shared_ptr<const codegen::KernelImage> image;
    std::map<std::string, KernelHandle> entries;
  };

  using Images = std::vector<std::shared_ptr<const codegen::KernelImage>>;
  // The sources of the plans that are not in loaded_, each once.
  std::vector<const codegen::KernelSource*> newSources(
      const std::vector<const codegen::KernelPlan*>& plans) const;
  Images imagesOf(const std::vector<const codegen::KernelSource*>& sources);

  Device& device_;
  std::once_flag own_images_made_;
  std::unique_ptr<codegen::ImageCache> own_images_;
  codegen::ImageCache* images_;
  std::mutex loading_;                    // held while the device loads images
  mutable std::mutex mutex_;              // guards all members below; taken after loading_
  std::map<std::string, Loaded> loaded_;  // by source text
  std::unordered_map<std::string, std::shared_ptr<StoredSegment>> segments_;  // by text
  std::unordered_multimap<size_t, std::pair<Key, std::shared_ptr<const Kernel>>>
      kernels_;  // by hash
  Counts counts_;
};

}  // namespace heddle::host
