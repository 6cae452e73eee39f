// The member of PlanBuilder for attention, which only CUDA has as a library call.
#include <cmath>

#include "host/attention.h"
#include "host/library_op.h"
#include "host/module.h"
#include "host/plan_builder.h"
#include "host/text.h"
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

std::shared_ptr<const PreparedMatmul> prepared(const AttentionSpec& spec, const Device& device) {
  std::string why;
  const CudnnModule* module = device.kind() == DeviceKind::Cuda ? findCudnnModule(why) : nullptr;
  HEDDLE_USER_CHECK(module != nullptr, "attention as one call is cuDNN's, on CUDA only; {} {}",
                    device.description(), why.empty() ? "has none" : "has it not: " + why);
  return module->prepare(spec, cudaModule().ordinalOf(device));
}

}  // namespace

// Goes as a product of three operands. What cuDNN cannot read or write where it lies is copied to
// or from the workspace, behind what the call itself needs of it.
void PlanBuilder::emitAttention(const CallLibrary& call, const TraceStep& step) {
  const View& out = step.outputs.at(0);
  if (out.desc.numel() == 0 || target_.device.kind() == DeviceKind::Null) return;
  Plan::Operand given[4], used[4];
  for (size_t i = 0; i < 4; ++i) {
    const View& view = i < 3 ? step.inputs.at(i) : out;
    given[i] = used[i] = {placeOf(view), view.desc, -1};
    if (!isReadable(view.desc, view.byte_offset)) used[i].desc = packedDesc(view.desc);
  }
  const auto width = static_cast<double>(given[0].desc.sizes.back());
  const double scale = libraryNumber(call, "scale").value_or(1 / std::sqrt(width));
  Plan::Matmul attention;
  try {
    attention.prepared = prepared({used[0].desc, used[1].desc, used[2].desc, used[3].desc,
                                   libraryFlag(call, "causal"), static_cast<float>(scale)},
                                  target_.device);
  } catch (const UserError& e) {
    userError("instruction {} ({}): {}", step.index, printInstruction(program_, *step.instruction),
              e.what());
  }
  int64_t bytes = attention.prepared->workspaceBytes();
  for (size_t i = 0; i < 4; ++i) {
    const View& view = i < 3 ? step.inputs.at(i) : out;
    if (isReadable(view.desc, view.byte_offset)) continue;
    bytes = (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
    used[i].place = {plan_->workspace(call.stream), bytes};
    bytes += used[i].desc.numel() * sizeOf(used[i].desc.dtype);
    if (i < 3) emitCopy(used[i], given[i], call.stream);
  }
  attention.a = used[0].place;
  attention.b = used[1].place;
  attention.bias = used[2].place;
  attention.c = used[3].place;
  int64_t& workspace = plan_->workspace_bytes[static_cast<size_t>(call.stream)];
  workspace = std::max(workspace, bytes);
  matmul_uses_.emplace_back(kReady, call.stream);
  plan_->matmuls.push_back(std::move(attention));
  emit(MatmulStep{static_cast<int32_t>(plan_->matmuls.size()) - 1, call.stream});
  if (used[3].place.pointer != given[3].place.pointer) emitCopy(given[3], used[3], call.stream);
}

}  // namespace heddle::host
