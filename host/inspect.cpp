#include "host/inspect.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <variant>

#include "codegen/bind/candidates.h"
#include "codegen/emit/plan_kernel.h"
#include "codegen/kernel.h"
#include "host/plan/by_value_inputs.h"
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

// Returns the alignments of the operands, as if all tensors of the caller were aligned. A late
// input decides only where slices begin (host/unroll/late_scalars.h). View::offsetBits() gives the
// alignment that holds for all values of the late inputs.
std::vector<int32_t> alignmentsOf(const UnrolledStep& step) {
  std::vector<int32_t> alignments;
  for (const auto* views : {&step.inputs, &step.outputs}) {
    for (const View& view : *views) {
      alignments.push_back(codegen::alignmentOf(static_cast<uint64_t>(view.offsetBits())));
    }
  }
  return alignments;
}

// Returns, per input of the launch, whether the kernel gets the element of a 0-d tensor by value.
// This is the rule of PlanBuilder::passValues(), for a run whose tensors in host memory are those
// that decide sizes.
std::vector<bool> inputsByValue(const Program& program, const SizeBindings& sizes,
                                const Unrolled& unrolled, const UnrolledStep& step,
                                const Fusion& segment) {
  std::vector<bool> by_value(step.inputs.size(), false);
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const BufferId id = step.inputs[i].buffer;
    if (step.scalar_inputs.at(i).valid() || !id.valid()) continue;
    const Buffer& buffer = unrolled.buffers[id];
    if (buffer.origin != Buffer::Origin::Input) continue;
    const Slot& slot = program.slots[program.inputs.at(buffer.input)];
    by_value[i] = sizes.contains(scalarSymbol(slot.name)) && mayComeByValue(segment, i);
  }
  return by_value;
}

// Maps a kernel of the program and the result of inputsByValue() to the kernel whose segment takes
// these inputs by value.
using KernelsWithValues = std::map<std::pair<KernelId, std::vector<bool>>, Kernel>;

const Kernel& kernelWithValues(const Program& program, KernelId id,
                               const std::vector<bool>& by_value, KernelsWithValues& rewritten) {
  const Kernel& kernel = program.kernels[id];
  if (std::find(by_value.begin(), by_value.end(), true) == by_value.end()) return kernel;
  const auto [found, is_new] = rewritten.try_emplace({id, by_value}, kernel);
  if (is_new) found->second.segment = withValues(kernel.segment, by_value);
  return found->second;
}

// The values of the registers of an unrolled program. A register holds a value on the host. The
// object knows only the values that follow from the sizes of the run.
class KnownScalars {
 public:
  KnownScalars(const Program& program, const SizeBindings& sizes, const Unrolled& unrolled)
      : program_(program), sizes_(sizes), unrolled_(unrolled) {
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      const RegisterId id = unrolled.input_registers[i];
      if (const auto value = id.valid() ? ofInput(i) : std::nullopt) registers_[id] = *value;
    }
  }

  void add(const UnrolledStep& step) {
    if (!step.scalar_out.valid()) return;
    if (step.known) {
      registers_[step.scalar_out] = *step.known;
    } else {
      registers_.erase(step.scalar_out);  // the step stores a value that only the run knows
    }
  }

  // Returns LaunchedKernel::scalars.
  std::vector<std::optional<Scalar>> inputsOf(const UnrolledStep& step,
                                              const std::vector<bool>& by_value) const {
    std::vector<std::optional<Scalar>> values(by_value.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const auto found = registers_.find(step.scalar_inputs.at(i));
      if (found != registers_.end()) values[i] = found->second;
      if (by_value[i]) values[i] = ofInput(unrolled_.buffers[step.inputs[i].buffer].input);
    }
    return values;
  }

 private:
  std::optional<Scalar> ofInput(size_t input) const {
    const auto found = sizes_.find(scalarSymbol(program_.slots[program_.inputs.at(input)].name));
    return found == sizes_.end() ? std::nullopt : std::optional<Scalar>(found->second);
  }

  const Program& program_;
  const SizeBindings& sizes_;
  const Unrolled& unrolled_;
  std::map<RegisterId, Scalar> registers_;
};

bool haveEqualOperands(const LaunchedKernel& a, const LaunchedKernel& b) {
  return &a.kernel == &b.kernel && a.in == b.in && a.out == b.out && a.alignments == b.alignments;
}

}  // namespace

std::vector<codegen::Candidate> LaunchedKernel::candidates() const {
  return codegen::candidates(kernel.segment, in, out, target, alignments, run);
}

