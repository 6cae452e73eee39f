// The members of PlanBuilder for library calls.
#include <algorithm>
#include <boost/container_hash/hash.hpp>

#include "host/device/kernel_choices.h"
#include "host/plan/plan_builder.h"
#include "host/program/library_op.h"
#include "host/text/program_text.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

std::string nameAttr(const CallLibrary& call, std::string_view name, std::string_view otherwise) {
  for (const auto& [key, value] : call.attrs) {
    if (key == name) return std::get<std::string>(value);
  }
  return std::string(otherwise);
}

Activation activationOf(const CallLibrary& call) {
  const std::string text = nameAttr(call, "activation", "none");
  if (text == "none") return Activation::None;
  if (text == "relu") return Activation::Relu;
  HEDDLE_USER_CHECK(text == "gelu_tanh", "{}: activation={}, expected none, relu or gelu_tanh",
                    call.function, text);
  return Activation::GeluTanh;
}

bool isTf32(const CallLibrary& call) {
  const std::string text = nameAttr(call, "precision", "full");
  HEDDLE_USER_CHECK(text == "full" || text == "tf32", "{}: precision={}, expected full or tf32",
                    call.function, text);
  return text == "tf32";
}

// Returns a descriptor of the weights w[n, k] of a `linear` as the matrix [k, n].
TensorDesc transposedDesc(TensorDesc desc) {
  const size_t last = desc.rank() - 1;
  for (auto* list : {&desc.global, &desc.sizes, &desc.alloc, &desc.strides, &desc.offset}) {
    std::swap((*list)[last - 1], (*list)[last]);
  }
  return desc;
}

// Returns the largest power of two, up to 256, that divides the offset in bytes of the view in its
// buffer, for all values of the late inputs (View::offsetBits()).
int64_t alignmentOf(const View& view) {
  const auto offset = static_cast<uint64_t>(view.offsetBits()) | 256U;
  return static_cast<int64_t>(offset & (~offset + 1));
}

MatmulWork workOf(const MatmulSpec& spec) {
  const auto results = static_cast<double>(spec.c.numel());
  const auto length = static_cast<double>(spec.a.sizes.back());
  return {2 * results * length, spec.a.dtype, spec.b.dtype, spec.c.dtype, spec.tf32};
}

LibraryFunction functionOf(std::string_view name) {
  if (name == "cumsum") return LibraryFunction::Cumsum;
  if (name == "argsort") return LibraryFunction::Argsort;
  if (name == "scatter") return LibraryFunction::Scatter;
  if (name == "scatter_add") return LibraryFunction::ScatterAdd;
  userErrorWith(ErrorCode::Unsupported, "no device implements {}", name);
}

}  // namespace

void PlanBuilder::emit(const CallLibrary& call, const UnrolledStep& step) {
  if (isAttention(call)) return emitAttention(call, step);
  if (op(call.function).kind != OpKind::Matmul) return emitLines(call, step);
  const View& a = step.inputs.at(0);
  const View& b = step.inputs.at(1);
  const View& c = step.outputs.at(0);
  if (c.desc.numel() == 0) return;
  MatmulSpec spec;
  spec.a = a.desc;
  spec.b = call.function == "linear" ? transposedDesc(b.desc) : b.desc;
  spec.c = c.desc;
  spec.activation = activationOf(call);
  spec.tf32 = isTf32(call);
  spec.spare_sms = call.spare_sms;
  spec.alignment = {alignmentOf(a), alignmentOf(b), alignmentOf(c), 256};
  Plan::Matmul matmul{addressOf(a), addressOf(b), {}, addressOf(c), nullptr, workOf(spec)};
  if (step.inputs.size() > 2) {
    spec.bias = step.inputs[2].desc;
    spec.alignment.bias = alignmentOf(step.inputs[2]);
    matmul.bias = addressOf(step.inputs[2]);
  }
  matmul_uses_.emplace_back(plannedMatmul(std::move(spec), step), call.stream);
  emit(MatmulStep{plan_->matmuls.push_back(std::move(matmul)), call.stream});
}

