#include "host/inspect.h"

#include <optional>
#include <variant>

#include "codegen/emit/plan_kernel.h"
#include "codegen/kernel.h"
#include "host/plan/local_segment.h"
#include "host/tensor.h"
#include "host/unroll/check_operands.h"
#include "host/unroll/unroll.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

std::vector<TensorDesc> descsOf(const ViewList& views) {
  std::vector<TensorDesc> descs;
  for (const View& view : views) descs.push_back(view.desc);
  return descs;
}

// Returns the alignments of the operands, as if all tensors of the caller were aligned. They hold
// for all values of the late inputs.
std::vector<int32_t> alignmentsOf(const UnrolledStep& step) {
  std::vector<int32_t> alignments;
  for (const auto* views : {&step.inputs, &step.outputs}) {
    for (const View& view : *views) {
      alignments.push_back(codegen::alignmentOf(static_cast<uint64_t>(view.offsetBits())));
    }
  }
  return alignments;
}

}  // namespace

std::vector<KernelTexts> kernelTexts(const Program& program, const SizeBindings& sizes,
                                     int64_t rank, int64_t ranks, DeviceKind device) {
  UnrollRequest request{sizes, inputDescs(program, sizes, rank, ranks), rank, ranks};
  request.late = lateInputsOf(program);
  const auto target = device == DeviceKind::Cuda ? codegen::Target::Cuda : codegen::Target::Cpp;
  IdVector<KernelId, bool> seen(program.kernels.size());
  std::vector<KernelTexts> texts;
  const Unrolled unrolled = unroll(program, request);
  for (const UnrolledStep& step : unrolled.steps) {
    if (step.instruction == nullptr) continue;
    // Only a LaunchKernel runs a generated kernel.
    const auto* launch = std::get_if<LaunchKernel>(&step.instruction->op);
    if (launch == nullptr || seen[launch->kernel]) continue;
    seen[launch->kernel] = true;
    const Kernel& kernel = program.kernels[launch->kernel];
    const std::vector<TensorDesc> in = descsOf(step.inputs);
    const std::vector<TensorDesc> out = descsOf(step.outputs);
    const std::vector<int32_t> alignments = alignmentsOf(step);
    const Fusion& segment = kernel.segment;
    SizeBindings own;
    const codegen::RunSizes run = runSizes(segment, codegen::analyze(segment), in, out,
                                           sizesInside(segment, step, sizes, own), rank, ranks);
    texts.push_back({kernel.name,
                     codegen::describeSchedule(segment, in, out, target, alignments, run),
                     codegen::planKernel(segment, in, out, target, alignments, run).source.text});
  }
  return texts;
}

std::vector<std::string> segmentTexts(const SegmentedFusion& segmented) {
  std::vector<std::string> texts;
  for (size_t g = 0; g < segmented.groups.size(); ++g) {
    const Group& group = segmented.groups[g];
    std::string results;
    for (ValueId id : group.outputs) results += " %" + segmented.fusion.value(id).name;
    texts.push_back(
        fmt::format("g{} {}, {} op(s) ->{}", g, name(group.kind), group.exprs.size(), results));
  }
  return texts;
}

}  // namespace heddle::host
