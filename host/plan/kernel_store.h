#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/compile/image_cache.h"
#include "codegen/kernel.h"
#include "codegen/plan/analysis.h"
#include "host/device/device.h"

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
  // `plans`.
  void prepare(const std::vector<const codegen::KernelPlan*>& plans);
  // Returns entry point `entry` of a source. Requires that prepare() has loaded it before.
  KernelHandle handle(const std::string& source, const std::string& entry) const;

  // A kernel that is ready to launch. The text of its source is empty.
  struct Kernel {
    codegen::KernelPlan plan;
    std::vector<KernelHandle> handles;  // one per stage of `plan`
  };
  // Everything that decides a kernel and its arguments on one device.
  struct Key {
    int64_t segment = -1;  // the result of segmentId()
    std::vector<TensorDesc> inputs;
    std::vector<TensorDesc> outputs;
    std::vector<int32_t> alignments;  // as for codegen::planKernel()
    bool operator==(const Key&) const = default;
  };
  // Returns a number for the segment. Equal segments have equal numbers, also if they belong to
  // different programs.
  int64_t segmentId(const Fusion& segment);
  // Returns the analysis of the segment with this number. It depends on no size, so all plans share
  // it. Throws UserError if the segment cannot be one kernel.
  std::shared_ptr<const codegen::Analysis> analysisOf(int64_t id, const Fusion& segment);
  // Returns the kernel that add() has stored for the key, or nullptr.
  std::shared_ptr<const Kernel> find(const Key& key);
  // Stores a kernel. When kMostKernels are stored, all of them are dropped first.
  void add(Key key, std::shared_ptr<const Kernel> kernel);
  static constexpr size_t kMostKernels = 8192;

  // How the plans got their kernels so far.
  struct Counts {
    int64_t texts = 0;     // number of generated texts
    int64_t reused = 0;    // number of kernels that were found without generating a text
    int64_t compiled = 0;  // number of texts that were compiled
    int64_t loaded = 0;    // number of texts whose image was on disk or in the image cache
  };
  Counts counts() const;

 private:
  struct Loaded {
    std::shared_ptr<const codegen::KernelImage> image;
    std::map<std::string, KernelHandle> entries;
  };

  Device& device_;
  std::unique_ptr<codegen::ImageCache> own_images_;
  codegen::ImageCache* images_;
  std::mutex preparing_;                               // held while kernels are compiled
  mutable std::mutex mutex_;                           // guards all members below
  std::map<std::string, Loaded> loaded_;               // by source text
  std::unordered_map<std::string, int64_t> segments_;  // by text
  std::unordered_map<int64_t, std::shared_ptr<const codegen::Analysis>> analyses_;  // by segment
  std::unordered_multimap<size_t, std::pair<Key, std::shared_ptr<const Kernel>>>
      kernels_;  // by hash
  Counts counts_;
};

}  // namespace heddle::host
