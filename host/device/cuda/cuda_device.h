#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/device/cuda/cuda_library.h"
#include "host/device/cuda/kernel/cuda_check.h"
#include "host/device/cuda/kernel/cuda_kernel.h"
#include "host/device/cuda/matmul/cuda_matmul.h"
#include "host/device/device.h"
#include "host/device/kept_blocks.h"

namespace heddle::host {

// Allocates from CUDA's default memory pool of a GPU. The constructor sets the pool to keep freed
// memory. KeptBlocks (host/device/kept_blocks.h) keeps small freed blocks. A later allocation of
// the same rounded size on the same stream can use them without a call of cudaMallocAsync().
class CudaAllocator : public Allocator {
 public:
  explicit CudaAllocator(int device);
  // Requires that the caller has waited for all work of the device.
  ~CudaAllocator() override;
  // Throws std::bad_alloc if there is not enough memory. what() then contains the CUDA call, the
  // size and the free memory. If the pool has too little memory and there are kept blocks, the call
  // first waits for all work of the device, frees the kept blocks and tries again.
  void* allocate(int64_t bytes, Stream stream) override;
  void deallocate(void* memory, int64_t bytes, Stream stream) noexcept override;
  // Frees the kept blocks of a stream. Call this function before the stream is destroyed.
  void freeKept(Stream stream) noexcept;

 private:
  // Waits for all work of the device and frees all kept blocks. Returns false, without waiting, if
  // there are none.
  bool freeAllKept();

  int device_;
  KeptBlocks kept_;
};

// A GPU, used through the CUDA runtime.
//
// Errors:     a function that enqueues work throws if CUDA cannot enqueue it. If a kernel fails
//             while it runs, a later call throws the error, usually synchronize(). From then on,
//             all CUDA calls that use the GPU return this error. If Issue::errors contains an
//             error, the device enqueues only host tasks with this Issue, and no other work. When
//             CUDA reaches such a task, the device skips it.
// Host tasks: the function that is passed to hostTask() must not call CUDA, because CUDA forbids
//             calls from a host function of a stream.
class CudaDevice : public Device {
 public:
  explicit CudaDevice(int ordinal);
  ~CudaDevice() override;

  DeviceKind kind() const override { return DeviceKind::Cuda; }
  std::string description() const override { return description_; }
  std::string driver() const override { return driver_; }
  int ordinal() const { return ordinal_; }
  Allocator& allocator() override { return *allocator_; }
  Current makeCurrent() override { return host::makeCurrent(ordinal_); }
  void restoreCurrent(const Current& before) noexcept override { host::restoreCurrent(before); }
  std::string otherOwner(const void* data) override;
  int64_t ownedBlockBytes() const override;

  Stream createStream() override;
  Stream createUrgentStream() override;
  void destroyStream(Stream stream) noexcept override;
  Event createEvent() override;
  void destroyEvent(Event event) noexcept override;
  void recordEvent(Event event, Stream stream) override;
  void waitEvent(Stream stream, Event event) override;
  bool eventDone(Event event) override;
  void synchronize(Event event) override;
  Event createTimer() override;
  double secondsBetween(Event from, Event to) override;
  void beginRange(const char* text) override;
  void endRange() override;

  const codegen::KernelCompiler* compiler() const override;
  LoadedKernel load(const codegen::KernelImage& image, const std::string& entry) override;
  void launch(KernelHandle kernel, const codegen::LaunchStage& stage, const std::byte* args,
              Stream stream, const Issue& issue) override;
  std::optional<KernelResources> resourcesOf(KernelHandle kernel,
                                             const codegen::LaunchStage& stage) override;
  std::shared_ptr<const PreparedMatmul> prepareMatmul(const MatmulSpec& spec,
                                                      const AlgorithmChoices& choices) override;
  std::set<std::string> algorithmQuestions(const MatmulSpec& spec) override;
  std::string chooseAlgorithm(const std::string& question, Stream stream,
                              const std::string& given) override;
  bool choosesAlgorithms() const override { return true; }
  int64_t libraryWorkspace(const LibraryCall& call) const override;
  void library(const LibraryCall& call, Stream stream, const Issue& issue) override;
  void communicate(comm::Communicator& communicator, std::span<const comm::Operation> group,
                   Stream stream, const Issue& issue) override;
  void copy(void* dst, const void* src, int64_t bytes, Stream stream, const Issue& issue) override;
  void fill(void* dst, int byte, int64_t bytes, Stream stream, const Issue& issue) override;
  void hostTask(std::function<void()> task, Stream stream, const Issue& issue) override;

 private:
  CudaMatmul& matmuls();
  // Performs the operations of a team of one rank.
  void communicateAlone(std::span<const comm::Operation> group, Stream stream);

  int ordinal_;
  bool is_only_one_;          // true: the process sees no other GPU
  std::string architecture_;  // "sm_90"
  bool starts_early_;         // LaunchStage::starts_early has an effect on this GPU
  std::string description_;
  std::string driver_;
  std::unique_ptr<CudaAllocator> allocator_;
  mutable std::once_flag compiler_once_;
  mutable std::unique_ptr<codegen::KernelCompiler> compiler_;
  std::once_flag matmul_once_;
  std::unique_ptr<CudaMatmul> matmul_;
  CudaLibrary library_;
};

// Returns the number of usable GPUs, or 0 with the reason in `why`.
int countCudaDevices(std::string& why);
// Returns the architecture of a GPU, such as "sm_90".
std::string architectureOf(int ordinal);

}  // namespace heddle::host
