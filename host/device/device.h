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

// Returns the details that an allocator has stored in the exception: the failed API call and the
// free memory. The result starts with "; ", for appending to a message. Returns "" if there are no
// details.
std::string saidBy(const std::bad_alloc& why);

enum class DeviceKind : uint8_t { Null, Cpu, Cuda };
std::string_view name(DeviceKind kind);

// Opaque handles of streams, events and loaded kernels. On CUDA, a Stream is a cudaStream_t, an
// Event is a cudaEvent_t, and a caller may pass its own stream. The CPU device and the null device
// define their own handles. nullptr as a Stream is the default stream of the device. On CUDA this
// is CUDA's default stream. On the CPU and the null device it behaves like every other stream.
using Stream = void*;
using Event = void*;
using KernelHandle = const void*;
// Owns a loaded kernel. get() returns the KernelHandle. The kernel is unloaded when the last copy
// is destroyed. All launches of the kernel must be done before that. A copy may outlive the device.
using LoadedKernel = std::shared_ptr<const void>;

class WorkObserver;

// Holds the first error of one run. After an error, the devices skip further work of the run (see
// Issue). Thread-safe.
class ErrorSink {
 public:
  ErrorSink() = default;
  // report() makes failed() true and then sets `any_error`. `any_error` must outlive this object,
  // and several sinks may share it.
  explicit ErrorSink(std::atomic<bool>& any_error) : any_error_(&any_error) {}
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Stores the error if it is the first one. `instruction` is the index of the failed instruction
  // in the program; -1: unknown.
  void report(std::exception_ptr error, int32_t instruction) noexcept;
  // Throws the stored error. Does nothing if there is none. If the instruction is known, its index
  // comes before the message, with its text if `instruction_texts` contains it. UserError remains
  // UserError, std::bad_alloc becomes UserError, and every other exception becomes InternalError.
  void rethrow(const std::vector<std::string>* instruction_texts = nullptr) const;
  // Removes the stored error and makes failed() false. Does not change `any_error`.
  void clear();

 private:
  mutable std::mutex mutex_;
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
  int32_t instruction_ = -1;
  std::atomic<bool>* any_error_ = nullptr;
};

// Identifies the run and the instruction to which a piece of work belongs.
//
// Errors:    if the work fails on the CPU device, the device reports the error to `errors`. If
//            `errors` is nullptr, the device prints the error to stderr. A CUDA device does the
//            same for host tasks only (Device::hostTask()). If other work fails on a CUDA device, a
//            later call of the device throws the error. Once `errors` contains an error, the
//            devices skip work with the same `errors`. The CPU device skips all work that has not
//            begun. A CUDA device skips host tasks that have not begun, and enqueues no other work.
// Lifetimes: `errors` and `observer` must outlive the work.
struct Issue {
  ErrorSink* errors = nullptr;
  int32_t instruction = -1;          // index of the instruction in the program; -1: none
  WorkObserver* observer = nullptr;  // nullptr: no observer
  int32_t step = -1;                 // index of the step in the plan of the run; -1: none
};

// An observer of the work on streams. Only a CPU device calls it, on the thread that performs the
// work.
class WorkObserver {
 public:
  virtual ~WorkObserver() = default;
  // The device calls begin() before a piece of work and end() after it, even if the device skips
  // the work because of an earlier error. `communicates` says whether the work is a group of
  // communication operations. The device passes the result of begin() to end() as `begun`.
  virtual int64_t begin(const Issue& issue, bool communicates) noexcept = 0;
  virtual void end(const Issue& issue, bool communicates, int64_t begun) noexcept = 0;
};

// Allocates device memory in stream order. Work that is enqueued on `stream` after allocate() may
// use the new memory. allocate() may return memory that was freed on the same stream, without
// waiting for the device. Thread-safe.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // Returns memory with 256-byte alignment. `bytes` must be positive. Throws std::bad_alloc if the
  // device does not have enough memory.
  virtual void* allocate(int64_t bytes, Stream stream) = 0;
  // Frees memory once all work that has been enqueued on `stream` is done. Returns without waiting.
  // `bytes` is the size that was passed to allocate(). An implementation of allocate() or
  // deallocate() must restore the current CUDA device of the calling thread if it changes this
  // device.
  virtual void deallocate(void* memory, int64_t bytes, Stream stream) noexcept = 0;
};

