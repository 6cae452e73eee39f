#include "host/run/issue.h"

#include <algorithm>
#include <cstring>

#include "host/device/attention.h"
#include "host/run/host_steps.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

bool holds(const Scalar& lhs, Predicate::Compare compare, int64_t rhs) {
  const int64_t value = toInt(lhs);
  switch (compare) {
    case Predicate::Compare::Eq:
      return value == rhs;
    case Predicate::Compare::Ne:
      return value != rhs;
    case Predicate::Compare::Lt:
      return value < rhs;
    case Predicate::Compare::Le:
      return value <= rhs;
    case Predicate::Compare::Gt:
      return value > rhs;
    case Predicate::Compare::Ge:
      return value >= rhs;
  }
  return false;
}

}  // namespace

void Issuer::run() {
  allocateWorkspaces();
  comm::RankStatus* const status = state_.completion->resources->job.status();
  // On CUDA, issueObserved() marks a range for each step of an instruction. Profilers show these
  // ranges.
  const bool observed =
      state_.profile != nullptr || state_.fault != nullptr || device_.kind() == DeviceKind::Cuda;
  while (next_ < plan_.steps.size()) {
    const size_t current = next_++;  // before operator(), because a jump sets next_
    issue_.instruction = plan_.instruction_of[current];
    issue_.step = static_cast<int32_t>(current);
    if (status != nullptr && issue_.instruction >= 0) {
      status->issued.store(issue_.instruction, std::memory_order_relaxed);
    }
    if (observed) {
      issueObserved(current);
    } else {
      std::visit(*this, plan_.steps[current]);
    }
  }
  freeWorkspaces();
}

void Issuer::allocateWorkspaces() {
  const auto within = [](int64_t bytes, std::string_view what, const auto& allocate) {
    try {
      return static_cast<std::byte*>(allocate());
    } catch (const std::bad_alloc& why) {
      userErrorWith(ErrorCode::OutOfMemory, "out of memory: {} bytes for the {} of the kernels{}",
                    bytes, what, saidBy(why));
    }
  };
  for (StreamId id : plan_.workspace_bytes.ids()) {
    const int64_t bytes = plan_.workspace_bytes[id];
    std::byte*& pointer = state_.pointers[plan_.workspace(id)];
    pointer = nullptr;
    if (bytes > 0) {
      pointer = within(bytes, "workspace", [&] { return allocator_.allocate(bytes, stream(id)); });
    }
    if (plan_.counts_blocks[id]) {
      state_.pointers[plan_.counters(id)] = within(codegen::LaunchStage::kCounterBytes, "counters",
                                                   [&] { return state_.counters(id); });
    }
  }
}

void Issuer::freeWorkspaces() noexcept {
  for (StreamId id : plan_.workspace_bytes.ids()) {
    std::byte*& pointer = state_.pointers[plan_.workspace(id)];
    if (pointer == nullptr) continue;
    allocator_.deallocate(pointer, plan_.workspace_bytes[id], stream(id));
    pointer = nullptr;
  }
}

// Makes kCallerStream wait for all other streams of the run, so that frees on kCallerStream happen
// after the work of all streams. If a call of the device fails, the function only reports the
// error, because all memory must still be freed.
void Issuer::joinStreams() noexcept {
  for (StreamId id : IdRange(StreamId(1), StreamId(plan_.streams))) {
    try {
      device_.recordEvent(state_.completion->event, stream(id));
      device_.waitEvent(stream(kCallerStream), state_.completion->event);
    } catch (const std::exception&) {
      state_.completion->errors.report(std::current_exception(), issue_.instruction);
    }
  }
}

void Issuer::freeBuffer(BufferId buffer) noexcept {
  if (!state_.owned[buffer]) return;
  state_.owned[buffer] = false;
  std::byte*& memory = state_.pointers[pointerTo(buffer)];
  const int64_t bytes = plan_.buffers[buffer].bytes;
  if (bytes > 0) {
    allocator_.deallocate(memory, bytes, stream(kCallerStream));
  }
  memory = nullptr;
}

void Issuer::freeAll() noexcept {
  joinStreams();
  for (BufferId buffer : plan_.buffers.ids()) freeBuffer(buffer);
  freeWorkspaces();
}

