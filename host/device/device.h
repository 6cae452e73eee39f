#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "codegen/kernel.h"
#include "comm/communicator.h"
#include "host/device/library_call.h"
#include "ir/types/tensor.h"

namespace heddle::host {

// What an allocator adds to the bare exception, as "; ..." to append: the API that failed, what is
// free. Empty when it says nothing.
std::string saidBy(const std::bad_alloc& why);

enum class DeviceKind : uint8_t { Null, Cpu, Cuda };
std::string_view name(DeviceKind kind);

// Opaque handles. Cuda: cudaStream_t and cudaEvent_t, so that a caller may pass its own stream.
// Cpu, Null: pointers the device made. A null stream is the device's default stream, which orders
// nothing but its own work (Cuda: CUDA's default stream).
using Stream = void*;
using Event = void*;
using KernelHandle = const void*;

class WorkObserver;

// The first error of one run. Work that was enqueued behind it is skipped. Thread-safe.
class ErrorSink {
 public:
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Keeps the first; `instruction` is its index in the program.
  void report(std::exception_ptr error, int32_t instruction) noexcept;
  // Throws the error again with the instruction's index in front of its message, if there is one.
  void rethrow(const std::vector<std::string>* instruction_texts = nullptr) const;
  void clear();

 private:
  mutable std::mutex mutex_;
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
  int32_t instruction_ = -1;
};

// Whose work it is: errors that surface after the call go to `errors`, which outlives the work;
// work enqueued behind the first of them is skipped. With no sink an error is printed on stderr.
struct Issue {
  ErrorSink* errors = nullptr;
  int32_t instruction = -1;
  WorkObserver* observer = nullptr;  // nullptr: nobody observes the work
  int32_t step = -1;                 // of the plan
};

// Is told when a stream begins and ends a piece of work. Devices whose streams are threads call it
// from the thread that does the work; the other devices never call it. Outlives the work.
class WorkObserver {
 public:
  virtual ~WorkObserver() = default;
  // `communicates`: the work waits for other ranks. The result is given to end().
  virtual int64_t begin(const Issue& issue, bool communicates) noexcept = 0;
  virtual void end(const Issue& issue, bool communicates, int64_t begun) noexcept = 0;
};

// Where memory comes from. `stream` orders it: memory may be used on that stream at once, and
// memory given back may be handed out again to later work on the same stream. Thread-safe.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // 256-byte aligned; `bytes` > 0. Throws std::bad_alloc when there is no memory.
  virtual void* allocate(int64_t bytes, Stream stream) = 0;
  virtual void deallocate(void* memory, int64_t bytes, Stream stream) noexcept = 0;
};

// Counts what goes through to another allocator. Thread-safe.
class TrackingAllocator : public Allocator {
 public:
  explicit TrackingAllocator(Allocator& inner) : inner_(inner) {}
  void* allocate(int64_t bytes, Stream stream) override;
  void deallocate(void* memory, int64_t bytes, Stream stream) noexcept override;
  int64_t heldBytes() const { return held_.load(); }
  int64_t peakBytes() const { return peak_.load(); }
  void resetPeak() { peak_.store(held_.load()); }

 private:
  Allocator& inner_;
  std::atomic<int64_t> held_{0};
  std::atomic<int64_t> peak_{0};
};

// What is applied to each element of a product before its one rounding.
enum class Activation : uint8_t { None, Relu, GeluTanh };

// The gelu of cuBLASLt, used but for f64, is off by 2e-5 of what is added up in f32, and by what a
// half type rounds away before it; heddle's own, for f64, and the CPU's have the one rounding only.
//
// c = activation(a x b + bias) for row-major logical matrices, described by strides in elements:
//   a [batch..., m, k], b [batch..., k, n], c [batch..., m, n], bias [n].
// Batch axes are matched from the right; a and b may lack some or have extent 1 there. Accumulates
// in f32 (f64 for f64, wrapping around for integers); one dtype, but for c (and bias) of f8 types:
// f32, f16, bf16 or the same. Any strides; the device copies what its library cannot read.
struct MatmulSpec {
  // The largest power of two, up to 256, that divides each address when every buffer is 256-byte
  // aligned. A run with operands that are aligned less is right, but may be slower.
  struct Alignment {
    int64_t a = 256;
    int64_t b = 256;
    int64_t c = 256;
    int64_t bias = 256;
    bool operator==(const Alignment&) const = default;
  };

  TensorDesc a;
  TensorDesc b;
  TensorDesc c;
  std::optional<TensorDesc> bias;
  Activation activation = Activation::None;
  bool tf32 = false;  // f32 operands may be rounded to 10 bits of mantissa
  Alignment alignment;
  int32_t spare_sms = 0;  // of a GPU, that the product leaves to what runs beside it
  bool operator==(const MatmulSpec&) const = default;
};

