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

// Returns the details that an allocator has stored in the exception: the API that failed and the
// free memory. The result starts with "; ", so that it can be appended to a message. Returns "" if
// there are no details.
std::string saidBy(const std::bad_alloc& why);

enum class DeviceKind : uint8_t { Null, Cpu, Cuda };
std::string_view name(DeviceKind kind);

// Opaque handles. On CUDA they are cudaStream_t and cudaEvent_t, so that a caller may pass its own
// stream. On the CPU and the null device they are pointers that the device created. A null stream
// is the device's default stream. On CUDA it is CUDA's default stream. On other devices it is an
// ordinary stream, which orders only its own work.
using Stream = void*;
using Event = void*;
using KernelHandle = const void*;

class WorkObserver;

// Holds the first error of one run. Work of the run that has not begun is then skipped.
// Thread-safe.
class ErrorSink {
 public:
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Stores the error if it is the first one. `instruction` is the index of the failed instruction
  // in the program, or -1.
  void report(std::exception_ptr error, int32_t instruction) noexcept;
  // Throws the stored error. Returns if there is none. The message starts with the index of the
  // instruction, if it is known, and with its text, if `instruction_texts` contains it. UserError
  // remains UserError, std::bad_alloc becomes UserError, and every other exception becomes
  // InternalError.
  void rethrow(const std::vector<std::string>* instruction_texts = nullptr) const;
  void clear();

 private:
  mutable std::mutex mutex_;
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
  int32_t instruction_ = -1;
};

// Names the run and the instruction to which a piece of work belongs.
//
// Errors:    if the work fails after the call has returned, the error is reported to `errors`. All
//            work with the same sink that has not begun is then skipped. Without a sink the error
//            is printed on stderr.
// Lifetimes: `errors` and `observer` must outlive the work.
struct Issue {
  ErrorSink* errors = nullptr;
  int32_t instruction = -1;          // its index in the program
  WorkObserver* observer = nullptr;  // nullptr: the work is not observed
  int32_t step = -1;                 // index of the step in the plan
};

// Receives a call when a stream begins a piece of work and when it ends the work. Only devices
// whose streams are threads call it, from the thread that does the work.
class WorkObserver {
 public:
  virtual ~WorkObserver() = default;
  // `communicates` says whether the work waits for other ranks. The device later passes the result
  // of begin() to end() as `begun`.
  virtual int64_t begin(const Issue& issue, bool communicates) noexcept = 0;
  virtual void end(const Issue& issue, bool communicates, int64_t begun) noexcept = 0;
};

// Allocates device memory in stream order. Work on `stream` may use new memory at once. Memory that
// was freed on `stream` may be allocated again by later calls on the same stream. Thread-safe.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // Returns memory with 256-byte alignment. `bytes` must be positive. Throws std::bad_alloc if
  // there is not enough memory.
  virtual void* allocate(int64_t bytes, Stream stream) = 0;
  // Frees memory after all work that has been enqueued on `stream`. `bytes` is the size that was
  // passed to allocate().
  virtual void deallocate(void* memory, int64_t bytes, Stream stream) noexcept = 0;
};

// Passes calls on to another allocator and counts the bytes that are allocated. Thread-safe.
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

// The function that is applied to each element of a matrix product. The element is rounded once,
// after the function. GeluTanh is the tanh approximation (Hendrycks and Gimpel 2016).
enum class Activation : uint8_t { None, Relu, GeluTanh };

// A matrix product c = activation(a x b + bias) of row-major logical matrices:
//   a [batch..., m, k], b [batch..., k, n], c [batch..., m, n], bias [n].
//
// Batch:      the batch axes of the operands are aligned at the rightmost axis. a and b may lack a
//             batch axis or have extent 1 along it; they are then broadcast.
// Strides:    any, in elements. The device copies an operand that its library cannot read.
// Dtypes:     a, b and c have one dtype. Exception: a and b have f8 types, which may differ, and c
//             is f32, f16 or bf16. The bias has the dtype of c.
// Arithmetic: floats accumulate in f32, f64 in f64. Integers wrap. A bool result is the OR of ANDs.
// Gelu:       the CPU and heddle's own CUDA kernels (host/device/fallback_matmul.h) round only
//             once. The gelu of cuBLASLt has an error of 2e-5 of the f32 sum. For a half type,
//             cuBLASLt also rounds the sum before it applies gelu.
struct MatmulSpec {
  // The expected alignment of each operand in bytes: a power of two, at most 256. It follows from
  // the operand's offset in its buffer if every buffer is 256-byte aligned. A run with smaller
  // alignments is correct but may be slower.
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
  int32_t spare_sms = 0;  // SMs of the GPU that the matrix product leaves to concurrent work
  bool operator==(const MatmulSpec&) const = default;
};

struct MatmulOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;  // nullptr: none
  void* c = nullptr;
  void* workspace = nullptr;  // workspaceBytes(), 256-byte aligned, not initialised
};

// A matrix product for which everything except the addresses is decided.
//
// Threads:   immutable; several threads may run it.
// Lifetimes: it must outlive the work that it enqueues, and its device must outlive it.
class PreparedMatmul {
 public:
  virtual ~PreparedMatmul() = default;
  virtual int64_t workspaceBytes() const { return 0; }
  virtual void run(const MatmulOperands& operands, Stream stream, const Issue& issue) const = 0;
};