void Issuer::throwOutOfMemory(const AllocateStep& step, const std::bad_alloc& why) const {
  std::vector<const Buffer*> held;
  for (BufferId id : plan_.buffers.ids()) {
    const Buffer& buffer = plan_.buffers[id];
    if (state_.owned[id] && buffer.bytes > 0) held.push_back(&buffer);
  }
  std::stable_sort(held.begin(), held.end(),
                   [](const Buffer* a, const Buffer* b) { return a->bytes > b->bytes; });
  constexpr size_t kListed = 8;
  std::string list;
  for (size_t i = 0; i < std::min(held.size(), kListed); ++i) {
    list += fmt::format("{}%{} {}", i == 0 ? ": " : ", ", held[i]->name, held[i]->bytes);
  }
  if (held.size() > kListed) list += fmt::format(" and {} more", held.size() - kListed);
  userErrorWith(ErrorCode::OutOfMemory,
                "out of memory: %{} asks for {} bytes, the run holds {} bytes{}{}",
                plan_.buffers[step.buffer].name, step.bytes, state_.held_bytes, list, saidBy(why));
}

void Issuer::operator()(const AllocateStep& step) {
  std::byte* memory = nullptr;
  if (step.bytes > 0) {
    try {
      memory = static_cast<std::byte*>(allocator_.allocate(step.bytes, stream(step.stream)));
    } catch (const std::bad_alloc& why) {
      throwOutOfMemory(step, why);
    }
  }
  state_.pointers[pointerTo(step.buffer)] = memory;
  if (!plan_.late_pointers.empty()) state_.setLatePointers(pointerTo(step.buffer));
  state_.owned[step.buffer] = true;
  state_.held_bytes += step.bytes;
  state_.peak_bytes = std::max(state_.peak_bytes, state_.held_bytes);
}

void Issuer::operator()(const FreeStep& step) {
  if (!state_.owned[step.buffer]) return;  // a branch has skipped the Allocate of the buffer
  state_.owned[step.buffer] = false;
  state_.held_bytes -= step.bytes;
  if (step.bytes == 0) return;
  allocator_.deallocate(state_.pointers[pointerTo(step.buffer)], step.bytes, stream(step.stream));
}

void Issuer::operator()(const LaunchStep& step) {
  const Plan::Stage& stage = plan_.stages[step.stage];
  std::byte* args = state_.args.data();
  const Plan::PointerPatch* patch = plan_.pointer_patches.data() + step.first_pointer;
  for (int32_t i = 0; i < step.pointers; ++i, ++patch) {
    const std::byte* pointer = at(patch->address);
    std::memcpy(args + patch->at, &pointer, sizeof(pointer));
  }
  const Plan::ScalarPatch* value = plan_.scalar_patches.data() + step.first_scalar;
  for (int32_t i = 0; i < step.scalars; ++i, ++value) {
    storeElement(args + value->at, value->dtype, 0, scalar(value->scalar));
  }
  device_.launch(stage.kernel, stage.launch, args + stage.args, stream(step.stream), issue_);
}

void Issuer::operator()(const MatmulStep& step) {
  const Plan::Matmul& matmul = plan_.matmuls[step.matmul];
  const MatmulOperands operands{at(matmul.a), at(matmul.b), at(matmul.bias), at(matmul.c),
                                at({plan_.workspace(step.stream), 0})};
  matmul.prepared->run(operands, stream(step.stream), issue_);
}

void Issuer::operator()(const LibraryStep& step) {
  const Plan::Library& library = plan_.libraries[step.library];
  LibraryCall call = library.call;
  for (size_t i = 0; i < library.inputs.size(); ++i) {
    call.in[i] = at(library.inputs[i]);
    call.in_descs[i] = &library.descs[i];
  }
  call.out = at(library.output);
  call.out_desc = &library.descs.back();
  call.workspace = at({plan_.workspace(step.stream), 0});
  device_.library(call, stream(step.stream), issue_);
}

void Issuer::operator()(const AttentionStep& step) {
  const Plan::Attention& attention = plan_.attentions[step.attention];
  PreparedAttention::Memory memory{};
  for (size_t i = 0; i < memory.operands.size(); ++i) {
    memory.operands[i] = at(attention.operands[i]);
  }
  memory.workspace = at({plan_.workspace(step.stream), attention.workspace});
  attention.prepared->run(memory, stream(step.stream), issue_);
}

void Issuer::operator()(const CopyStep& step) {
  if (at(step.dst) == at(step.src)) return;  // source and destination are the same memory
  device_.copy(at(step.dst), at(step.src), step.bytes, stream(step.stream), issue_);
}

