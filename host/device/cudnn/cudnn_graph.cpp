#include "host/device/cudnn/cudnn_graph.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "ir/base/check.h"

namespace heddle::host::cudnn {
namespace {

constexpr int64_t kTensorAlignment = 16;
constexpr size_t kMostProposals = 8;
constexpr size_t kMostKnobs = 64;  // more than any engine has

using Handle = cudnnBackendDescriptor_t;

void finish(Handle descriptor, const char* what) { check(cudnnBackendFinalize(descriptor), what); }

void setFlag(Handle descriptor, cudnnBackendAttributeName_t name, bool value) {
  check(cudnnBackendSetAttribute(descriptor, name, CUDNN_TYPE_BOOLEAN, 1, &value),
        "cudnnBackendSetAttribute");
}

void setType(Handle descriptor, cudnnBackendAttributeName_t name, cudnnDataType_t type) {
  setAttributes(descriptor, name, CUDNN_TYPE_DATA_TYPE, std::vector{type});
}

void setPart(Handle descriptor, cudnnBackendAttributeName_t name, Handle part) {
  setAttributes(descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::vector{part});
}

cudnnDataType_t computeTypeOf(cudnnPointwiseMode_t mode) {
  if (mode == CUDNN_POINTWISE_GEN_INDEX) return CUDNN_DATA_INT32;
  return mode == CUDNN_POINTWISE_CMP_GE ? CUDNN_DATA_BOOLEAN : CUDNN_DATA_FLOAT;
}

// Reads an attribute with one value. `what` names it in messages.
template <class T>
void get(Handle descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
         T& value, const char* what) {
  int64_t count = 0;
  check(cudnnBackendGetAttribute(descriptor, name, type, 1, &count, &value), what);
}

// Reads an attribute that is a list of descriptors. Fills the first descriptors of `parts`, which
// the caller has made, and returns their number.
int64_t getParts(Handle descriptor, cudnnBackendAttributeName_t name, std::vector<Handle>& parts,
                 const char* what) {
  int64_t count = 0;
  check(cudnnBackendGetAttribute(descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                 static_cast<int64_t>(parts.size()), &count, parts.data()),
        what);
  return std::min(count, static_cast<int64_t>(parts.size()));
}

bool isDeterministic(Handle engine) {
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  int64_t count = 0;
  check(
      cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                               CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes),
      "the numerical notes of an engine");
  const auto* const end = notes + std::min<int64_t>(count, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  return std::find<const cudnnBackendNumericalNote_t*>(
             notes, end, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) == end;
}

std::string nameOf(Handle configuration, Handle engine) {
  std::vector<Descriptor> owners;
  std::vector<Handle> knobs;
  for (size_t i = 0; i < kMostKnobs; ++i) {
    owners.push_back(makeDescriptor(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR));
    knobs.push_back(owners.back().get());
  }
  knobs.resize(static_cast<size_t>(getParts(configuration, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, knobs,
                                            "the knobs of a proposal")));
  int64_t index = 0;
  get(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, index, "the index of an engine");
  std::vector<std::string> texts;
  for (const Handle knob : knobs) {
    cudnnBackendKnobType_t type{};
    int64_t value = 0;
    get(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, type, "the type of a knob");
    get(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, value, "the value of a knob");
    texts.push_back(fmt::format("{}:{}", static_cast<int>(type), value));
  }
  return fmt::format("engine={} knobs={}", index, fmt::join(texts, ","));
}

}  // namespace

Descriptor makeDescriptor(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t descriptor = nullptr;
  check(cudnnBackendCreateDescriptor(type, &descriptor), "cudnnBackendCreateDescriptor");
  return {descriptor, cudnnBackendDestroyDescriptor};
}

cudnnBackendDescriptor_t Graph::make(cudnnBackendDescriptorType_t type) {
  descriptors_.push_back(makeDescriptor(type));
  return descriptors_.back().get();
}

Graph::Tensor Graph::addTensor(cudnnDataType_t type, const Sizes& sizes, const Sizes& strides,
                               bool in_memory, bool by_value) {
  const Tensor tensor{make(CUDNN_BACKEND_TENSOR_DESCRIPTOR), ++ids_};
  setType(tensor.descriptor, CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  setAttributes(tensor.descriptor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, sizes);
  setAttributes(tensor.descriptor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides);
  setAttributes(tensor.descriptor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, Sizes{tensor.id});
  setAttributes(tensor.descriptor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64,
                Sizes{kTensorAlignment});
  setFlag(tensor.descriptor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, !in_memory);
  if (by_value) setFlag(tensor.descriptor, CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  finish(tensor.descriptor, "a tensor");
  return tensor;
}

Graph::Tensor Graph::tensor(cudnnDataType_t type, const Sizes& sizes, const Sizes& strides) {
  return addTensor(type, sizes, strides, true, false);
}

Graph::Tensor Graph::number() {
  const Sizes one(4, 1);
  return addTensor(CUDNN_DATA_FLOAT, one, one, true, true);
}

Graph::Tensor Graph::inner(cudnnDataType_t type, const Sizes& sizes) {
  Sizes strides(sizes.size(), 1);
  for (size_t i = sizes.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * sizes[i + 1];
  return inner(type, sizes, strides);
}

Graph::Tensor Graph::inner(cudnnDataType_t type, const Sizes& sizes, const Sizes& strides) {
  return addTensor(type, sizes, strides, false, false);
}

void Graph::matmul(Tensor a, Tensor b, Tensor result) {
  const Handle kind = make(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  setType(kind, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  finish(kind, "a matrix product");
  const Handle op = make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  setPart(op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a.descriptor);
  setPart(op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b.descriptor);
  setPart(op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, result.descriptor);
  setPart(op, CUDNN_ATTR_OPERATION_MATMUL_DESC, kind);
  finish(op, "the operation of a matrix product");
  ops_.push_back(op);
}

void Graph::pointwise(cudnnPointwiseMode_t mode, std::initializer_list<Tensor> operands,
                      Tensor result, int64_t axis) {
  constexpr cudnnBackendAttributeName_t kOperands[] = {CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                                                       CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                                                       CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
  const Handle kind = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  setAttributes(kind, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, std::vector{mode});
  setType(kind, CUDNN_ATTR_POINTWISE_MATH_PREC, computeTypeOf(mode));
  if (axis >= 0) {
    setAttributes(kind, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, Sizes{axis});
  }
  finish(kind, "a pointwise op");
  const Handle op = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  setPart(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind);
  const cudnnBackendAttributeName_t* name = kOperands;
  for (const Tensor& operand : operands) setPart(op, *name++, operand.descriptor);
  setPart(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, result.descriptor);
  finish(op, "the operation of a pointwise op");
  ops_.push_back(op);
}

void Graph::reduction(cudnnReduceTensorOp_t kind_of, Tensor operand, Tensor result) {
  const Handle kind = make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  setAttributes(kind, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE,
                std::vector{kind_of});
  setType(kind, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  finish(kind, "a reduction");
  const Handle op = make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  setPart(op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, operand.descriptor);
  setPart(op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, result.descriptor);
  setPart(op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, kind);
  finish(op, "the operation of a reduction");
  ops_.push_back(op);
}

void Graph::reshape(Tensor operand, Tensor result) {
  const Handle op = make(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  setPart(op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, operand.descriptor);
  setPart(op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, result.descriptor);
  finish(op, "the operation of a reshape");
  ops_.push_back(op);
}

std::vector<Graph::Proposal> Graph::propose(cudnnHandle_t handle) {
  const Handle graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  setAttributes(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, ops_);
  setAttributes(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, std::vector{handle});
  finish(graph, "the graph");
  const Handle heuristic = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  setPart(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  setAttributes(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE,
                std::vector{CUDNN_HEUR_MODE_A});
  finish(heuristic, "the heuristic");
  std::vector<Handle> configurations(kMostProposals);
  for (Handle& each : configurations) each = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  const int64_t count =
      getParts(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, configurations, "the proposals");
  configurations.resize(static_cast<size_t>(count));
  std::vector<Proposal> proposals;
  for (const Handle each : configurations) {
    const Descriptor engine = makeDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    std::vector<Handle> engines{engine.get()};
    getParts(each, CUDNN_ATTR_ENGINECFG_ENGINE, engines, "the engine of a proposal");
    if (isDeterministic(engine.get())) proposals.push_back({each, nameOf(each, engine.get())});
  }
  return proposals;
}

std::vector<std::string> Graph::proposals(cudnnHandle_t handle) {
  std::vector<std::string> names;
  for (Proposal& each : propose(handle)) names.push_back(std::move(each.name));
  return names;
}

// The heuristic may propose configurations that cuDNN does not support. Only an attempt to build a
// plan shows this. The function therefore tries the chosen proposal, and then all proposals in
// order, until it can build a plan. If all of them fail, it reports the error of the last attempt.
void Graph::plan(cudnnHandle_t handle, const std::string& choice) {
  std::vector<Proposal> proposals = propose(handle);
  std::stable_partition(proposals.begin(), proposals.end(),
                        [&](const Proposal& each) { return each.name == choice; });
  cudnnStatus_t status = CUDNN_STATUS_NOT_SUPPORTED;
  for (const Proposal& each : proposals) {
    const Handle plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    setAttributes(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, std::vector{handle});
    setPart(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, each.configuration);
    status = cudnnBackendFinalize(plan);
    if (status != CUDNN_STATUS_SUCCESS) continue;
    plan_ = plan;
    engine_ = each.name;
    break;
  }
  if (plan_ == nullptr)
    check(status, fmt::format("no plan among {} deterministic proposals", proposals.size()));
  get(plan_, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, workspace_bytes_,
      "the workspace of the plan");
}

void Graph::execute(cudnnHandle_t handle, const std::vector<Binding>& bindings,
                    void* workspace) const {
  std::vector<int64_t> ids;
  std::vector<void*> memory;
  for (const Binding& binding : bindings) {
    ids.push_back(binding.id);
    memory.push_back(binding.memory);
  }
  const Descriptor pack = makeDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  setAttributes(pack.get(), CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, memory);
  setAttributes(pack.get(), CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids);
  setAttributes(pack.get(), CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
                std::vector{workspace});
  finish(pack.get(), "the operands");
  check(cudnnBackendExecute(handle, plan_, pack.get()), "cudnnBackendExecute");
}

}  // namespace heddle::host::cudnn
