// The members of PlanBuilder for attention. Only CUDA devices have a library call for it.
#include <algorithm>
#include <cmath>

#include "host/device/attention.h"
#include "host/device/load_module.h"
#include "host/plan/plan_builder.h"
#include "host/program/library_op.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

constexpr int64_t kPartAlignment = 256;  // alignment of copies in the workspace, in bytes

// Returns a descriptor of k or v in which each head is repeated `group` times. It has an additional
// axis of stride 0 after the axis of heads.
TensorDesc headsRepeated(TensorDesc desc, int64_t group) {
  const auto after_heads = static_cast<ptrdiff_t>(desc.rank()) - 2;
  for (auto* list : {&desc.global, &desc.sizes, &desc.alloc}) {
    list->insert(list->begin() + after_heads, group);
  }
  for (auto* list : {&desc.strides, &desc.offset}) list->insert(list->begin() + after_heads, 0);
  return desc;
}

// Returns how many heads of q share one head of k and v.
int64_t headsPerHead(const CallLibrary& call, const UnrolledStep& step) {
  if (!libraryFlag(call, "gqa")) return 1;
  const TensorDesc& q = step.inputs[0].desc;
  const size_t heads = q.rank() - 3;
  return q.sizes[heads] / step.inputs[1].desc.sizes[heads];
}

// A tensor of an attention call. cuDNN accesses the tensor in place, or a copy without gaps.
struct Part {
  View view;               // the tensor itself; its heads may be repeated (headsRepeated())
  TensorDesc seen;         // the memory that cuDNN accesses: the tensor or its copy
  bool is_copied = false;  // true: cuDNN accesses a copy
};

// Returns the tensors that the call reads, then those that it writes.
std::vector<Part> partsOf(const CallLibrary& call, const UnrolledStep& step) {
  const int64_t group = headsPerHead(call, step);
  const bool backward = isAttentionBackward(call);
  const View* log_sums = nullptr;
  if (logSumsOf(call)) log_sums = backward ? &step.inputs.back() : &step.outputs.back();
  std::vector<Part> parts;
  for (const auto* views : {&step.inputs, &step.outputs}) {
    for (const View& view : *views) {
      const bool is_copied = &view == log_sums ? !areReadableLogSums(view.desc, view.offsetBits())
                                               : !isReadable(view.desc, view.offsetBits());
      parts.push_back(
          {view, is_copied ? denseDesc(view.desc.dtype, view.desc.sizes) : view.desc, is_copied});
    }
  }
  for (size_t i : {size_t{1}, size_t{2}}) {
    if (group == 1) break;
    std::vector<int64_t> sizes = parts[i].view.desc.sizes;
    sizes[sizes.size() - 3] *= group;
    parts[i] = {parts[i].view, denseDesc(parts[i].view.desc.dtype, sizes), true};
    parts[i].view.desc = headsRepeated(parts[i].view.desc, group);
  }
  return parts;
}

// Returns the module of cuDNN. Throws UserError if the device cannot use it.
const CudnnModule& cudnnOn(const Device& device) {
  std::string why;
  const CudnnModule* module = device.kind() == DeviceKind::Cuda ? findCudnnModule(why) : nullptr;
  HEDDLE_USER_CHECK_CODE(Unsupported, module != nullptr,
                         "attention as one call needs cuDNN on CUDA; {} has none{}",
                         device.description(), why.empty() ? "" : ": " + why);
  return *module;
}

// Checks the numbers of tokens of a backward pass again, because the program may have been compiled
// for sizes different from those of the plan.
void checkTokens(const CallLibrary& call, const std::vector<Part>& parts,
                 const CudnnModule& module) {
  if (!isAttentionBackward(call)) return;
  const auto tokens = [&](size_t i) { return parts[i].seen.sizes.end()[-2]; };
  const std::string why =
      whyNotTokens(libraryFlag(call, "causal"), tokens(1), tokens(2), module.version());
  HEDDLE_USER_CHECK(why.empty(), "{} of {} queries and {} keys: {}", call.function, tokens(1),
                    tokens(2), why);
}

