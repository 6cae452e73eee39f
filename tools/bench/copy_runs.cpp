#include "tools/bench/copy_runs.h"

#include <utility>

#include "host/compile.h"
#include "host/executable_parts.h"
#include "host/tensor.h"
#include "ir/base/check.h"
#include "ir/graph/builder.h"

namespace heddle::tools {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;
// The tensor must be larger than the L2 cache of every GPU.
constexpr int64_t kGpuTensorBytes = 256 * kMebibyte;
constexpr int64_t kCpuTensorBytes = 64 * kMebibyte;
constexpr int kUnmeasuredCopies = 2;

host::Program copyProgram(int64_t elements) {
  FusionBuilder builder("copy");
  const ValueId x = builder.input("x", DType::F32, {Size(elements)});
  builder.output(builder.pointwise("neg", {x}));
  return host::compile(std::move(builder).build(), 1);
}

host::ExecutableParts partsOn(std::shared_ptr<host::SharedStream> stream) {
  host::ExecutableParts parts;
  parts.stream = std::move(stream);
  return parts;
}

}  // namespace

CopyRuns::CopyRuns(host::Device& device, codegen::ImageCache& images,
                   std::shared_ptr<host::SharedStream> stream)
    : device_(device),
      tensor_bytes_(device.kind() == host::DeviceKind::Cuda ? kGpuTensorBytes : kCpuTensorBytes),
      executable_(
          partsOn(std::move(stream))
              .make(copyProgram(tensor_bytes_ / sizeOf(DType::F32)), {&device, nullptr, &images})) {
  const TensorDesc desc = denseDesc(DType::F32, {tensor_bytes_ / sizeOf(DType::F32)});
  const HostTensor values = randomBlock(desc, 0, "x");
  inputs_.emplace_back(host::toDevice(device, device.allocator(), values, desc));
}

void CopyRuns::enqueueUnmeasured() {
  if (device_.kind() != host::DeviceKind::Cuda) return;
  for (int i = 0; i < kUnmeasuredCopies; ++i) executable_.run(inputs_);
}

void CopyRuns::enqueue() {
  enqueueUnmeasured();
  host::RunOptions options;
  options.profile = &profile_;
  measured_ = std::make_unique<host::Outputs>(executable_.run(inputs_, options));
  enqueueUnmeasured();
}

double CopyRuns::bytesPerSecond() {
  measured_->wait();
  measured_.reset();
  const auto work = profile_.deviceWork();
  for (const host::TimelineEvent& event : profile_.events()) {
    if (!event.stream.valid() || !work.contains(event.instruction)) continue;
    return 1e9 * static_cast<double>(event.bytes) / static_cast<double>(event.end - event.begin);
  }
  HEDDLE_CHECK(false, "the copy did no work");
  return 0;
}

}  // namespace heddle::tools