// Forwards calls to the allocator `inner`. Counts the bytes that are allocated now (heldBytes())
// and their maximum (peakBytes()). Thread-safe.
class TrackingAllocator : public Allocator {
 public:
  explicit TrackingAllocator(Allocator& inner) : inner_(inner) {}
  void* allocate(int64_t bytes, Stream stream) override;
  void deallocate(void* memory, int64_t bytes, Stream stream) noexcept override;
  int64_t heldBytes() const { return held_.load(); }
  // Returns the largest value of heldBytes() since the construction or resetPeak().
  int64_t peakBytes() const { return peak_.load(); }
  void resetPeak() { peak_.store(held_.load()); }

 private:
  Allocator& inner_;
  std::atomic<int64_t> held_{0};
  std::atomic<int64_t> peak_{0};
};

// The function that is applied to each element of a matrix product. GeluTanh is the tanh
// approximation of gelu (Hendrycks and Gimpel 2016).
enum class Activation : uint8_t { None, Relu, GeluTanh };

// A matrix product c = activation(a x b + bias) of tensors with these axes:
//   a [batch..., m, k], b [batch..., k, n], c [batch..., m, n], bias [n].
//
// Batch:      the batch axes of a and b are matched with those of c from the right. a or b may lack
//             a batch axis or have extent 1 along it. The operand is then broadcast along this
//             axis.
// Strides:    any strides are allowed. If the library of a device cannot read or write an operand
//             in place, the device uses a copy.
// Dtypes:     a, b and c have the same dtype, and the bias has the dtype of c. Exception: if a and
//             b have f8 types, c may be f32, f16 or bf16. The types of a and b may then differ.
// Arithmetic: sums of f64 elements are accumulated in f64, sums of all other floats in f32. The
//             bias and the activation are applied to the sum, which is then rounded once. Integers
//             wrap. An element of a bool result is the OR of ANDs.
// Exceptions: on CUDA, cuBLASLt computes gelu with an error of up to 2e-5 times the f32 sum. If
//             c is f16 or bf16, cuBLASLt also rounds the sum before it applies gelu. For f8 on
//             sm_90, tensor cores compute partial sums with fewer bits than f32 has.
struct MatmulSpec {
  // The expected alignment of each operand in bytes: a power of two, at most 256. It follows from
  // the offset of the operand in its buffer, as if every buffer had 256-byte alignment. If a
  // caller's tensor is less aligned, the run is correct but may be slower.
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
  bool tf32 = false;  // true: f32 operands may be rounded to 10 bits of mantissa
  Alignment alignment;
  // Number of SMs that calls of cuBLASLt leave to concurrent work. heddle's own kernels and the CPU
  // device ignore it.
  int32_t spare_sms = 0;
  bool operator==(const MatmulSpec&) const = default;
};

// The properties of a matrix product from which its shortest possible time is estimated.
struct MatmulWork {
  double operations = 0;  // multiplications and additions of elements
  DType a = DType::F32;
  DType b = DType::F32;
  DType c = DType::F32;
  bool tf32 = false;  // see MatmulSpec::tf32
  bool operator==(const MatmulWork&) const = default;
};

// The addresses of a matrix product.
struct MatmulOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;  // nullptr: no bias
  void* c = nullptr;
  void* workspace = nullptr;  // PreparedMatmul::workspaceBytes() bytes, 256-byte alignment
};

// A matrix product that is ready to run, except for its addresses.
//
// Threads:   a PreparedMatmul is immutable; several threads may call run().
// Lifetimes: a PreparedMatmul must outlive the work that it enqueues. The device must outlive the
//            PreparedMatmul.
class PreparedMatmul {
 public:
  virtual ~PreparedMatmul() = default;
  virtual int64_t workspaceBytes() const { return 0; }
  // Enqueues the matrix product on `stream`.
  virtual void run(const MatmulOperands& operands, Stream stream, const Issue& issue) const = 0;
};

// Maps questions to choices. A question is a text that describes one call of a library for matrix
// products or attentions: sizes, strides, dtypes and so on. One matrix product may need several
// calls. A choice is a text that identifies the algorithm of the library for this call.
using AlgorithmChoices = std::map<std::string, std::string>;

