#include "host/run/run_result.h"

namespace heddle::host {
namespace {

// Owns the memory of an output. The destructor frees it in the order of the run's stream.
struct OwnedBuffer {
  OwnedBuffer(const std::shared_ptr<Completion>& c, Allocator& a, Stream s) noexcept
      : resources(c->resources), allocator(a), stream(s) {
    if (differsPerThread(stream)) run = c;
  }
  ~OwnedBuffer() {
    if (memory == nullptr) return;
    if (run) waitForRun();
    allocator.deallocate(memory, bytes, stream);
    resources->held_bytes -= bytes;
  }
  OwnedBuffer(const OwnedBuffer&) = delete;
  OwnedBuffer& operator=(const OwnedBuffer&) = delete;

  // Makes the current thread's stream wait for the run. This is necessary for cudaStreamPerThread:
  // the thread that destroys the last owner may have a different stream than the thread that issued
  // the run.
  void waitForRun() noexcept {
    try {
      resources->device().waitEvent(stream, run->event);
    } catch (const std::exception&) {
      run->errors.report(std::current_exception(), -1);
    }
  }

  std::shared_ptr<RunResources> resources;
  std::shared_ptr<Completion> run;  // set only if differsPerThread(stream) is true
  Allocator& allocator;
  Stream stream;
  void* memory = nullptr;
  int64_t bytes = 0;
};

// Returns the owner of an earlier output that is a view of the same buffer. Returns nullptr if
// there is no such output.
std::shared_ptr<void> ownerOf(const Plan& plan, size_t output,
                              const std::vector<Argument>& outputs) {
  for (size_t i = 0; i < output; ++i) {
    const Plan::Output& other = plan.outputs[i];
    if (!other.scalar.valid() && !other.preallocated &&
        other.place.pointer == plan.outputs[output].place.pointer) {
      return std::get<Tensor>(outputs[i]).owner;
    }
  }
  return nullptr;
}

std::shared_ptr<void> takeBuffer(const Plan& plan, RunState& state, BufferId buffer,
                                 Allocator& allocator) {
  auto owner =
      std::make_shared<OwnedBuffer>(state.completion, allocator, state.streams[kCallerStream]);
  owner->memory = state.pointers[pointerTo(buffer)];
  owner->bytes = plan.buffers[buffer].bytes;
  state.owned[buffer] = false;
  return owner;
}

}  // namespace

std::vector<Argument> takeOutputs(const Plan& plan, RunState& state, Allocator& allocator,
                                  const std::vector<Argument>& inputs,
                                  const std::vector<Tensor>& preallocated) {
  std::vector<Argument> outputs;
  outputs.reserve(plan.outputs.size());
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const Plan::Output& output = plan.outputs[i];
    if (output.scalar.valid()) {
      outputs.emplace_back(state.registers[output.scalar]);
      continue;
    }
    if (output.preallocated) {
      outputs.emplace_back(preallocated[i]);
      continue;
    }
    if (!output.desc.held) {
      outputs.emplace_back(Tensor{nullptr, output.desc, nullptr});
      continue;
    }
    const BufferId buffer = bufferOf(output.place.pointer);
    Tensor tensor;
    std::byte* base = state.pointers[output.place.pointer];
    tensor.data = base == nullptr ? nullptr : base + output.place.offset;  // nullptr: 0 bytes
    tensor.desc = output.desc;
    if (output.input >= 0) {
      tensor.owner = std::get<Tensor>(inputs[static_cast<size_t>(output.input)]).owner;
    } else if (state.owned[buffer]) {
      tensor.owner = takeBuffer(plan, state, buffer, allocator);
    } else {
      tensor.owner = ownerOf(plan, i, outputs);
    }
    outputs.emplace_back(std::move(tensor));
  }
  for (BufferId buffer : state.owned.ids()) {
    if (state.owned[buffer]) takeBuffer(plan, state, buffer, allocator);
  }
  return outputs;
}

}  // namespace heddle::host
