#include "host/tensor.h"

#include <cstring>
#include <memory>

#include "host/plan/bind_inputs.h"
#include "host/program/visit.h"
#include "host/unroll/scope.h"
#include "host/unroll/unroll.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

// Describes an input in the memory order that the program expects from the caller
// (Layout::Observed). Scope::describe() returns the order in which the program allocates its own
// tensors.
TensorDesc describeInput(const Program& program, size_t position, const Scope& scope) {
  const Slot& slot = program.slots.at(program.inputs[position]);
  if (slot.is_scalar) return {};
  TensorDesc desc = scope.describe(slot);
  if (slot.tensor.layout.observed) {
    desc.strides = stridesFor(desc.alloc, slot.tensor.layout.observed->order);
  }
  return desc;
}

std::vector<TensorDesc> describeInputs(const Program& program, const Scope& scope) {
  std::vector<TensorDesc> descs;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    descs.push_back(describeInput(program, i, scope));
  }
  return descs;
}

Scope scopeOf(const Program& program, SizeBindings sizes, int64_t rank, int64_t ranks) {
  completeSizes(program, sizes);
  return Scope(program.meshes, sizes, rank, ranks);
}

// Copies bytes on the device's default stream, waits for the copy and throws its error, if there is
// one. The event is created first: if this fails, no copy uses the memory of the caller.
void copyAndWait(Device& device, void* dst, const void* src, int64_t bytes) {
  const auto destroy = [&](Event event) { device.destroyEvent(event); };
  const std::unique_ptr<void, decltype(destroy)> event(device.createEvent(), destroy);
  ErrorSink errors;
  device.copy(dst, src, bytes, nullptr, {&errors, -1});
  device.recordEvent(event.get(), nullptr);
  device.synchronize(event.get());
  errors.rethrow();
}

std::shared_ptr<void> allocateOwned(Allocator& allocator, int64_t bytes) {
  void* memory = nullptr;
  try {
    memory = allocator.allocate(bytes, nullptr);
  } catch (const std::bad_alloc& why) {
    userErrorWith(ErrorCode::OutOfMemory, "out of memory: a tensor of {} bytes{}", bytes,
                  saidBy(why));
  }
  return {memory, [&allocator, bytes](void* p) { allocator.deallocate(p, bytes, nullptr); }};
}

}  // namespace

TensorDesc inputDesc(const Program& program, size_t position, const SizeBindings& sizes,
                     int64_t rank, int64_t ranks) {
  HEDDLE_USER_CHECK(position < program.inputs.size(), "there is no input {}: program {} has {}",
                    position, program.name, program.inputs.size());
  return describeInput(program, position, scopeOf(program, sizes, rank, ranks));
}

std::vector<TensorDesc> inputDescs(const Program& program, const SizeBindings& sizes, int64_t rank,
                                   int64_t ranks) {
  return describeInputs(program, scopeOf(program, sizes, rank, ranks));
}

TensorDesc outputDesc(const Program& program, size_t position, const SizeBindings& sizes,
                      int64_t rank, int64_t ranks) {
  HEDDLE_USER_CHECK(position < program.outputs.size(), "there is no output {}: program {} has {}",
                    position, program.name, program.outputs.size());
  const Program concrete = inlineCalls(concretized(program, ranks));
  UnrollRequest request{sizes, {}, rank, ranks};
  completeSizes(concrete, request.sizes);
  request.inputs = describeInputs(concrete, Scope(concrete.meshes, request.sizes, rank, ranks));
  return unroll(concrete, request).outputs[position].desc;
}

std::vector<RankDescs> describe(const Program& program, const SizeBindings& sizes, int64_t ranks) {
  const Program concrete = inlineCalls(concretized(program, ranks));
  std::vector<RankDescs> all;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    UnrollRequest request{sizes, {}, rank, ranks};
    completeSizes(concrete, request.sizes);
    RankDescs descs;
    descs.inputs = describeInputs(concrete, Scope(concrete.meshes, request.sizes, rank, ranks));
    request.inputs = descs.inputs;
    for (const View& view : unroll(concrete, request).outputs) descs.outputs.push_back(view.desc);
    all.push_back(std::move(descs));
  }
  return all;
}

Tensor toDevice(Device& device, Allocator& allocator, const HostTensor& local,
                const TensorDesc& desc) {
  HEDDLE_USER_CHECK_CODE(
      ShapeMismatch, local.dtype == desc.dtype && local.sizes == desc.sizes,
      "the host tensor is {}{}, but the device tensor is {}{}: dtypes and sizes must "
      "be equal",
      name(local.dtype), str(local.sizes), name(desc.dtype), str(desc.sizes));
  Tensor tensor;
  tensor.desc = desc;
  const int64_t bytes = desc.allocBytes();
  if (bytes == 0) return tensor;
  tensor.owner = allocateOwned(allocator, bytes);
  tensor.data = tensor.owner.get();
  std::vector<std::byte> staged(bytes);
  packInto(staged.data(), desc, local);
  copyAndWait(device, tensor.data, staged.data(), bytes);
  return tensor;
}

HostTensor toHost(Device& device, const Tensor& tensor) {
  if (!tensor.desc.held) return HostTensor(tensor.desc.dtype, {0});
  int64_t span = tensor.desc.numel() == 0 ? 0 : 1;
  for (size_t i = 0; span > 0 && i < tensor.desc.rank(); ++i) {
    span += (tensor.desc.sizes[i] - 1) * tensor.desc.strides[i];
  }
  if (span == 0) return HostTensor(tensor.desc.dtype, tensor.desc.sizes);
  const int64_t bytes = span * sizeOf(tensor.desc.dtype);
  std::vector<std::byte> staged(bytes);
  copyAndWait(device, staged.data(), tensor.data, bytes);
  return unpackFrom(staged.data(), tensor.desc);
}

}  // namespace heddle::host
