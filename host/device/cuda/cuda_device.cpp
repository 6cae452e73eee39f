#include "host/device/cuda/cuda_device.h"

#include <cuda.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstring>

#include "codegen/cuda/nvrtc.h"
#include "comm/cuda_call/driver_function.h"
#include "comm/operation.h"
#include "host/device/cuda/kernel/cuda_check.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

cudaStream_t native(Stream stream) { return static_cast<cudaStream_t>(stream); }
cudaEvent_t nativeEvent(Event event) { return static_cast<cudaEvent_t>(event); }

bool failed(const Issue& issue) { return issue.errors != nullptr && issue.errors->failed(); }

struct HostTask {
  std::function<void()> work;
  Issue issue;
};

// Runs a host task on a thread of the CUDA driver. CUDA does not call this function after the
// device has failed; the task then leaks. The function catches all exceptions, because an exception
// must not reach the driver.
void CUDART_CB runHostTask(void* argument) {
  const std::unique_ptr<HostTask> task(static_cast<HostTask*>(argument));
  if (failed(task->issue)) return;
  try {
    task->work();
  } catch (const std::exception& e) {
    if (task->issue.errors != nullptr) {
      task->issue.errors->report(std::current_exception(), task->issue.instruction);
    } else {
      std::fprintf(stderr, "heddle: error in a host task that belongs to no run: %s\n", e.what());
    }
  } catch (...) {
    if (task->issue.errors != nullptr) {
      task->issue.errors->report(std::current_exception(), task->issue.instruction);
    } else {
      std::fprintf(stderr, "heddle: unknown error in a host task that belongs to no run\n");
    }
  }
}

}  // namespace

int countCudaDevices(std::string& why) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    cudaGetLastError();
    why = fmt::format("cudaGetDeviceCount: {} ({})", cudaGetErrorString(status),
                      cudaGetErrorName(status));
    return 0;
  }
  if (count == 0) why = "cudaGetDeviceCount: there is no GPU";
  return count;
}

std::string architectureOf(int ordinal) {
  int major = 0, minor = 0;
  HEDDLE_CUDA(cudaDeviceGetAttribute, &major, cudaDevAttrComputeCapabilityMajor, ordinal);
  HEDDLE_CUDA(cudaDeviceGetAttribute, &minor, cudaDevAttrComputeCapabilityMinor, ordinal);
  return fmt::format("sm_{}{}", major, minor);
}

CudaDevice::CudaDevice(int ordinal) : ordinal_(ordinal) {
  std::string why;
  const int count = countCudaDevices(why);
  HEDDLE_USER_CHECK_CODE(Unsupported, count > 0, "cuda:{} cannot be used: {}", ordinal, why);
  HEDDLE_USER_CHECK(ordinal >= 0 && ordinal < count,
                    "there is no cuda:{}: the number of GPUs of this machine is {}", ordinal,
                    count);
  is_only_one_ = count == 1;
  DeviceGuard guard(ordinal_);
  cudaDeviceProp properties{};
  HEDDLE_CUDA(cudaGetDeviceProperties, &properties, ordinal);
  architecture_ = architectureOf(ordinal);
  constexpr int kFirstWithEarlyStarts = 9;  // compute capability 9.0
  starts_early_ = properties.major >= kFirstWithEarlyStarts;
  description_ = fmt::format("cuda:{} {} ({})", ordinal, properties.name, architecture_);
  int driver = 0;
  HEDDLE_CUDA(cudaDriverGetVersion, &driver);
  driver_ = fmt::format("CUDA {}.{}", driver / 1000, driver % 1000 / 10);
  allocator_ = std::make_unique<CudaAllocator>(ordinal);
}

std::string CudaDevice::otherOwner(const void* data) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, data) != cudaSuccess) {
    cudaGetLastError();
    return {};
  }
  const bool is_other = attributes.type == cudaMemoryTypeDevice && attributes.device != ordinal_;
  return is_other ? fmt::format("cuda:{}", attributes.device) : std::string();
}

// CUDA maps the memory of a GPU in blocks of at least 2 MiB.
int64_t CudaDevice::ownedBlockBytes() const { return is_only_one_ ? 0 : int64_t{2} << 20; }

// The destructor first waits for all work of the device, because running work uses the kernels.
CudaDevice::~CudaDevice() {
  int before = -1;
  cudaGetDevice(&before);
  cudaSetDevice(ordinal_);
  cudaDeviceSynchronize();
  matmul_.reset();
  library_.clear();
  allocator_.reset();
  cudaSetDevice(before);
}

Stream CudaDevice::createStream() {
  DeviceGuard guard(ordinal_);
  cudaStream_t stream = nullptr;
  HEDDLE_CUDA(cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking);
  return stream;
}

Stream CudaDevice::createUrgentStream() {
  DeviceGuard guard(ordinal_);
  int least = 0, greatest = 0;
  HEDDLE_CUDA(cudaDeviceGetStreamPriorityRange, &least, &greatest);
  cudaStream_t stream = nullptr;
  HEDDLE_CUDA(cudaStreamCreateWithPriority, &stream, cudaStreamNonBlocking, greatest);
  return stream;
}

