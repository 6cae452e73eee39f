#include "host/run/host_steps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>

#include "ir/base/check.h"
#include "ir/graph/print_values.h"
#include "ir/reference/reference.h"
#include "ir/text/fusion_text.h"
#include "ir/types/host_tensor.h"

namespace heddle::host {
namespace {

std::byte* pointerOf(const Plan::Operand& operand, const RunState& state) {
  if (!operand.address.pointer.valid()) return nullptr;
  std::byte* base = state.pointers[operand.address.pointer];
  return base == nullptr ? nullptr : base + operand.address.offset;  // nullptr: a buffer of 0 bytes
}

// Returns the number of elements in memory from the first to the last element of a tensor, both
// included. Returns 0 for an empty tensor.
int64_t spanOf(const TensorDesc& desc) {
  int64_t span = desc.numel() == 0 ? 0 : 1;
  for (size_t i = 0; span > 0 && i < desc.rank(); ++i) {
    span += (desc.sizes[i] - 1) * desc.strides[i];
  }
  return span;
}

// Enqueues a copy of the operand to the host, and a task that calls `use` with the copy as a dense
// tensor.
template <class Use>
void enqueueOnHost(const Plan::Operand& operand, const RunState& state, Device& device,
                   Stream stream, const Issue& issue, Use use) {
  const int64_t bytes = spanOf(operand.desc) * sizeOf(operand.desc.dtype);
  std::shared_ptr<std::byte[]> copy(new std::byte[static_cast<size_t>(bytes) + 1]);
  if (bytes > 0) device.copy(copy.get(), pointerOf(operand, state), bytes, stream, issue);
  device.hostTask([copy, desc = operand.desc, use] { use(unpackFrom(copy.get(), desc)); }, stream,
                  issue);
}

void checkFinite(const std::string& name, const HostTensor& tensor) {
  if (!isFloat(tensor.dtype)) return;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    const double value = toDouble(tensor.at(i));
    HEDDLE_USER_CHECK(std::isfinite(value), "%{} holds {} at element {} of {}", name, value, i,
                      str(tensor.sizes));
  }
}

// Writes the line with one call, so that the lines of several ranks do not mix.
void printLine(const std::string& line) {
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
}

void printTensor(const std::string& name, const HostTensor& tensor) {
  constexpr int64_t kShown = 8;
  std::string line =
      fmt::format("%{}: {}{} =", name, heddle::name(tensor.dtype), str(tensor.sizes));
  for (int64_t i = 0; i < std::min(tensor.numel(), kShown); ++i) {
    line += " " + printScalar(tensor.at(i));
  }
  if (tensor.numel() > kShown) line += " ...";
  line += "\n";
  printLine(line);
}

}  // namespace

Scalar applyToScalars(const ApplyStep& step, const IdVector<RegisterId, Scalar>& registers) {
  const size_t count = step.op->arity;
  const auto arg = [&](size_t i) -> const Scalar& { return registers[step.args[i]]; };
  if (step.op->dtype_rule == DTypeRule::Attribute) return roundTo(step.dtype, arg(0));
  if (isFloat(step.compute)) {
    std::array<double, kMaxOperands> values{};
    for (size_t i = 0; i < count; ++i) values[i] = toDouble(roundTo(step.compute, arg(i)));
    HEDDLE_USER_CHECK(step.op->on_floats != nullptr, "{} is not defined for floats", step.op->name);
    if (step.compute == DType::F32 && step.op->on_singles != nullptr) {
      std::array<float, kMaxOperands> singles{};
      std::copy(values.begin(), values.end(), singles.begin());
      return roundTo(step.dtype, double{step.op->on_singles(singles.data())});
    }
    return roundTo(step.dtype, step.op->on_floats(values.data()));
  }
  std::array<int64_t, kMaxOperands> values{};
  for (size_t i = 0; i < count; ++i) values[i] = toInt(arg(i));
  HEDDLE_USER_CHECK(step.op->on_ints != nullptr, "{} is not defined for integers", step.op->name);
  const bool bools = step.compute == DType::Bool && step.op->on_bools != nullptr;
  return roundTo(step.dtype, (bools ? step.op->on_bools : step.op->on_ints)(values.data()));
}