// Returns the index in planned_matmuls_ of the matrix product with this spec. Adds the spec if it
// is new.
size_t PlanBuilder::plannedMatmul(MatmulSpec spec, const UnrolledStep& step) {
  size_t hash = 0;
  for (const TensorDesc* desc : {&spec.a, &spec.b, &spec.c}) boost::hash_combine(hash, desc->sizes);
  const auto [first, last] = planned_by_hash_.equal_range(hash);
  for (auto each = first; each != last; ++each) {
    if (planned_matmuls_[each->second].spec == spec) return each->second;
  }
  const size_t index = planned_matmuls_.size();
  planned_by_hash_.emplace(hash, index);
  planned_matmuls_.push_back({std::move(spec), &step, nullptr});
  return index;
}

// Emits a call of cumsum, argsort, scatter or scatter_add (host/device/library_call.h).
void PlanBuilder::emitLines(const CallLibrary& call, const UnrolledStep& step) {
  if (step.outputs.at(0).desc.numel() == 0) return;
  Plan::Library library;
  library.call.function = functionOf(call.function);
  library.call.axis = libraryAxis(call);
  library.call.descending = libraryFlag(call, "descending");
  HEDDLE_CHECK(step.inputs.size() <= LibraryCall::kMostInputs,
               "{} has {} operands, but a call holds {}", call.function, step.inputs.size(),
               LibraryCall::kMostInputs);
  for (const View& view : step.inputs) {
    library.inputs.push_back(addressOf(view));
    library.descs.push_back(view.desc);
  }
  library.output = addressOf(step.outputs[0]);
  library.descs.push_back(step.outputs[0].desc);
  LibraryCall sizes = library.call;
  for (size_t i = 0; i < step.inputs.size(); ++i) sizes.in_descs[i] = &library.descs[i];
  sizes.out_desc = &library.descs.back();
  int64_t& workspace = plan_->workspace_bytes[call.stream];
  workspace = std::max(workspace, target_.device.libraryWorkspace(sizes));
  emit(LibraryStep{plan_->libraries.push_back(std::move(library)), call.stream});
}

void PlanBuilder::namingInstruction(const UnrolledStep& step,
                                    const std::function<void()>& work) const {
  try {
    work();
  } catch (const UserError& e) {
    userErrorWith(e.code(), "instruction {} ({}): {}", step.index,
                  printInstruction(program_, *step.instruction), e.what());
  }
}

// Prepares the matrix products and attentions of the plan. The ranks agree on algorithms in this
// function, so every rank of a job must call it, even a rank without such a call.
void PlanBuilder::prepareLibraryCalls() {
  std::set<std::string> questions;
  for (const PlannedMatmul& planned : planned_matmuls_) {
    namingInstruction(*planned.first,
                      [&] { questions.merge(target_.device.algorithmQuestions(planned.spec)); });
  }
  for (const PlannedAttention& planned : planned_attentions_) {
    namingInstruction(*planned.step, [&] { questions.merge(questionsOf(planned.spec)); });
  }
  const AlgorithmChoices choices = target_.algorithms.choose(
      questions, sizes_, [&](const std::string& question) { return chooseAlgorithm(question); });
  prepareMatmuls(choices);
  prepareAttentions(choices);
}

// Returns the choice of the user or, without one, the choice of the device.
std::string PlanBuilder::chooseAlgorithm(const std::string& question) const {
  std::string given;
  if (target_.choices != nullptr) {
    given = chosenAlgorithm(question, *target_.choices, target_.device).value_or("");
  }
  return isAttentionQuestion(question)
             ? chooseAttention(question, given)
             : target_.device.chooseAlgorithm(question, target_.stream, given);
}

void PlanBuilder::prepareMatmuls(const AlgorithmChoices& choices) {
  for (PlannedMatmul& planned : planned_matmuls_) {
    namingInstruction(*planned.first, [&] {
      planned.prepared = target_.device.prepareMatmul(planned.spec, choices);
    });
  }
  for (MatmulId id : matmul_uses_.ids()) {
    const auto& [index, stream] = matmul_uses_[id];
    Plan::Matmul& matmul = plan_->matmuls[id];
    matmul.prepared = planned_matmuls_[index].prepared;
    int64_t& workspace = plan_->workspace_bytes[stream];
    workspace = std::max(workspace, matmul.prepared->workspaceBytes());
  }
}

}  // namespace heddle::host