// The function ignores the status of the last two calls. If work of the stream has failed, CUDA
// also returns the error from later calls, and the functions that make these calls throw it.
void CudaDevice::destroyStream(Stream stream) noexcept {
  if (stream == nullptr) return;
  allocator_->freeKept(stream);
  cudaStreamSynchronize(native(stream));
  cudaStreamDestroy(native(stream));
}

Event CudaDevice::createEvent() {
  DeviceGuard guard(ordinal_);
  cudaEvent_t event = nullptr;
  HEDDLE_CUDA(cudaEventCreateWithFlags, &event, cudaEventDisableTiming);
  return event;
}

void CudaDevice::destroyEvent(Event event) noexcept {
  if (event != nullptr) cudaEventDestroy(nativeEvent(event));
}

// Each run calls recordEvent() and eventDone(), so they call the driver, which takes less time than
// the runtime. If the driver reports an error, the runtime repeats the call and names the error.
void CudaDevice::recordEvent(Event event, Stream stream) {
  DeviceGuard guard(ordinal_);
  using Record = CUresult (*)(CUevent, CUstream);
  static const auto record = comm::driverFunction<Record>("cuEventRecord");
  if (record != nullptr && record(nativeEvent(event), native(stream)) == CUDA_SUCCESS) return;
  HEDDLE_CUDA(cudaEventRecord, nativeEvent(event), native(stream));
}

void CudaDevice::waitEvent(Stream stream, Event event) {
  DeviceGuard guard(ordinal_);
  HEDDLE_CUDA(cudaStreamWaitEvent, native(stream), nativeEvent(event), 0);
}

bool CudaDevice::eventDone(Event event) {
  DeviceGuard guard(ordinal_);
  using Query = CUresult (*)(CUevent);
  static const auto query = comm::driverFunction<Query>("cuEventQuery");
  if (query != nullptr) {
    const CUresult result = query(nativeEvent(event));
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY) return result == CUDA_SUCCESS;
  }
  const cudaError_t status = cudaEventQuery(nativeEvent(event));
  if (status == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  checkCuda(status, "cudaEventQuery");
  return true;
}

void CudaDevice::synchronize(Event event) {
  DeviceGuard guard(ordinal_);
  HEDDLE_CUDA(cudaEventSynchronize, nativeEvent(event));
}

Event CudaDevice::createTimer() {
  DeviceGuard guard(ordinal_);
  cudaEvent_t event = nullptr;
  HEDDLE_CUDA(cudaEventCreate, &event);
  return event;
}

double CudaDevice::secondsBetween(Event from, Event to) {
  DeviceGuard guard(ordinal_);
  float milliseconds = 0;
  HEDDLE_CUDA(cudaEventElapsedTime, &milliseconds, nativeEvent(from), nativeEvent(to));
  return 1e-3 * static_cast<double>(milliseconds);
}

void CudaDevice::beginRange(const char* text) { nvtxRangePushA(text); }
void CudaDevice::endRange() { nvtxRangePop(); }

const codegen::KernelCompiler* CudaDevice::compiler() const {
  std::call_once(compiler_once_, [this] { compiler_ = codegen::makeNvrtcCompiler(architecture_); });
  return compiler_.get();
}

LoadedKernel CudaDevice::load(const codegen::KernelImage& image, const std::string& entry) {
  DeviceGuard guard(ordinal_);
  return std::make_shared<CudaKernel>(image.bytes, entry);
}

void CudaDevice::launch(KernelHandle kernel, const codegen::LaunchStage& stage,
                        const std::byte* args, Stream stream, const Issue& issue) {
  HEDDLE_CHECK(kernel != nullptr, "launch of {} without a kernel", stage.entry);
  if (failed(issue)) return;
  DeviceGuard guard(ordinal_);
  // The handle is const, but a launch may raise the kernel's limit of shared memory.
  auto* loaded = const_cast<CudaKernel*>(static_cast<const CudaKernel*>(kernel));
  if (stage.cleared_bytes > 0) {
    const int32_t offset = codegen::workspaceOffset(stage);
    HEDDLE_CHECK(offset >= 0, "{} has no workspace to clear", stage.entry);
    void* workspace = nullptr;
    std::memcpy(&workspace, args + offset, sizeof(workspace));
    HEDDLE_CUDA(cudaMemsetAsync, workspace, 0, static_cast<size_t>(stage.cleared_bytes),
                native(stream));
  }
  loaded->launch({stage.grid, stage.grid_y, stage.block, stage.shared_bytes,
                  stage.starts_early && starts_early_},
                 args, native(stream));
}