// Returns the spec of the call. `parts` are in the order of the members of the spec.
AttentionCallSpec specOf(const CallLibrary& call, const std::vector<Part>& parts) {
  const bool backward = isAttentionBackward(call);
  const auto width = static_cast<double>(parts[backward ? 1 : 0].seen.sizes.back());
  const auto scale =
      static_cast<float>(libraryNumber(call, "scale").value_or(1 / std::sqrt(width)));
  const bool causal = libraryFlag(call, "causal");
  auto part = parts.begin();
  const auto next = [&part] { return (part++)->seen; };
  const bool has_log_sums = logSumsOf(call).has_value();
  if (!backward) {
    AttentionSpec spec{next(), next(), next(), next(), {}, causal, scale};
    if (has_log_sums) spec.log_sums = next();
    return spec;
  }
  AttentionBackwardSpec spec{next(), next(), next(), next(), {}, {}, {}, {}, {}, causal, scale};
  for (auto* each : {&spec.o, &spec.log_sums}) {
    if (has_log_sums) *each = next();
  }
  for (auto* each : {&spec.dq, &spec.dk, &spec.dv}) *each = next();
  return spec;
}

}  // namespace

// Emits the call, with copies of the tensors that cuDNN cannot access in place. Emits nothing on
// the null device, or if no result has elements. The workspace begins with the copies. If several
// heads of q share a head of k and v, the copies of k and v contain each head several times. The
// bytes that the call itself needs follow. prepareAttentions() adds them, because their number
// depends on the engine configuration that the ranks choose.
void PlanBuilder::emitAttention(const CallLibrary& call, const UnrolledStep& step) {
  const auto is_empty = [](const View& out) { return out.desc.numel() == 0; };
  if (target_.device.kind() == DeviceKind::Null) return;
  if (std::all_of(step.outputs.begin(), step.outputs.end(), is_empty)) return;
  const std::vector<Part> parts = partsOf(call, step);
  checkTokens(call, parts, cudnnOn(target_.device));
  Plan::Attention attention;
  int64_t bytes = 0;
  std::vector<std::pair<Plan::Operand, Plan::Operand>> copied_back;
  for (size_t i = 0; i < parts.size(); ++i) {
    const View& view = parts[i].view;
    const Plan::Operand given{addressOf(view), view.desc};
    attention.operands[i] = given.address;
    if (!parts[i].is_copied) continue;
    const TensorDesc desc = denseDesc(view.desc.dtype, view.desc.sizes);
    const Plan::Operand packed{{plan_->workspace(call.stream), bytes}, desc};
    bytes += desc.numel() * sizeOf(desc.dtype);
    bytes = (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
    attention.operands[i] = packed.address;
    if (i < step.inputs.size()) {
      emitCopy(packed, given, call.stream);
    } else {
      copied_back.emplace_back(given, packed);
    }
  }
  attention.workspace = bytes;
  const AttentionId id = plan_->attentions.push_back(std::move(attention));
  planned_attentions_.push_back({specOf(call, parts), &step, id, call.stream});
  emit(AttentionStep{id, call.stream});
  for (const auto& [given, packed] : copied_back) emitCopy(given, packed, call.stream);
}

std::set<std::string> PlanBuilder::questionsOf(const AttentionCallSpec& spec) const {
  const CudnnModule& module = cudnnOn(target_.device);
  const auto* const backward = std::get_if<AttentionBackwardSpec>(&spec);
  return backward != nullptr ? module.backwardQuestions(*backward)
                             : module.questions(std::get<AttentionSpec>(spec));
}

std::string PlanBuilder::chooseAttention(const std::string& question,
                                         const std::string& given) const {
  return cudnnOn(target_.device)
      .choose(question, cudaModule().ordinalOf(target_.device), target_.stream, given);
}

// Prepares the calls of the plan with the engine configurations that `choices` names.
void PlanBuilder::prepareAttentions(const AlgorithmChoices& choices) {
  for (const PlannedAttention& planned : planned_attentions_) {
    namingInstruction(*planned.step, [&] {
      const CudnnModule& module = cudnnOn(target_.device);
      const int ordinal = cudaModule().ordinalOf(target_.device);
      Plan::Attention& attention = plan_->attentions[planned.id];
      const auto* const backward = std::get_if<AttentionBackwardSpec>(&planned.spec);
      attention.prepared =
          backward != nullptr
              ? module.prepareBackward(*backward, ordinal, choices)
              : module.prepare(std::get<AttentionSpec>(planned.spec), ordinal, choices);
      int64_t& workspace = plan_->workspace_bytes[planned.stream];
      workspace = std::max(workspace, attention.workspace + attention.prepared->workspaceBytes());
    });
  }
}

}  // namespace heddle::host
