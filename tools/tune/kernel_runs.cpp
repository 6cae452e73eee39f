#include "tools/tune/kernel_runs.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <new>

#include "host/cache_limits.h"
#include "host/tensor.h"
#include "ir/base/check.h"

namespace heddle::tools {
namespace {

constexpr int64_t kGpuFlush = int64_t{256} << 20;  // more than the L2 cache of every GPU
constexpr int64_t kCpuFlush = int64_t{32} << 20;
// If the memory is exhausted, the block may have a quarter of this size. On a GPU this is 64 MiB,
// which is more than the L2 cache of an H200.
constexpr int64_t kSmallerFlushes = 4;

// The number of different random elements of an input. A larger input repeats these elements,
// because the computation of billions of random numbers would take longer than the measurement. The
// number is prime, so that equal elements of different rows are usually in different columns.
constexpr int64_t kRandomElements = 1048573;

double nowSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The byte with which faults() fills an output before a candidate runs. Floats become NaN. A bool
// output is filled with 0 instead, because a bool must be 0 or 1.
constexpr int kNoResult = 0xFF;
int fillOf(DType dtype) { return dtype == DType::Bool ? 0 : kNoResult; }

[[noreturn]] void cannotAllocate(const std::string& kernel, const std::string& what,
                                 const std::string& why) {
  userErrorWith(ErrorCode::OutOfMemory, "tuning kernel {}: cannot allocate {}: {}", kernel, what,
                why);
}

// Calls work(). If the memory is exhausted, throws UserError that names the kernel and `what`.
template <class Work>
auto withinMemory(const std::string& kernel, const std::string& what, const Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc& error) {
    cannotAllocate(kernel, what, "out of memory" + host::saidBy(error));
  } catch (const UserError& error) {
    if (error.code() == ErrorCode::OutOfMemory) cannotAllocate(kernel, what, error.what());
    throw;
  }
}

host::Tensor blockOf(host::Device& device, int64_t bytes, const std::string& kernel,
                     const std::string& what) {
  const int64_t size = std::max<int64_t>(bytes, 1);
  host::Allocator& allocator = device.allocator();
  void* const memory = withinMemory(kernel, fmt::format("{} ({} bytes)", what, size),
                                    [&] { return allocator.allocate(size, nullptr); });
  std::shared_ptr<void> owner(
      memory, [&allocator, size](void* at) { allocator.deallocate(at, size, nullptr); });
  return {memory, denseDesc(DType::U8, {size}), std::move(owner)};
}

// Returns the block that run() writes to flush the caches. If the memory is exhausted, the block is
// smaller (kSmallerFlushes).
host::Tensor blockToFlush(host::Device& device, const std::string& kernel) {
  const std::string what = "the block that replaces the contents of the caches";
  const int64_t most = device.kind() == host::DeviceKind::Cuda ? kGpuFlush : kCpuFlush;
  int64_t bytes = most;
  for (; bytes > most / kSmallerFlushes; bytes /= 2) {
    try {
      return blockOf(device, bytes, kernel, what);
    } catch (const UserError& error) {
      if (error.code() != ErrorCode::OutOfMemory) throw;
    }
  }
  return blockOf(device, bytes, kernel, what);
}

}  // namespace

KernelRuns::KernelRuns(const host::LaunchedKernel& kernel,
                       const std::vector<codegen::Candidate>& all, std::vector<std::string> orders,
                       host::Device& device, codegen::ImageCache& images, uint64_t seed)
    : kernel_(kernel),
      all_(all),
      orders_(std::move(orders)),
      device_(device),
      store_(device, &images, host::CacheLimits{}.kernel_bytes),
      loaded_(all.size()),
      tolerances_(tolerancesOf(kernel.kernel.segment)) {
  // The destructor does not run if the constructor throws.
  try {
    stream_ = device.createStream();
    begin_ = device.createTimer();
    end_ = device.createTimer();
    allocate(seed);
  } catch (...) {
    destroy();
    throw;
  }
}

