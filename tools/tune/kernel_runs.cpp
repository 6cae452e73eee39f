#include "tools/tune/kernel_runs.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <exception>
#include <new>

#include "host/tensor.h"
#include "ir/base/check.h"

namespace heddle::tools {
namespace {

constexpr int64_t kGpuFlush = int64_t{256} << 20;  // more than the L2 cache of every GPU
constexpr int64_t kCpuFlush = int64_t{32} << 20;

double nowSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Returns the rounding errors that are tolerated. Sums of many elements have several.
double toleranceOf(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return 1e-9;
    case DType::F32:
      return 1e-3;
    case DType::F16:
      return 1e-2;
    case DType::BF16:
      return 6e-2;
    case DType::F8E4M3:
    case DType::F8E5M2:
      return 0.5;
    default:
      return 0;
  }
}

host::Tensor blockOf(host::Device& device, int64_t bytes) {
  const int64_t size = std::max<int64_t>(bytes, 1);
  host::Allocator& allocator = device.allocator();
  void* const memory = allocator.allocate(size, nullptr);
  std::shared_ptr<void> owner(
      memory, [&allocator, size](void* at) { allocator.deallocate(at, size, nullptr); });
  return {memory, denseDesc(DType::U8, {size}), std::move(owner)};
}

}  // namespace

std::string differenceOf(const std::vector<HostTensor>& got,
                         const std::vector<HostTensor>& wanted) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double tolerance = toleranceOf(wanted[i].dtype);
    for (int64_t e = 0; e < wanted[i].numel(); ++e) {
      const double a = toDouble(got[i].at(e));
      const double b = toDouble(wanted[i].at(e));
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      if (std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b))) continue;
      return fmt::format("element {} of output {} is {}, but {} with another candidate", e, i, a,
                         b);
    }
  }
  return "";
}

KernelRuns::KernelRuns(const host::LaunchedKernel& kernel,
                       const std::vector<codegen::Candidate>& all, host::Device& device,
                       codegen::ImageCache& images, uint64_t seed)
    : kernel_(kernel),
      all_(all),
      device_(device),
      store_(device, &images, host::CacheLimits{}.kernel_bytes),
      loaded_(all.size()),
      stream_(device.createStream()),
      begin_(device.createTimer()),
      end_(device.createTimer()) {
  const Fusion& segment = kernel.kernel.segment;
  for (size_t i = 0; i < kernel.in.size(); ++i) {
    const ValueId id = segment.inputs()[i];
    if (segment.value(id).is_scalar) {
      operands_.emplace_back();
      continue;
    }
    const HostTensor values = randomBlock(kernel.in[i], seed, segment.value(id).name);
    operands_.push_back(host::toDevice(device, device.allocator(), values, kernel.in[i]));
  }
  for (const TensorDesc& desc : kernel.out) {
    host::Tensor output = blockOf(device, desc.allocBytes());
    output.desc = desc;
    operands_.push_back(std::move(output));
  }
  int64_t workspace = 0;
  for (const codegen::Candidate& each : all) {
    workspace = std::max(workspace, each.plan.workspace_bytes);
  }
  workspace_ = blockOf(device, workspace);
  flushed_ = blockOf(device, device.kind() == host::DeviceKind::Cuda ? kGpuFlush : kCpuFlush);
}

KernelRuns::~KernelRuns() {
  device_.destroyStream(stream_);
  device_.destroyEvent(begin_);
  device_.destroyEvent(end_);
}

// Compiles all candidates together. If that fails, compiles them one by one to find the faults.
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
      const bool is_workspace = patch.operand == codegen::LaunchStage::kWorkspace;
      const host::Tensor& tensor =
          is_workspace ? workspace_ : operands_.at(static_cast<size_t>(patch.operand));
      const auto* pointer = static_cast<const std::byte*>(tensor.data) + patch.place;
      std::memcpy(args.data() + patch.offset, &pointer, sizeof(pointer));
    }
    for (const codegen::LaunchStage::ScalarPatch& patch : stage.scalars) {
      storeElement(args.data() + patch.offset, patch.dtype, 0, roundTo(patch.dtype, int64_t{1}));
    }
    device_.launch(loaded_[candidate][s].get(), stage, args.data(), stream_, issue);
  }
}

void KernelRuns::wait() {
  device_.recordEvent(end_, stream_);
  device_.synchronize(end_);
  errors_.rethrow();
}

std::vector<HostTensor> KernelRuns::outputs() {
  std::vector<HostTensor> values;
  for (size_t i = kernel_.in.size(); i < operands_.size(); ++i) {
    values.push_back(host::toHost(device_, operands_[i]));
  }
  return values;
}

std::vector<std::string> KernelRuns::faults() {
  std::vector<std::string> faults(all_.size());
  compile(faults);
  std::optional<std::vector<HostTensor>> wanted;
  for (size_t i = 0; i < all_.size(); ++i) {
    if (!faults[i].empty()) continue;
    try {
      for (size_t k = kernel_.in.size(); k < operands_.size(); ++k) {
        device_.fill(operands_[k].data, 0, operands_[k].desc.allocBytes(), stream_, {});
      }
      launch(i);
      wait();
      if (!wanted) {
        wanted = outputs();
      } else if (const std::string text = differenceOf(outputs(), *wanted); !text.empty()) {
        faults[i] = "wrong results: " + text;
      }
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
