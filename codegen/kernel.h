#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle::codegen {

// The language of a kernel. Cuda: for a CUDA GPU. Cpp: C++, for the CPU.
enum class Target : uint8_t { Cuda, Cpp };

// An alignment in bytes: an address with this alignment suits every access of a kernel.
constexpr int32_t kFullAlignment = 16;

// Returns the largest power of two that divides `address` (in bytes), at most kFullAlignment.
inline int32_t alignmentOf(uint64_t address) {
  const uint64_t lowest = address & (~address + 1);
  return lowest == 0 || lowest > kFullAlignment ? kFullAlignment : static_cast<int32_t>(lowest);
}

// Source text of one or several kernels. Different Cpp sources define different names, so a caller
// can concatenate their texts to one valid text.
struct KernelSource {
  Target target = Target::Cuda;
  std::string text;
  std::vector<std::string> entries = {};  // names of the entry points that the text defines
  bool operator==(const KernelSource&) const = default;
};

// The result of compiling a KernelSource: a cubin for CUDA, a shared object for C++.
struct KernelImage {
  std::vector<std::byte> bytes;             // Cpp: may be empty if `library` is set
  std::shared_ptr<void> library = nullptr;  // Cpp: a handle for dlsym(); Cuda: nullptr
  int64_t size = 0;                         // size of the image file, in bytes
};

// Compiles for one GPU architecture or one kind of CPU. Thread-safe.
class KernelCompiler {
 public:
  virtual ~KernelCompiler() = default;
  virtual Target target() const = 0;
  // Returns a text with the name, version and options of the compiler, and the GPU architecture or
  // the features of the CPU. The image depends only on this text, the source text and the runtime
  // headers that heddle adds to each source.
  virtual std::string identity() const = 0;
  // Returns the bytes of the image. Throws UserError if the source does not compile. The message
  // contains the compiler's log and the source with line numbers.
  virtual std::vector<std::byte> compile(const KernelSource& source) const = 0;
  // Returns whether the GPU can run kernels with clusters of blocks. GPUs from compute capability
  // 9.0 on can.
  virtual bool supportsClusters() const { return true; }
  // Returns the largest number of sources that a caller should concatenate and compile as one
  // text.
  virtual size_t mostAtOnce() const { return 1; }
};

// One launch of one entry point. `args` contains the bytes of the kernel's argument struct,
// complete except for pointers and run-time scalars. Each run writes the pointers and scalars at
// the offsets in `pointers` and `scalars`.
struct LaunchStage {
  std::string entry;  // name of the entry point
  std::vector<std::byte> args;
  // A pointer that each run writes into `args`.
  struct PointerPatch {
    int32_t offset;  // bytes, into args
    // Index into the inputs and then the outputs of the segment; or kWorkspace; or kCounters.
    int32_t operand;
    int64_t workspace_offset =
        0;  // kWorkspace: bytes from the start of the workspace; other operands: 0
    bool operator==(const PointerPatch&) const = default;
  };
  static constexpr int32_t kWorkspace = -1;
  // The counters: kCounterBytes bytes of device memory with kFullAlignment. They are 0 before each
  // launch, and each launch leaves them 0. Launches on one stream may therefore share them.
  static constexpr int32_t kCounters = -2;
  static constexpr int64_t kCounterBytes = 4096;
  // A run-time scalar that each run writes into `args`.
  struct ScalarPatch {
    int32_t offset;   // bytes, into args
    int32_t operand;  // index into the inputs of the segment
    DType dtype;      // the type that the kernel reads at `offset`
    bool operator==(const ScalarPatch&) const = default;
  };
  std::vector<PointerPatch> pointers;
  std::vector<ScalarPatch> scalars;
  // Cuda: a grid of `grid` x `grid_y` blocks of `block` threads, with `shared_bytes` of dynamic
  // shared memory.
  // Cpp: the function is `void entry(const void* args, int64_t tile_begin, int64_t tile_end)`. The
  // work is split into `grid` *tiles*. One call computes the tiles from tile_begin to tile_end - 1.
  // Calls for different tiles may run in any order and on any thread.
  int64_t grid = 1;
  int32_t grid_y = 1;
  int32_t block = 1;
  int32_t shared_bytes = 0;
  // Cuda: the number of bytes at the start of the workspace that the device sets to 0 before the
  // launch. If it is above 0, `pointers` contains a pointer to the start of the workspace.
  int64_t cleared_bytes = 0;
  // Cuda: true if the kernel itself waits for all earlier work of its stream
  // (hd::awaitEarlierWork()). The device may then place the blocks of the kernel on multiprocessors
  // before the writes of the previous kernel are visible.
  bool starts_early = false;
  bool operator==(const LaunchStage&) const = default;
};

// Returns the offset, in LaunchStage::args, of the pointer to the start of the workspace. Returns
// -1 if there is no such pointer.
inline int32_t workspaceOffset(const LaunchStage& stage) {
  for (const LaunchStage::PointerPatch& patch : stage.pointers) {
    if (patch.operand == LaunchStage::kWorkspace && patch.workspace_offset == 0)
      return patch.offset;
  }
  return -1;
}

// A kernel and its launches for one set of shapes. The stages run in order on one stream. If all
// outputs are empty because an axis that is not reduced has extent 0, there are no stages.
struct KernelPlan {
  KernelSource source;
  std::vector<LaunchStage> stages;
  // The size of the workspace: memory that the launches of one run share for intermediate values.
  // Kernels do not read its initial contents, except the bytes that the device has cleared
  // (LaunchStage::cleared_bytes).
  int64_t workspace_bytes = 0;
  // The parameters of the kernel, as a text that parseKernelChoice() parses. The kernel is one of
  // the candidates of the segment (docs/kernels.md). Only planKernel() sets this member.
  std::string candidate;
};

}  // namespace heddle::codegen