void enqueueReference(const Plan::Reference& reference, const RunState& state, Device& device,
                      Stream stream, const Issue& issue) {
  std::vector<std::byte*> pointers;
  ReferenceInputs scalars;
  for (size_t i = 0; i < reference.inputs.size(); ++i) {
    const Plan::Operand& operand = reference.inputs[i];
    pointers.push_back(pointerOf(operand, state));
    if (!operand.scalar.valid()) continue;
    scalars.scalars[reference.segment.inputs()[i]] = state.registers[operand.scalar];
  }
  for (const Plan::Operand& operand : reference.outputs) {
    pointers.push_back(pointerOf(operand, state));
  }
  // The task gets copies of pointers and scalars, because later runs change `state`.
  device.hostTask(
      [&reference, pointers, inputs = scalars]() mutable {
        const size_t count = reference.inputs.size();
        for (size_t i = 0; i < count; ++i) {
          const Plan::Operand& operand = reference.inputs[i];
          if (operand.scalar.valid()) continue;
          inputs.tensors[reference.segment.inputs()[i]] = unpackFrom(pointers[i], operand.desc);
        }
        const std::vector<HostTensor> results = evaluateReference(reference.segment, inputs, {});
        for (size_t i = 0; i < results.size(); ++i) {
          packInto(pointers[count + i], reference.outputs[i].desc, results[i]);
        }
      },
      stream, issue);
}

void enqueueCheck(const Plan::NamedOperand& named, const RunState& state, Device& device,
                  Stream stream, const Issue& issue) {
  enqueueOnHost(named.operand, state, device, stream, issue,
                [name = named.name](const HostTensor& tensor) { checkFinite(name, tensor); });
}

void enqueuePrint(const Plan::NamedOperand& named, const RunState& state, Device& device,
                  Stream stream, const Issue& issue) {
  if (named.operand.scalar.valid()) {
    const Scalar value = state.registers[named.operand.scalar];
    device.hostTask([name = named.name,
                     value] { printLine(fmt::format("%{} = {}\n", name, printScalar(value))); },
                    stream, issue);
    return;
  }
  enqueueOnHost(named.operand, state, device, stream, issue,
                [name = named.name](const HostTensor& tensor) { printTensor(name, tensor); });
}

namespace {

// Returns the descriptor of the part of a buffer that an all-to-all-v sends (or receives, if
// `after` is true). Returns nullopt if the counts do not fit in the buffer. Issuer::bindCounts()
// reports such counts.
std::optional<TensorDesc> countedDesc(const Plan::Counts& counts, bool after, DType dtype,
                                      const RunState& state) {
  const RegisterId first = after ? counts.recv : counts.send;
  const int64_t elements = after ? counts.recv_elements : counts.send_elements;
  int64_t total = 0;
  for (int32_t i = 0; i < counts.ranks; ++i) {
    const int64_t count = toInt(state.registers[RegisterId(first.number() + i)]);
    if (count < 0 || count > elements - total) return std::nullopt;
    total += count;
  }
  return denseDesc(dtype, {total});
}

}  // namespace

void enqueueInspection(const Plan::Inspection& inspection, int32_t id, bool after,
                       const RunState& state, Device& device, Stream stream, const Issue& issue) {
  const std::shared_ptr<NumericsRecord> record = state.completion->numerics;
  const std::vector<Plan::NamedOperand>& list = after ? inspection.written : inspection.read;
  for (size_t i = 0; i < list.size(); ++i) {
    const Plan::Operand& operand = list[i].operand;
    const auto add = [record, id, after, i](const BadElements& bad) {
      if (bad.count() > 0) record->add(id, after, i, bad);
    };
    if (operand.scalar.valid()) {
      add(countBad(state.registers[operand.scalar]));
      continue;
    }
    const std::optional<TensorDesc> part =
        inspection.counts.valid() ? countedDesc(state.completion->plan->counts[inspection.counts],
                                                after, operand.desc.dtype, state)
                                  : operand.desc;
    const std::byte* const memory = pointerOf(operand, state);
    if (memory == nullptr || !part) continue;
    const TensorDesc& desc = *part;
    if (device.kind() == DeviceKind::Cuda) {
      const int64_t bytes = spanOf(desc) * sizeOf(desc.dtype);
      std::shared_ptr<std::byte[]> copy(new std::byte[static_cast<size_t>(bytes) + 1]);
      if (bytes > 0) device.copy(copy.get(), memory, bytes, stream, issue);
      device.hostTask([copy, desc, add] { add(countBad(copy.get(), desc)); }, stream, issue);
    } else {
      device.hostTask([memory, desc, add] { add(countBad(memory, desc)); }, stream, issue);
    }
  }
}

}  // namespace heddle::host
