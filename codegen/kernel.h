#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph/fusion.h"

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

}  // namespace heddle::codegen