// The chosen algorithms of a library, as text. The key of each is a question: a text that contains
// everything on which the choice depends, such as the sizes of a matrix product and the GPU.
using AlgorithmChoices = std::map<std::string, std::string>;

// Memory, streams, events and work of one device. Work is enqueued on a stream and runs in stream
// order. A call returns before its work is done.
//
// Threads: thread-safe, except that only one thread at a time may use a stream.
class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceKind kind() const = 0;
  virtual std::string description() const = 0;  // "cpu (2 threads, avx512)", "cuda:0 NVIDIA H200"
  virtual Allocator& allocator() = 0;           // the device's own pool

  virtual Stream createStream() = 0;
  // Creates a stream with high priority: a GPU starts its waiting work before the waiting work of
  // other streams.
  virtual Stream createUrgentStream() { return createStream(); }
  virtual void destroyStream(Stream stream) noexcept = 0;  // waits for its work
  virtual Event createEvent() = 0;
  virtual void destroyEvent(Event event) noexcept = 0;
  virtual void recordEvent(Event event, Stream stream) = 0;
  // Delays later work on `stream` until the work before the latest recordEvent() is done. An event
  // that was never recorded counts as done.
  virtual void waitEvent(Stream stream, Event event) = 0;
  virtual bool eventDone(Event event) = 0;
  virtual void synchronize(Event event) = 0;  // blocks the calling thread
  // Creates an event that also stores the time (CUDA; elsewhere a plain event).
  virtual Event createTimer() { return createEvent(); }
  // Returns the seconds between two timers. Both must be done. Returns 0 except on CUDA.
  virtual double secondsBetween(Event, Event) { return 0; }
  // Begin and end a named range for profilers (CUDA only). The range contains the work that the
  // calling thread enqueues between the two calls.
  virtual void beginRange(const char*) {}
  virtual void endRange() {}

  // Returns the compiler for this device. The first call finds or creates it. Returns nullptr if
  // there is no compiler; whyNoCompiler() then returns the reason.
  virtual const codegen::KernelCompiler* compiler() const = 0;
  virtual std::string whyNoCompiler() const { return {}; }
  // Loads one entry point of an image. The device owns the handle.
  virtual KernelHandle load(const codegen::KernelImage& image, const std::string& entry) = 0;
  // Enqueues one launch. `args` is copied before the call returns.
  virtual void launch(KernelHandle kernel, const codegen::LaunchStage& stage, const std::byte* args,
                      Stream stream, const Issue& issue) = 0;

  // Prepares a matrix product. The algorithm is taken from `choices`. If `choices` has none, the
  // library's first proposal is used. That proposal is the same in every process.
  // Errors: UserError if sizes or dtypes disagree, or if the device's library cannot compute this
  // matrix product.
  virtual std::shared_ptr<const PreparedMatmul> prepareMatmul(const MatmulSpec& spec,
                                                              const AlgorithmChoices& choices) = 0;
  // Returns the questions (see AlgorithmChoices) that prepareMatmul() looks up. Returns an empty
  // set if there is nothing to choose.
  virtual std::set<std::string> algorithmQuestions(const MatmulSpec&) { return {}; }
  // Chooses an algorithm for one question, which this device or the device of another rank has
  // returned. Measures on `stream` unless the choice is already stored. Returns "" if no choice was
  // made.
  virtual std::string chooseAlgorithm(const std::string&, Stream) { return {}; }
  // Returns whether algorithmQuestions() may return a set that is not empty. The result must be the
  // same on every rank of a job.
  virtual bool choosesAlgorithms() const { return false; }

  // Returns the workspace bytes that library() needs for calls with these descriptors. Pointers are
  // ignored. UserError if the device has no such function for these dtypes or sizes.
  virtual int64_t libraryWorkspace(const LibraryCall& call) const = 0;
  // Enqueues a library function. The result must have at least one element.
  virtual void library(const LibraryCall& call, Stream stream, const Issue& issue) = 0;
  // Enqueues a group of collectives. The group is copied with its lists of counts. UserError if the
  // transport cannot access this device's memory.
  virtual void communicate(comm::Communicator& communicator, std::span<const comm::Operation> group,
                           Stream stream, const Issue& issue) = 0;
  // Copies contiguous bytes. `dst` and `src` may each be device memory or host memory.
  virtual void copy(void* dst, const void* src, int64_t bytes, Stream stream,
                    const Issue& issue) = 0;
  virtual void fill(void* dst, int byte, int64_t bytes, Stream stream, const Issue& issue) = 0;
  // Runs `task` on the host in stream order (for Check, Print and the reference evaluator). The
  // task must not call the device and must not wait for other work of the device.
  virtual void hostTask(std::function<void()> task, Stream stream, const Issue& issue) = 0;
};

// Creates the device of one GPU. Throws UserError if the CUDA module, a driver, or that GPU is
// missing; the message says which.
std::unique_ptr<Device> makeCudaDevice(int ordinal);
// Returns the number of usable GPUs, or 0 with the reason in `why`.
int cudaDeviceCount(std::string& why);

}  // namespace heddle::host