// Fills the lists of send and receive counts of an all-to-all-v call from the registers. Throws
// UserError if the counts exceed a buffer. The job monitor then compares the lists with those of
// the other team members on this machine. Device::communicate() copies the lists, so a later run
// may overwrite them.
void Issuer::bindCounts(const CollectiveStep& step, comm::Operation& operation) {
  const Plan::Counts& counts = plan_.counts[step.counts];
  const auto list = [&](RegisterId first, int32_t at, int64_t elements, std::string_view verb) {
    int64_t* values = state_.counts.data() + at;
    int64_t left = elements;
    for (int32_t i = 0; i < counts.ranks; ++i) {
      values[i] = toInt(scalar(first, i));
      HEDDLE_USER_CHECK(values[i] >= 0 && values[i] <= left,
                        "{} {} elements for rank {} of the team, but only {} of the {} elements of "
                        "the buffer are left",
                        verb, values[i], i, left, elements);
      left -= values[i];
    }
    return std::span<const int64_t>(values, static_cast<size_t>(counts.ranks));
  };
  operation.send_counts = list(counts.send, counts.at, counts.send_elements, "sends");
  operation.recv_counts =
      list(counts.recv, counts.at + counts.ranks, counts.recv_elements, "receives");
  if (counts.ranks == 1) return;
  const Plan::StepNote& note = plan_.notes[issue_.step];
  state_.completion->resources->job.compareCounts(issue_.instruction, note.occurrence,
                                                  plan_.teams[step.team], operation.send_counts,
                                                  operation.recv_counts);
}

void Issuer::operator()(const CollectiveStep& step) {
  comm::Operation* operation = state_.operations.data() + step.first;
  const Plan::OperationAddresses* addresses = plan_.operation_addresses.data() + step.first;
  for (int32_t i = 0; i < step.operations; ++i) {
    operation[i].send = at(addresses[i].send);
    operation[i].recv = at(addresses[i].recv);
  }
  if (step.counts.valid()) bindCounts(step, *operation);
  device_.communicate(*step.communicator, {operation, static_cast<size_t>(step.operations)},
                      stream(step.stream), issue_);
}

void Issuer::operator()(const RecordStep& step) {
  device_.recordEvent(state_.events[step.event], stream(step.stream));
}

void Issuer::operator()(const WaitStep& step) {
  device_.waitEvent(stream(step.stream), state_.events[step.event]);
}

void Issuer::operator()(const RegisterStep& step) { scalar(step.out) = step.value; }

void Issuer::operator()(const ApplyStep& step) {
  scalar(step.out) = applyToScalars(step, state_.registers);
}

void Issuer::operator()(const ReadBackStep& step) {
  const Event event = state_.events[step.event];
  std::byte* staging = state_.staging.data();
  if (step.count > 0) {
    device_.copy(staging, at(step.src), step.count * sizeOf(step.source_dtype), stream(step.stream),
                 issue_);
  }
  device_.recordEvent(event, stream(step.stream));
  awaitEvent(device_, event, plan_);
  state_.completion->rethrow();  // if earlier work has failed, the value is not valid
  for (int32_t i = 0; i < step.count; ++i) {
    scalar(step.out, i) = roundTo(step.dtype, loadElement(staging, step.source_dtype, i));
  }
}

void Issuer::operator()(const BranchStep& step) {
  if (!holds(scalar(step.lhs), step.compare, step.rhs)) next_ = static_cast<size_t>(step.target);
}

void Issuer::operator()(const GotoStep& step) { next_ = static_cast<size_t>(step.target); }

void Issuer::operator()(const ReferenceStep& step) {
  enqueueReference(plan_.references[step.reference], state_, device_, stream(step.stream), issue_);
}

void Issuer::operator()(const CheckStep& step) {
  enqueueCheck(plan_.named_operands[step.operand], state_, device_, stream(step.stream), issue_);
}

void Issuer::operator()(const PrintStep& step) {
  enqueuePrint(plan_.named_operands[step.operand], state_, device_, stream(step.stream), issue_);
}

void Issuer::operator()(const InspectStep& step) {
  enqueueInspection(plan_.inspections[step.inspection], step.inspection.number(), step.after,
                    state_, device_, stream(step.stream), issue_);
}

}  // namespace heddle::host