void KernelRuns::allocate(uint64_t seed) {
  const Fusion& segment = kernel_.kernel.segment;
  const std::string& name = kernel_.kernel.name;
  for (size_t i = 0; i < kernel_.in.size(); ++i) {
    const Value& value = segment.value(segment.inputs()[i]);
    operands_.push_back(value.is_scalar ? host::Tensor()
                                        : randomInput(kernel_.in[i], seed, value.name));
  }
  for (size_t i = 0; i < kernel_.out.size(); ++i) {
    const std::string what = "output %" + segment.value(segment.outputs()[i]).name;
    host::Tensor output = blockOf(device_, kernel_.out[i].allocBytes(), name, what);
    output.desc = kernel_.out[i];
    operands_.push_back(std::move(output));
  }
  int64_t workspace = 0;
  for (const codegen::Candidate& each : all_) {
    workspace = std::max(workspace, each.plan.workspace_bytes);
  }
  workspace_ = blockOf(device_, workspace, name, "the workspace");
  constexpr int64_t kCounterBytes = codegen::LaunchStage::kCounterBytes;
  counters_ = blockOf(device_, kCounterBytes, name, "the counters");
  device_.fill(counters_.data, 0, kCounterBytes, stream_, {});
  flushed_ = blockToFlush(device_, name);
}

// Returns an input whose memory contains random values, also in the gaps between elements.
host::Tensor KernelRuns::randomInput(const TensorDesc& desc, uint64_t seed,
                                     const std::string& name) {
  const int64_t bytes = desc.allocBytes();
  host::Tensor input = blockOf(device_, bytes, kernel_.kernel.name, "input %" + name);
  input.desc = desc;
  const int64_t elements = std::min(desc.allocElements(), kRandomElements);
  const HostTensor values =
      withinMemory(kernel_.kernel.name, "random values of input %" + name,
                   [&] { return randomTensor(desc.dtype, {elements}, seed, name); });
  auto* const memory = static_cast<std::byte*>(input.data);
  for (int64_t done = 0, size = 0; done < bytes; done += size) {
    const void* const source = done == 0 ? values.data.get() : memory;
    size = std::min(done == 0 ? values.bytes() : done, bytes - done);
    device_.copy(memory + done, source, size, stream_, {});
  }
  wait();
  return input;
}

KernelRuns::~KernelRuns() { destroy(); }

void KernelRuns::destroy() {
  if (stream_ != nullptr) device_.destroyStream(stream_);
  if (begin_ != nullptr) device_.destroyEvent(begin_);
  if (end_ != nullptr) device_.destroyEvent(end_);
}

// Compiles all candidates together. If this fails, compiles them one by one to find the faults.
void KernelRuns::compile(std::vector<std::string>& faults) {
  std::vector<const codegen::KernelPlan*> plans;
  for (const codegen::Candidate& each : all_) plans.push_back(&each.plan);
  try {
    loaded_ = store_.prepare(plans).kernels;
    return;
  } catch (const UserError&) {
  }
  for (size_t i = 0; i < all_.size(); ++i) {
    try {
      loaded_[i] = store_.prepare({plans[i]}).kernels.at(0);
    } catch (const UserError& error) {
      const std::string text = error.what();
      faults[i] = "does not compile: " + text.substr(0, text.find('\n'));
    }
  }
}

void KernelRuns::launch(size_t candidate) {
  const codegen::KernelPlan& plan = all_[candidate].plan;
  host::Issue issue;
  issue.errors = &errors_;
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const codegen::LaunchStage& stage = plan.stages[s];
    std::vector<std::byte> args = stage.args;
    for (const codegen::LaunchStage::PointerPatch& patch : stage.pointers) {
      const host::Tensor& tensor = patch.operand == codegen::LaunchStage::kWorkspace ? workspace_
                                   : patch.operand == codegen::LaunchStage::kCounters
                                       ? counters_
                                       : operands_.at(patch.operand);
      const auto* pointer = static_cast<const std::byte*>(tensor.data) + patch.workspace_offset;
      std::memcpy(args.data() + patch.offset, &pointer, sizeof(pointer));
    }
    for (const codegen::LaunchStage::ScalarPatch& patch : stage.scalars) {
      const Scalar value = kernel_.scalars.at(static_cast<size_t>(patch.operand)).value_or(1);
      storeElement(args.data() + patch.offset, patch.dtype, 0, roundTo(patch.dtype, value));
    }
    device_.launch(loaded_[candidate][s].get(), stage, args.data(), stream_, issue);
  }
}

