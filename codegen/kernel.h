#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle::codegen {

enum class Target : uint8_t { Cuda, Cpp };

// Source text of one or several kernels. Names in a Cpp text occur in no other Cpp text, so the
// concatenation of several texts is again a valid text.
struct KernelSource {
  Target target = Target::Cuda;
  std::string text;
  std::vector<std::string> entries = {};  // entry points that the text defines
  bool operator==(const KernelSource&) const = default;
};

// The result of compiling a KernelSource: a cubin for CUDA, a shared object for C++.
struct KernelImage {
  std::vector<std::byte> bytes;             // Cuda; Cpp: may be empty if `library` is set
  std::shared_ptr<void> library = nullptr;  // Cpp: a handle for dlsym(), closed at the end
};

// Compiles for one GPU architecture or one kind of CPU. Thread-safe.
class KernelCompiler {
 public:
  virtual ~KernelCompiler() = default;
  virtual Target target() const = 0;
  // Returns everything that decides the image besides the source text and the runtime header:
  // compiler, version, options, and the architecture or CPU features.
  virtual std::string identity() const = 0;
  // Returns the image. Throws UserError if the source does not compile; the message contains the
  // compiler's log and the source with line numbers.
  virtual std::vector<std::byte> compile(const KernelSource& source) const = 0;
  // Returns how many sources are best compiled as one text. The image of that text then serves each
  // of these sources.
  virtual size_t mostAtOnce() const { return 1; }
};

// One launch of one entry point. The argument block is a struct whose layout the kernel decides. It
// is complete except for pointers and run-time scalars, which each run patches at the given
// offsets.
struct LaunchStage {
  std::string entry;
  std::vector<std::byte> args;
  struct PointerPatch {
    int32_t offset;   // into args
    int32_t operand;  // index among inputs, then outputs; or kWorkspace
    bool operator==(const PointerPatch&) const = default;
  };
  static constexpr int32_t kWorkspace = -1;
  struct ScalarPatch {
    int32_t offset;
    int32_t operand;  // index among the inputs
    DType dtype;      // the type that the kernel expects there
    bool operator==(const ScalarPatch&) const = default;
  };
  std::vector<PointerPatch> pointers;
  std::vector<ScalarPatch> scalars;
  // Cuda: a grid of `grid` x `grid_y` blocks of `block` threads, with `shared_bytes` of dynamic
  // shared memory.
  // Cpp: the function is `void entry(const void* args, int64_t tile_begin, int64_t tile_end)`.
  // There are `grid` tiles, which may run in any order and on any thread.
  int64_t grid = 1;
  int32_t grid_y = 1;
  int32_t block = 1;
  int32_t shared_bytes = 0;
  bool operator==(const LaunchStage&) const = default;
};

// A kernel and its launches for one set of shapes. The stages run in order on one stream. There are
// no stages if there is nothing to compute (an empty output).
struct KernelPlan {
  KernelSource source;
  std::vector<LaunchStage> stages;
  int64_t workspace_bytes = 0;  // its initial contents do not matter
};

}  // namespace heddle::codegen