struct MatmulOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;  // nullptr: none
  void* c = nullptr;
  void* workspace = nullptr;  // workspaceBytes(), 256-byte aligned; its content does not matter
};

// A product with everything settled but its addresses. Immutable: several threads may run it. It
// outlives the work it enqueues, and its device outlives it.
class PreparedMatmul {
 public:
  virtual ~PreparedMatmul() = default;
  virtual int64_t workspaceBytes() const { return 0; }
  virtual void run(const MatmulOperands& operands, Stream stream, const Issue& issue) const = 0;
};

// What a library's choice among its algorithms depends on, as text, and the choice.
using AlgorithmChoices = std::map<std::string, std::string>;

// Memory, streams, events and work of one device. All work is enqueued on a stream and runs in its
// order; calls return before the work is done. Thread-safe, except that one stream is used by one
// thread at a time.
class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceKind kind() const = 0;
  virtual std::string description() const = 0;  // "cpu (2 threads, avx512)", "cuda:0 NVIDIA H200"
  virtual Allocator& allocator() = 0;           // the device's own pool

  virtual Stream createStream() = 0;
  // Of its work and that of other streams, a GPU begins this first.
  virtual Stream createUrgentStream() { return createStream(); }
  virtual void destroyStream(Stream stream) noexcept = 0;  // waits for its work
  virtual Event createEvent() = 0;
  virtual void destroyEvent(Event event) noexcept = 0;
  virtual void recordEvent(Event event, Stream stream) = 0;
  // Later work on `stream` starts after the work before the latest recordEvent; an event that was
  // never recorded is done.
  virtual void waitEvent(Stream stream, Event event) = 0;
  virtual bool eventDone(Event event) = 0;
  virtual void synchronize(Event event) = 0;  // the host waits
  // Cuda: an event that also keeps the time, and the time from one to another, both done.
  virtual Event createTimer() { return createEvent(); }
  virtual double secondsBetween(Event, Event) { return 0; }
  // Cuda: a named range of the calling thread for profilers, around what it enqueues.
  virtual void beginRange(const char*) {}
  virtual void endRange() {}

  // Source, compiled for this device; nullptr: no compiler here (Cpu: codegen::makeCppCompiler says
  // why). Found or made at the first call.
  virtual const codegen::KernelCompiler* compiler() const = 0;
  virtual KernelHandle load(const codegen::KernelImage& image, const std::string& entry) = 0;
  // `args` is copied before the call returns.
  virtual void launch(KernelHandle kernel, const codegen::LaunchStage& stage, const std::byte* args,
                      Stream stream, const Issue& issue) = 0;
  // UserError for sizes that do not fit and for what the device's library does not compute. An
  // algorithm is taken from `choices`; where they have none it is the library's first guess, which
  // is the same in every process.
  virtual std::shared_ptr<const PreparedMatmul> prepareMatmul(const MatmulSpec& spec,
                                                              const AlgorithmChoices& choices) = 0;
  // The keys that prepareMatmul() looks up in its choices; none when there is nothing to choose.
  virtual std::set<std::string> algorithmQuestions(const MatmulSpec&) { return {}; }
  // The choice for one key, of this device or of a peer's, measured on `stream` unless it is known
  // already; empty: no choice was made.
  virtual std::string chooseAlgorithm(const std::string&, Stream) { return {}; }
  // Whether algorithmQuestions() ever asks: the same on every rank of a job.
  virtual bool choosesAlgorithms() const { return false; }
  // Bytes that library() wants for calls with these descriptors; pointers are not looked at.
  // UserError when the device has no such function for these types or sizes.
  virtual int64_t libraryWorkspace(const LibraryCall& call) const = 0;
  // The result has elements.
  virtual void library(const LibraryCall& call, Stream stream, const Issue& issue) = 0;
  // A collective on `stream`; the group is copied with its lists of counts. UserError when the
  // transport cannot reach this device's memory.
  virtual void communicate(comm::Communicator& communicator, std::span<const comm::Operation> group,
                           Stream stream, const Issue& issue) = 0;
  // Device or host memory on either side (the device tells which). Bytes are contiguous.
  virtual void copy(void* dst, const void* src, int64_t bytes, Stream stream,
                    const Issue& issue) = 0;
  virtual void fill(void* dst, int byte, int64_t bytes, Stream stream, const Issue& issue) = 0;
  // Runs `task` on the host in stream order: Check, Print, the reference evaluator. It must neither
  // call the device nor wait for other work of it.
  virtual void hostTask(std::function<void()> task, Stream stream, const Issue& issue) = 0;
};

// UserError naming what is missing: the module, a driver, or that GPU.
std::unique_ptr<Device> makeCudaDevice(int ordinal);
// 0 with the reason in `why` when CUDA cannot be used here.
int cudaDeviceCount(std::string& why);

}  // namespace heddle::host
