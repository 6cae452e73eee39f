#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/compile/image_bytes.h"
#include "codegen/compile/image_cache.h"
#include "codegen/kernel.h"
#include "codegen/plan/desc_list.h"
#include "host/device/device.h"
#include "host/plan/stored_segment.h"
#include "ir/graph/fusion.h"
#include "ir/types/tensor.h"

namespace heddle::host {

// Holds the kernels of one Executable, or of several that share the store. A kernel is compiled and
// loaded only once, even if several plans use it. Exception: if unloadUnused() has unloaded a
// kernel, the next plan that needs it loads it again. A codegen::KernelPlan describes a kernel as a
// list of stages; each stage is one launch. Thread-safe.
class KernelStore {
 public:
  // `device` and `images` must outlive the store. `images` nullptr: the store creates a private
  // cache in the default folder. `most_bytes`: CacheLimits::kernel_bytes.
  KernelStore(Device& device, codegen::ImageCache* images, int64_t most_bytes);

  // The loaded code of a kernel: one element per stage.
  using Loaded = std::vector<LoadedKernel>;
  struct Prepared {
    std::vector<Loaded> kernels;  // per element of the argument `plans` of prepare()
    int64_t bytes = 0;            // size of the images and texts that were not loaded before
  };
  // Compiles all new sources of the kernel plans together, and loads the entry points of their
  // launches. If several sources fail to compile, throws the error of the first one in the order of
  // `plans`. While the compiler runs, no lock is held. If two threads need the same source, it is
  // compiled once (codegen/compile/image_cache.h).
  Prepared prepare(const std::vector<const codegen::KernelPlan*>& plans);
  // Compiles like prepare(), but loads nothing. A later prepare() finds the images in the image
  // cache.
  void compile(const std::vector<const codegen::KernelPlan*>& plans);
  // While the loaded kernels exceed `most_bytes`, unloads kernels that no plan uses any more. All
  // kernels of a source text are unloaded together. Begins with the text whose latest prepare() is
  // longest ago.
  void unloadUnused();

  // A kernel that is ready to launch. The text of its source is empty.
  struct Kernel {
    codegen::KernelPlan plan;
    Loaded loaded;  // one per stage of `plan`
  };
  // Everything that decides a kernel and its arguments on one device. A candidate is one of several
  // ways to compute a kernel.
  struct Key {
    int64_t segment = -1;  // StoredSegment::number()
    std::vector<TensorDesc> inputs;
    std::vector<TensorDesc> outputs;
    std::vector<int32_t> alignments;  // the argument of codegen::planKernel()
    codegen::RunSizes run;            // the argument of codegen::planKernel()
    std::string candidate = {};       // parameters of the chosen candidate; "": none was chosen
    bool operator==(const Key&) const = default;
  };
  // Returns the StoredSegment of a segment. Equal segments share one StoredSegment, also if they
  // belong to different programs. Segments that differ only in their own name and in the names of
  // their values count as equal, because kernels do not depend on these names. Requires that the
  // device has a compiler.
  std::shared_ptr<StoredSegment> segmentOf(const Fusion& segment);
  // Returns StoredSegment::bind() for these operands. If that finds a kernel, increments
  // Counts::reused.
  std::optional<StoredSegment::Bound> bind(StoredSegment& segment,
                                           const codegen::SegmentPlanner::Operands& operands);
  // Returns the kernel that add() has stored for the key. Returns nullopt if there is none, or if
  // it was unloaded.
  std::optional<Kernel> find(const Key& key);
  // Stores a kernel for find(). Call this if StoredSegment::add() does not accept the kernel. Does
  // not keep the kernel loaded. If kMostKernels are stored, drops all of them first.
  void add(Key key, codegen::KernelPlan plan, const Loaded& loaded);
  static constexpr size_t kMostKernels = 8192;

  // How the plans got their kernels so far.
  struct Counts {
    int64_t texts = 0;           // number of generated texts
    int64_t reused = 0;          // number of kernels that were found without generating a text
    int64_t compiled = 0;        // number of texts that were compiled
    int64_t loaded = 0;          // number of texts whose image was on disk or in the image cache
    int64_t unloaded = 0;        // number of texts whose kernels were unloaded
    int64_t bytes = 0;           // bytes of the kernels that are loaded now
    double compile_seconds = 0;  // time in seconds that calls spent in ImageCache::get()
  };
  Counts counts() const;

 private:
  using Image = std::shared_ptr<const codegen::KernelImage>;
  // A loaded source, which is a text with one or more kernels. Its kernels are in use if some
  // pointer in `entries` has a copy outside of this object.
  struct Source {
    Image image;
    std::map<std::string, LoadedKernel> entries;
    int64_t last_use = 0;  // value of uses_ at the latest prepare()
    bool isUsed() const;
  };
  using SourcePtr = std::shared_ptr<Source>;
  struct Stored {
    codegen::KernelPlan plan;
    WeakKernels loaded;
  };

  // Returns the sources of the plans by text. New sources have no image yet.
  std::map<std::string_view, SourcePtr> sourcesOf(
      const std::vector<const codegen::KernelPlan*>& plans) const;
  // Returns one image per source.
  std::vector<Image> imagesOf(const std::vector<const codegen::KernelSource*>& sources);
  // Gets the images of the sources that have none.
  void addImages(const std::vector<const codegen::KernelPlan*>& plans,
                 std::map<std::string_view, SourcePtr>& sources);
  LoadedKernel entryOf(Source& source, const std::string& entry);

  Device& device_;
  std::once_flag own_images_made_;
  std::unique_ptr<codegen::ImageCache> own_images_;
  codegen::ImageCache* images_;
  std::mutex loading_;  // held while the device loads images
  // Guards all members below. A thread that locks both mutexes locks loading_ first.
  mutable std::mutex mutex_;
  std::map<std::string, SourcePtr> sources_;  // by source text
  codegen::ImageBytes bytes_;                 // total size of sources_
  const int64_t most_bytes_;
  int64_t uses_ = 0;  // number of uses of sources by prepare() so far
  std::unordered_map<std::string, std::shared_ptr<StoredSegment>> segments_;  // by text
  std::unordered_multimap<size_t, std::pair<Key, Stored>> kernels_;           // by hash
  Counts counts_;
};

}  // namespace heddle::host