void KernelRuns::wait() {
  device_.recordEvent(end_, stream_);
  device_.synchronize(end_);
  errors_.rethrow();
}

// Copies the outputs to `results`. An output without gaps becomes a vector in the order of its
// memory. If an output has gaps, only its elements are copied, because the contents of gaps are
// undefined.
void KernelRuns::readOutputs(std::vector<HostTensor>& results) {
  const size_t first = kernel_.in.size();
  results.resize(operands_.size() - first);
  for (size_t i = first; i < operands_.size(); ++i) {
    const host::Tensor& output = operands_[i];
    HostTensor& result = results[i - first];
    withinMemory(kernel_.kernel.name, "a copy of an output on the host", [&] {
      if (output.desc.numel() != output.desc.allocElements()) {
        result = host::toHost(device_, output);
        return;
      }
      if (!result.data) result = HostTensor(output.desc.dtype, {output.desc.numel()});
      device_.copy(result.data.get(), output.data, result.bytes(), stream_, {});
      wait();
    });
  }
}

// Compares the outputs of `candidate`, which has just run, with the outputs of earlier candidates.
// Returns the reason why the candidate cannot be used, or "".
std::string KernelRuns::compare(size_t candidate) {
  readOutputs(got_);
  const std::string hash = hashOfBits(got_);
  const auto known = bits_.find(orders_.at(candidate));
  if (known != bits_.end() && known->second.second == hash) return "";
  const std::string difference = wanted_.empty() ? "" : differenceOf(got_, wanted_, tolerances_);
  if (!difference.empty()) return "wrong results: " + difference;
  if (known != bits_.end()) {
    return fmt::format("wrong results: other bits than candidate {}, which adds in the same order",
                       known->second.first);
  }
  bits_.emplace(orders_.at(candidate), std::pair(candidate, hash));
  if (wanted_.empty()) wanted_.swap(got_);
  return "";
}

std::vector<std::string> KernelRuns::faults() {
  std::vector<std::string> faults(all_.size());
  compile(faults);
  for (size_t i = 0; i < all_.size(); ++i) {
    if (!faults[i].empty()) continue;
    try {
      for (size_t k = kernel_.in.size(); k < operands_.size(); ++k) {
        const TensorDesc& desc = operands_[k].desc;
        device_.fill(operands_[k].data, fillOf(desc.dtype), desc.allocBytes(), stream_, {});
      }
      launch(i);
      wait();
      faults[i] = compare(i);
    } catch (const UserError& error) {
      faults[i] = fmt::format("does not run: {}", error.what());
      errors_.clear();
    }
  }
  return faults;
}

double KernelRuns::run(size_t candidate) {
  device_.fill(flushed_.data, 0, flushed_.desc.allocBytes(), stream_, {});
  if (device_.kind() == host::DeviceKind::Cuda) {
    device_.recordEvent(begin_, stream_);
    launch(candidate);
    wait();
    return device_.secondsBetween(begin_, end_);
  }
  wait();
  const double begin = nowSeconds();
  launch(candidate);
  wait();
  return nowSeconds() - begin;
}

std::optional<host::KernelResources> KernelRuns::resources(size_t candidate) {
  std::optional<host::KernelResources> most;
  for (size_t s = 0; s < loaded_[candidate].size(); ++s) {
    const auto used =
        device_.resourcesOf(loaded_[candidate][s].get(), all_[candidate].plan.stages[s]);
    if (!used) continue;
    if (!most) most = used;
    most->registers = std::max(most->registers, used->registers);
    most->local_bytes = std::max(most->local_bytes, used->local_bytes);
  }
  return most;
}

}  // namespace heddle::tools
