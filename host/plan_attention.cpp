// The member of PlanBuilder for attention, which only CUDA has as a library call.
#include <algorithm>
#include <cmath>

#include "host/attention.h"
#include "host/library_op.h"
#include "host/module.h"
#include "host/plan_builder.h"
#include "ir/error.h"

namespace heddle::host {
namespace {

constexpr int64_t kPartAlignment = 256;

// The same elements without gaps.
TensorDesc packedDesc(TensorDesc desc) {
  desc.alloc = desc.sizes;
  int64_t span = 1;
  for (size_t i = desc.rank(); i-- > 0;) {
    desc.strides[i] = span;
    span *= desc.sizes[i];
  }
  return desc;
}

const CudnnModule& cudnnOn(const Device& device) {
  std::string why;
  const CudnnModule* module = device.kind() == DeviceKind::Cuda ? findCudnnModule(why) : nullptr;
  HEDDLE_USER_CHECK(module != nullptr, "attention as one call is cuDNN's, on CUDA only; {} {}",
                    device.description(), why.empty() ? "has none" : "has it not: " + why);
  return *module;
}

// `descs`: what the call reads, then what it writes.
std::shared_ptr<const PreparedAttention> prepared(const CallLibrary& call,
                                                  const std::vector<TensorDesc>& descs,
                                                  const Device& device) {
  const size_t q = isAttentionBackward(call) ? 1 : 0;
  const auto width = static_cast<double>(descs[q].sizes.back());
  const auto scale =
      static_cast<float>(libraryNumber(call, "scale").value_or(1 / std::sqrt(width)));
  const bool causal = libraryFlag(call, "causal");
  const CudnnModule& module = cudnnOn(device);
  const int ordinal = cudaModule().ordinalOf(device);
  if (q == 0) {
    return module.prepare({descs[0], descs[1], descs[2], descs[3], causal, scale}, ordinal);
  }
  return module.prepareBackward(
      {descs[0], descs[1], descs[2], descs[3], descs[4], descs[5], descs[6], causal, scale},
      ordinal);
}

// The gradients of what nobody looked at are 0, which is not what cuDNN makes of no tokens.
void checkTokens(const CallLibrary& call, const TraceStep& step) {
  if (!isAttentionBackward(call)) return;
  for (size_t i : {size_t{1}, size_t{2}}) {
    const TensorDesc& desc = step.inputs[i].desc;
    HEDDLE_USER_CHECK(desc.sizes[desc.rank() - 2] > 0, "{} of {} {}: there must be one or more",
                      call.function, desc.sizes[desc.rank() - 2], i == 1 ? "queries" : "keys");
  }
}

}  // namespace

// What cuDNN cannot read or write where it lies is copied to or from the workspace, behind what the
// call itself needs of it.
void PlanBuilder::emitAttention(const CallLibrary& call, const TraceStep& step) {
  const auto is_empty = [](const View& out) { return out.desc.numel() == 0; };
  if (target_.device.kind() == DeviceKind::Null) return;
  if (std::all_of(step.outputs.begin(), step.outputs.end(), is_empty)) return;
  checkTokens(call, step);
  std::vector<View> views = step.inputs;
  views.insert(views.end(), step.outputs.begin(), step.outputs.end());
  std::vector<TensorDesc> descs;
  for (const View& view : views) {
    const bool readable = isReadable(view.desc, view.byte_offset);
    descs.push_back(readable ? view.desc : packedDesc(view.desc));
  }
  Plan::Attention attention;
  attention.prepared = prepared(call, descs, target_.device);
  int64_t bytes = attention.prepared->workspaceBytes();
  std::vector<std::pair<Plan::Operand, Plan::Operand>> copied_back;
  for (size_t i = 0; i < views.size(); ++i) {
    const Plan::Operand given{placeOf(views[i]), views[i].desc, -1};
    attention.operands[i] = given.place;
    if (isReadable(views[i].desc, views[i].byte_offset)) continue;
    bytes = (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
    const Plan::Operand packed{{plan_->workspace(call.stream), bytes}, descs[i], -1};
    bytes += packed.desc.numel() * sizeOf(packed.desc.dtype);
    attention.operands[i] = packed.place;
    if (i < step.inputs.size()) {
      emitCopy(packed, given, call.stream);
    } else {
      copied_back.emplace_back(given, packed);
    }
  }
  int64_t& workspace = plan_->workspace_bytes[static_cast<size_t>(call.stream)];
  workspace = std::max(workspace, bytes);
  plan_->attentions.push_back(std::move(attention));
  emit(AttentionStep{static_cast<int32_t>(plan_->attentions.size()) - 1, call.stream});
  for (const auto& [given, packed] : copied_back) emitCopy(given, packed, call.stream);
}

}  // namespace heddle::host