std::optional<codegen::KernelChoice> LaunchedKernel::choice() const {
  if (kernel.candidate.empty()) return std::nullopt;
  const std::vector<codegen::Candidate> all = candidates();
  return all[codegen::findCandidate(all, kernel.candidate, kernel.name)].choice;
}

// Visits the steps of the unrolled program. known.add() must see every step: steps that are no
// launches compute the scalars that later launches read.
void forEachLaunchedKernel(const Program& program, const SizeBindings& sizes, int64_t rank,
                           int64_t ranks, DeviceKind device, Launches launches,
                           const std::function<void(const LaunchedKernel&)>& visit) {
  UnrollRequest request{sizes, inputDescs(program, sizes, rank, ranks), rank, ranks};
  request.late = lateInputsOf(program);
  const auto target = device == DeviceKind::Cuda ? codegen::Target::Cuda : codegen::Target::Cpp;
  std::map<KernelId, std::deque<LaunchedKernel>> seen;
  KernelsWithValues rewritten;
  const Unrolled unrolled = unroll(program, request);
  KnownScalars known(program, sizes, unrolled);
  for (const UnrolledStep& step : unrolled.steps) {
    if (step.instruction == nullptr) continue;
    known.add(step);
    // Only a LaunchKernel launches a kernel of the program.
    const auto* launch = std::get_if<LaunchKernel>(&step.instruction->op);
    if (launch == nullptr) continue;
    std::deque<LaunchedKernel>& earlier = seen[launch->kernel];
    if (launches == Launches::First && !earlier.empty()) continue;
    const std::vector<bool> by_value =
        inputsByValue(program, sizes, unrolled, step, program.kernels[launch->kernel].segment);
    const Kernel& kernel = kernelWithValues(program, launch->kernel, by_value, rewritten);
    LaunchedKernel launched{kernel,
                            target,
                            descsOf(step.inputs),
                            descsOf(step.outputs),
                            alignmentsOf(step),
                            {},
                            known.inputsOf(step, by_value)};
    for (size_t i = 0; i < by_value.size(); ++i) {
      if (by_value[i]) launched.in[i] = TensorDesc{};
    }
    const auto is_same = [&](const LaunchedKernel& other) {
      return haveEqualOperands(other, launched);
    };
    if (std::any_of(earlier.begin(), earlier.end(), is_same)) continue;
    SizeBindings own;
    launched.run =
        runSizes(kernel.segment, codegen::analyze(kernel.segment), launched.in, launched.out,
                 sizesInside(kernel.segment, step, sizes, own), rank, ranks);
    visit(launched);
    earlier.push_back(std::move(launched));
  }
}

std::vector<KernelTexts> kernelTexts(const Program& program, const SizeBindings& sizes,
                                     int64_t rank, int64_t ranks, DeviceKind device,
                                     bool clusters) {
  std::vector<KernelTexts> texts;
  forEachLaunchedKernel(
      program, sizes, rank, ranks, device, Launches::First, [&](LaunchedKernel launched) {
        launched.run.clusters = clusters;
        const auto& [kernel, target, in, out, alignments, run, scalars] = launched;
        const std::optional<codegen::KernelChoice> choice = launched.choice();
        const codegen::KernelChoice* const chosen = choice ? &*choice : nullptr;
        codegen::KernelTexts described =
            codegen::describeKernel(kernel.segment, in, out, target, alignments, run, chosen);
        texts.push_back({kernel.name, std::move(described.schedule), std::move(described.kernel)});
      });
  return texts;
}

std::vector<KernelCandidates> kernelCandidates(const Program& program, const SizeBindings& sizes,
                                               int64_t rank, int64_t ranks, DeviceKind device,
                                               bool clusters) {
  std::vector<KernelCandidates> found;
  forEachLaunchedKernel(
      program, sizes, rank, ranks, device, Launches::First, [&](LaunchedKernel launched) {
        launched.run.clusters = clusters;
        const std::vector<codegen::Candidate> all = launched.candidates();
        KernelCandidates& kernel = found.emplace_back();
        kernel.name = launched.kernel.name;
        for (const codegen::Candidate& each : all) {
          kernel.rows.push_back(
              {codegen::print(each.choice), each.plan.stages.size(), each.plan.workspace_bytes});
        }
        const std::string& asked = launched.kernel.candidate;
        if (!asked.empty()) kernel.used = codegen::findCandidate(all, asked, kernel.name);
      });
  return found;
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
