#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/fusion.h"

namespace heddle::codegen {

enum class Target : uint8_t { Cuda, Cpp };

// Text to be compiled, with the name of its entry points. One text may hold several. Cpp: the
// names in it are of no other text, so that several texts, one behind the other, are a text.
struct KernelSource {
  Target target = Target::Cuda;
  std::string text;
  bool operator==(const KernelSource&) const = default;
};

// What a compiler made of a KernelSource: a cubin, or a shared object that is also a file.
struct KernelImage {
  std::vector<std::byte> bytes;
  std::string path;  // Cpp: where to dlopen it; Cuda: empty
};

// Compiles for one machine. Thread-safe.
class KernelCompiler {
 public:
  virtual ~KernelCompiler() = default;
  virtual Target target() const = 0;
  // Compiler and version, options, architecture or CPU features: all that decides the image
  // besides the source text and the runtime header.
  virtual std::string identity() const = 0;
  // UserError with the compiler's log and the source with line numbers when it does not compile.
  virtual std::vector<std::byte> compile(const KernelSource& source) const = 0;
  // How many sources are best compiled as one text, for whose image each of them may ask.
  virtual size_t mostAtOnce() const { return 1; }
};

// One launch of one entry point. The argument block is a struct of the kernel's own layout; it is
// complete but for pointers and run-time scalars, which are patched at their places.
struct LaunchStage {
  std::string entry;
  std::vector<std::byte> args;
  struct PointerPatch {
    int32_t offset;   // into args
    int32_t operand;  // inputs, then outputs; kWorkspace: the workspace
    bool operator==(const PointerPatch&) const = default;
  };
  static constexpr int32_t kWorkspace = -1;
  struct ScalarPatch {
    int32_t offset;
    int32_t operand;  // index among the inputs
    DType dtype;      // the type the kernel expects there
    bool operator==(const ScalarPatch&) const = default;
  };
  std::vector<PointerPatch> pointers;
  std::vector<ScalarPatch> scalars;
  // Cuda: a grid of `grid` x `grid_y` blocks of `block` threads, `shared_bytes` of dynamic shared
  // memory. Cpp: the function is `void entry(const void* args, int64_t tile_begin, int64_t
  // tile_end)` and there are `grid` tiles, in any order and on any threads.
  int64_t grid = 1;
  int32_t grid_y = 1;
  int32_t block = 1;
  int32_t shared_bytes = 0;
  bool operator==(const LaunchStage&) const = default;
};

// A kernel chosen and laid out for one set of shapes. Stages run in order on one stream; no stage
// is there when there is nothing to do (an empty output).
struct KernelPlan {
  KernelSource source;
  std::vector<LaunchStage> stages;
  int64_t workspace_bytes = 0;  // needs no initial value
};

// The scalar inputs of a segment keep their order among all inputs; `inputs[i]` is ignored there.
//
// Chooses schedule and candidate for the shapes of this run: any strides, any axes, several
// outputs. `inputs` and `outputs` are per operand, in the order of the segment's inputs() and
// outputs(); an output that is updated in place may equal an input. UserError when no schedule
// takes the segment. The source depends only on the segment and the chosen schedule (not on the
// exact sizes), so it is found in the caches for new sizes. Thread-safe.
KernelPlan planKernel(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                      const std::vector<TensorDesc>& outputs, Target target);

// The schedule in words, for `heddle dump --stage schedule`.
std::string describeSchedule(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                             const std::vector<TensorDesc>& outputs, Target target);

// Why the segment cannot be one generated kernel, or empty when it can: the rules by which
// segmentation cuts (ir/kernel_rules.h).
std::string whyNotOneKernel(const Fusion& segment);

// Images on disk. Key = full source text + runtime header + compiler identity, hashed; files are
// written under a private name and renamed, so many processes may share a folder; a damaged file
// is recompiled and replaced; a folder that cannot be written is used as it is, said once on
// stderr; the oldest files go when the folder exceeds `max_bytes`. Thread-safe; one image is
// compiled once even when several threads ask for it.
//
// Sources asked for together, of which neither this object nor the folder has an image, are
// compiled in as few runs as the compiler says, several runs at a time; one that does not compile
// is compiled alone again, for its error, and does no harm to the others.
class ImageCache {
 public:
  // Default folder: $HEDDLE_CACHE_DIR, else $XDG_CACHE_HOME/heddle, else ~/.cache/heddle.
  explicit ImageCache(std::string folder = defaultFolder(), int64_t max_bytes = int64_t{1} << 30);
  ~ImageCache();
  std::shared_ptr<const KernelImage> get(const KernelSource& source,
                                         const KernelCompiler& compiler);
  // One image a source; an image may be that of several. Throws the first error by position.
  std::vector<std::shared_ptr<const KernelImage>> get(
      const std::vector<const KernelSource*>& sources, const KernelCompiler& compiler);
  int64_t compiled() const;  // sources compiled by this object, not found on disk
  static std::string defaultFolder();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The host's C++ compiler ($HEDDLE_CXX, else c++, g++ or clang++ on PATH); nullptr when none works,
// with the reason in `why`.
std::unique_ptr<KernelCompiler> makeCppCompiler(std::string& why);

}  // namespace heddle::codegen