// The resources of a GPU that one launch of a kernel uses.
struct KernelResources {
  int32_t registers = 0;     // registers per thread
  int64_t local_bytes = 0;   // local memory per thread: spilled registers and local arrays
  int64_t shared_bytes = 0;  // shared memory per block, static and dynamic
  double occupancy = 0;      // active warps on an SM, divided by the most that an SM can hold
};

// A device: its memory, its streams and events, and the work on them. Unless a comment says
// otherwise, a function that takes a stream enqueues work and returns before the work is done. The
// work on one stream runs in order.
//
// Threads: a Device is thread-safe, except that only one thread at a time may use a stream.
class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceKind kind() const = 0;
  // Returns a name for messages, such as "cuda:0 NVIDIA H200 (sm_90)".
  virtual std::string description() const = 0;
  // Returns the version of the driver, such as "CUDA 12.4", or "" on devices without a driver.
  virtual std::string driver() const { return {}; }
  virtual Allocator& allocator() = 0;  // the device's own pool
  // Returns the name of another device of the same kind, such as "cuda:1", if the memory at `data`
  // belongs to it. Returns "" if the memory belongs to this device or to the host, or if the owner
  // is unknown.
  virtual std::string otherOwner(const void*) { return {}; }
  // Returns a block size in bytes, a power of two. All addresses of an aligned block of this size
  // belong to one device, so a caller need ask otherOwner() only once per block. Returns 0 if
  // otherOwner() always returns "".
  virtual int64_t ownedBlockBytes() const { return 0; }

  // The state of a thread before makeCurrent().
  struct Current {
    int device = -1;  // the current CUDA device of the thread
    int known = -1;  // the device that an earlier, not yet restored makeCurrent() has set; -1: none
  };
  // Makes this device the current CUDA device of the calling thread. Until restoreCurrent(), the
  // functions of this device need not ask CUDA for the current device of this thread. This saves
  // host time. Does nothing on devices that are not CUDA devices. Call it through CurrentDevice
  // (below).
  virtual Current makeCurrent() { return {}; }
  virtual void restoreCurrent(const Current&) noexcept {}

  virtual Stream createStream() = 0;
  // Creates a stream with high priority. A GPU starts the waiting work of this stream before the
  // waiting work of streams with normal priority. On other devices, the stream is an ordinary
  // stream.
  virtual Stream createUrgentStream() { return createStream(); }
  // Waits for the work of the stream, then destroys the stream. Does nothing for nullptr.
  virtual void destroyStream(Stream stream) noexcept = 0;
  virtual Event createEvent() = 0;
  virtual void destroyEvent(Event event) noexcept = 0;
  // The next four functions throw only if the device has failed, for example because a kernel
  // accessed an invalid address. A failed device runs no enqueued work, so the caller may then free
  // the memory that this work uses.
  virtual void recordEvent(Event event, Stream stream) = 0;
  // Delays later work on `stream` until all work before the latest recordEvent() of `event` is
  // done. An event that was never recorded counts as done.
  virtual void waitEvent(Stream stream, Event event) = 0;
  // Returns whether the work before the latest recordEvent() of `event` is done.
  virtual bool eventDone(Event event) = 0;
  // Blocks the calling thread until eventDone() is true.
  virtual void synchronize(Event event) = 0;
  // Creates a timer: an event for secondsBetween(). On CUDA, the event also stores the time at
  // which the stream reaches it.
  virtual Event createTimer() { return createEvent(); }
  // Returns the seconds from the first timer to the second one. Requires eventDone() for both
  // timers. Returns 0 on all devices except CUDA.
  virtual double secondsBetween(Event, Event) { return 0; }
  // Begin and end a named range for profilers, on CUDA only. The range contains the work that the
  // calling thread enqueues between the two calls.
  virtual void beginRange(const char*) {}
  virtual void endRange() {}

  // Returns the compiler for this device. The first call finds or creates it. Returns nullptr if
  // there is no compiler. A CPU device then returns the reason from whyNoCompiler().
  virtual const codegen::KernelCompiler* compiler() const = 0;
  virtual std::string whyNoCompiler() const { return {}; }
  // Keeps an object until the device is destroyed. The destructor of the device waits for all work
  // of the device before it releases the object, so this work may use the object.
  void keep(std::shared_ptr<void> object) {
    std::lock_guard lock(kept_mutex_);
    kept_.push_back(std::move(object));
  }
  // Loads one entry point of an image.
  virtual LoadedKernel load(const codegen::KernelImage& image, const std::string& entry) = 0;
  // Enqueues one launch of a kernel. `args` is copied before the call returns.
  virtual void launch(KernelHandle kernel, const codegen::LaunchStage& stage, const std::byte* args,
                      Stream stream, const Issue& issue) = 0;
  // Returns the resources of one launch of the kernel. Returns nullopt on all devices except CUDA.
  virtual std::optional<KernelResources> resourcesOf(KernelHandle, const codegen::LaunchStage&) {
    return std::nullopt;
  }

  // Prepares a matrix product. For each of its questions (AlgorithmChoices), the algorithm is taken
  // from `choices`. If `choices` has no entry for the question, or an entry that the library does
  // not accept, the library's first proposal is used. For equal devices and library versions, this
  // proposal is the same in every process. Throws UserError if sizes or dtypes disagree, or if the
  // device cannot compute this matrix product.
  virtual std::shared_ptr<const PreparedMatmul> prepareMatmul(const MatmulSpec& spec,
                                                              const AlgorithmChoices& choices) = 0;
  // Returns the questions of the matrix product (AlgorithmChoices). The caller should pass a choice
  // for each of them to prepareMatmul(). Returns an empty set if there is nothing to choose.
  virtual std::set<std::string> algorithmQuestions(const MatmulSpec&) { return {}; }
  // Returns the choice for one question, or "" if the device makes no choice. The question may come
  // from the device of another rank. If the library accepts `given`, a choice of the user, the call
  // returns it; "" means no choice. Otherwise, if the device has stored no choice yet, the call
  // runs and measures the algorithms, and waits for them. They run on the given stream, or on a
  // temporary stream if it is nullptr. The call does not measure while a CUDA graph is being
  // captured from the given stream.
  virtual std::string chooseAlgorithm(const std::string& /*question*/, Stream,
                                      const std::string& /*given*/) {
    return {};
  }
  // Returns whether algorithmQuestions() may return questions. An implementation must return the
  // same value on every rank of a job.
  virtual bool choosesAlgorithms() const { return false; }

  // Returns the number of workspace bytes that library() needs for this call. The addresses of the
  // tensors and of the workspace in the call are ignored. Throws UserError if the device cannot
  // compute the function for these dtypes or sizes.
  virtual int64_t libraryWorkspace(const LibraryCall& call) const = 0;
  // Enqueues a library function (host/device/library_call.h). The result must have at least one
  // element.
  virtual void library(const LibraryCall& call, Stream stream, const Issue& issue) = 0;
  // Enqueues a group of operations that are posted together. The group and its lists of counts are
  // copied before the call returns. Throws UserError if the communicator cannot access this
  // device's memory. Exception: for a team of one rank, a CUDA device then copies the buffers
  // itself.
  virtual void communicate(comm::Communicator& communicator, std::span<const comm::Operation> group,
                           Stream stream, const Issue& issue) = 0;
  // Copies contiguous bytes. `dst` and `src` may each be device memory or host memory.
  virtual void copy(void* dst, const void* src, int64_t bytes, Stream stream,
                    const Issue& issue) = 0;
  // Sets `bytes` bytes at `dst` to the value `byte`.
  virtual void fill(void* dst, int byte, int64_t bytes, Stream stream, const Issue& issue) = 0;
  // Enqueues `task`, which runs on the host in stream order. The task must not call the device, and
  // must not wait for other work of the device.
  virtual void hostTask(std::function<void()> task, Stream stream, const Issue& issue) = 0;

 private:
  std::mutex kept_mutex_;
  std::vector<std::shared_ptr<void>> kept_;
};

// Calls makeCurrent() in the constructor and restoreCurrent() in the destructor.
class CurrentDevice {
 public:
  explicit CurrentDevice(Device& device) : device_(device), before_(device.makeCurrent()) {}
  ~CurrentDevice() { device_.restoreCurrent(before_); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  Device& device_;
  Device::Current before_;
};

// Creates the device of GPU `ordinal`. Throws UserError if the CUDA module, the driver or this GPU
// is missing. The message names what is missing.
std::unique_ptr<Device> makeCudaDevice(int ordinal);
// Returns the number of usable GPUs, or 0 with the reason in `why`.
int cudaDeviceCount(std::string& why);

}  // namespace heddle::host