std::optional<KernelResources> CudaDevice::resourcesOf(KernelHandle kernel,
                                                       const codegen::LaunchStage& stage) {
  HEDDLE_CHECK(kernel != nullptr, "resources of {} without a kernel", stage.entry);
  DeviceGuard guard(ordinal_);
  // The handle is const, but the call may raise the kernel's limit of shared memory.
  auto* loaded = const_cast<CudaKernel*>(static_cast<const CudaKernel*>(kernel));
  const CudaKernel::Resources used = loaded->resources(stage.block, stage.shared_bytes);
  int most_threads = 0;
  HEDDLE_CUDA(cudaDeviceGetAttribute, &most_threads, cudaDevAttrMaxThreadsPerMultiProcessor,
              ordinal_);
  int warp = 0;
  HEDDLE_CUDA(cudaDeviceGetAttribute, &warp, cudaDevAttrWarpSize, ordinal_);
  const int warps = used.blocks_per_sm * ((stage.block + warp - 1) / warp);
  return KernelResources{used.registers, used.local_bytes,
                         used.static_shared_bytes + stage.shared_bytes,
                         static_cast<double>(warps * warp) / most_threads};
}

CudaMatmul& CudaDevice::matmuls() {
  std::call_once(matmul_once_,
                 [this] { matmul_ = std::make_unique<CudaMatmul>(ordinal_, *compiler()); });
  return *matmul_;
}

std::shared_ptr<const PreparedMatmul> CudaDevice::prepareMatmul(const MatmulSpec& spec,
                                                                const AlgorithmChoices& choices) {
  DeviceGuard guard(ordinal_);
  return matmuls().prepare(spec, choices);
}

std::set<std::string> CudaDevice::algorithmQuestions(const MatmulSpec& spec) {
  DeviceGuard guard(ordinal_);
  return matmuls().questions(spec);
}

std::string CudaDevice::chooseAlgorithm(const std::string& question, Stream stream,
                                        const std::string& given) {
  DeviceGuard guard(ordinal_);
  return matmuls().choose(question, native(stream), given);
}

int64_t CudaDevice::libraryWorkspace(const LibraryCall& call) const {
  return libraryStepsWorkspace(call);
}

void CudaDevice::library(const LibraryCall& call, Stream stream, const Issue& issue) {
  if (failed(issue)) return;
  DeviceGuard guard(ordinal_);
  library_.run(call, *compiler(), native(stream));
}

// A team of one rank needs no transport: each send buffer is copied to its receive buffer. The
// first send matches the first receive, the second send matches the second receive, and so on.
void CudaDevice::communicateAlone(std::span<const comm::Operation> group, Stream stream) {
  comm::checkGroup(group, 0, 1);
  size_t receiver = 0;
  for (const comm::Operation& operation : group) {
    void* to = operation.recv;
    if (operation.kind == comm::CollectiveKind::Recv ||
        operation.kind == comm::CollectiveKind::Barrier) {
      continue;
    }
    if (operation.kind == comm::CollectiveKind::Send) {
      while (receiver < group.size() && group[receiver].kind != comm::CollectiveKind::Recv) {
        ++receiver;
      }
      HEDDLE_USER_CHECK(receiver < group.size(),
                        "a team of one rank posts a send to itself without a receive");
      to = group[receiver++].recv;
    }
    if (to == operation.send) continue;
    copy(to, operation.send, comm::sentBy(operation, 1) * sizeOf(operation.dtype), stream, {});
  }
}

void CudaDevice::communicate(comm::Communicator& communicator,
                             std::span<const comm::Operation> group, Stream stream,
                             const Issue& issue) {
  if (failed(issue)) return;
  DeviceGuard guard(ordinal_);
  if (communicator.isStreamOrdered()) {
    communicator.post(group, stream);
    return;
  }
  HEDDLE_USER_CHECK(
      communicator.size() == 1,
      "the transport of a team of {} ranks works on host memory and cannot access {}; run "
      "with NCCL (mpirun) or with in-process ranks",
      communicator.size(), description_);
  communicateAlone(group, stream);
}

void CudaDevice::copy(void* dst, const void* src, int64_t bytes, Stream stream,
                      const Issue& issue) {
  if (bytes <= 0 || failed(issue)) return;
  DeviceGuard guard(ordinal_);
  HEDDLE_CUDA(cudaMemcpyAsync, dst, src, static_cast<size_t>(bytes), cudaMemcpyDefault,
              native(stream));
}

void CudaDevice::fill(void* dst, int byte, int64_t bytes, Stream stream, const Issue& issue) {
  if (bytes <= 0 || failed(issue)) return;
  DeviceGuard guard(ordinal_);
  HEDDLE_CUDA(cudaMemsetAsync, dst, byte, static_cast<size_t>(bytes), native(stream));
}

void CudaDevice::hostTask(std::function<void()> task, Stream stream, const Issue& issue) {
  DeviceGuard guard(ordinal_);
  auto pending = std::make_unique<HostTask>(HostTask{std::move(task), issue});
  HEDDLE_CUDA(cudaLaunchHostFunc, native(stream), runHostTask, pending.get());
  pending.release();  // runHostTask deletes it
}

}  // namespace heddle::host
