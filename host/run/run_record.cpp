#include "host/run/run_record.h"

#include <algorithm>

#include "host/run/run_state.h"

namespace heddle::host {
namespace {

// Returns whether the run writes preallocated output `i` directly. Otherwise the run copies the
// output to the caller's tensor at the end.
bool isWritten(const Plan& plan, size_t i) {
  return std::any_of(plan.preallocated.begin(), plan.preallocated.end(), [&](const auto& given) {
    return given.output == static_cast<int32_t>(i) &&
           given.pointer == plan.outputs[i].address.pointer;
  });
}

// Returns the owner of an earlier output that is in the same buffer as output `output`. Returns
// nullptr if there is no such output. Skips preallocated outputs that are copied, because the copy
// is in other memory.
std::shared_ptr<void> ownerOf(const Plan& plan, size_t output,
                              const std::vector<Argument>& outputs) {
  for (size_t i = 0; i < output; ++i) {
    const Plan::Output& other = plan.outputs[i];
    if (!other.scalar.valid() && other.buffer == plan.outputs[output].buffer &&
        (!other.preallocated || isWritten(plan, i))) {
      return std::get<Tensor>(outputs[i]).owner;
    }
  }
  return nullptr;
}

}  // namespace

std::shared_ptr<Completion> RunRecord::begin(std::shared_ptr<RunResources> resources,
                                             const std::shared_ptr<const Plan>& plan) {
  completion_.reuse(std::move(resources));
  std::shared_ptr<Completion> completion =
      share(completion_, completion_counts_, [](Completion*) {});
  if (completion_.plan != plan) {
    completion_.plan = nullptr;
    prepareFor(*plan);
    completion_.plan = plan;
  }
  return completion;
}

// Creates the result tensors without addresses and owners, which finish() sets in each run of the
// plan. All plans of a record belong to one program, so a change of the plan hardly ever allocates.
void RunRecord::prepareFor(const Plan& plan) {
  is_new_ = true;
  std::vector<Argument>& values = result_.values;
  if (values.size() != plan.outputs.size()) {
    owners_ = std::make_unique<Owner[]>(plan.outputs.size());
    stored_.resize(plan.outputs.size());
    values.assign(plan.outputs.size(), Scalar(int64_t{0}));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const Plan::Output& output = plan.outputs[i];
    // The list buffer_inputs is sorted by input.
    const auto input =
        std::ranges::lower_bound(plan.buffer_inputs, output.input, {}, &Plan::BufferInput::input);
    stored_[i] =
        input != plan.buffer_inputs.end() && input->input == output.input && input->written;
    if (output.scalar.valid()) continue;
    if (!std::holds_alternative<Tensor>(values[i])) values[i] = Tensor();
    auto& tensor = std::get<Tensor>(values[i]);
    tensor.data = nullptr;
    tensor.desc = output.desc;
  }
}

std::shared_ptr<RunResult> RunRecord::finish(RunState& state, Allocator& allocator,
                                             const std::vector<Argument>& inputs,
                                             const std::vector<Tensor>& preallocated) {
  const Plan& plan = *completion_.plan;
  std::shared_ptr<RunResult> result = share(result_, result_counts_, [](RunResult* r) {
    for (Argument& value : r->values) {
      if (auto* tensor = std::get_if<Tensor>(&value)) tensor->owner.reset();
    }
  });
  result_.completion = &completion_;
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const Plan::Output& output = plan.outputs[i];
    if (output.scalar.valid()) {
      result_.values[i] = state.registers[output.scalar];
      continue;
    }
    Tensor& tensor = std::get<Tensor>(result_.values[i]);
    if (output.preallocated) {
      if (is_new_) tensor.desc = preallocated[i].desc;
      tensor.data = preallocated[i].data;
      tensor.owner = borrow(preallocated[i].owner, owners_[i]);
      continue;
    }
    if (!output.desc.held) continue;
    const BufferId buffer = output.buffer;
    std::byte* base = state.pointers[output.address.pointer];
    tensor.data = base == nullptr ? nullptr : base + output.address.offset;  // nullptr: 0 bytes
    if (output.input >= 0) {
      const auto& owner = std::get<Tensor>(inputs[output.input]).owner;
      tensor.owner = stored_[i] ? borrow(owner, owners_[i]) : owner;
    } else if (state.owned[buffer]) {
      tensor.owner = take(state, buffer, allocator, owners_[i]);
    } else {
      tensor.owner = ownerOf(plan, i, result_.values);
    }
  }
  is_new_ = false;
  Owner rest;
  for (BufferId buffer : plan.remaining) {
    if (state.owned[buffer]) take(state, buffer, allocator, rest);
  }
  return result;
}

// Moves a buffer of the run to `owner`. When the returned std::shared_ptr releases the owner, the
// buffer is freed as a stream-ordered free on the run's stream.
std::shared_ptr<void> RunRecord::take(RunState& state, BufferId buffer, Allocator& allocator,
                                      Owner& owner) {
  owner.allocator = &allocator;
  owner.stream = state.streams[kCallerStream];
  owner.memory = state.pointers[pointerTo(buffer)];
  owner.bytes = completion_.plan->buffers[buffer].bytes;
  state.owned[buffer] = false;
  completion_.resources->held_bytes += owner.bytes;
  return share(owner, owner.counts, ReleaseOwner{this, &owner});
}

// Returns an owner that keeps `lender` alive, the owner of the caller's tensor. If `lender` itself
// only keeps another owner alive, the result keeps that owner alive instead (Owner::lender). A
// later run that reads the output finds this run through the result (producerOf()), and checks
// whether this run has failed. If `lender` is empty, this is the only purpose of the result.
std::shared_ptr<void> RunRecord::borrow(const std::shared_ptr<void>& lender, Owner& owner) {
  const auto* release = lender ? std::get_deleter<ReleaseOwner>(lender) : nullptr;
  owner.memory = nullptr;
  owner.lender =
      release != nullptr && release->owner->memory == nullptr ? release->owner->lender : lender;
  return share(owner, owner.counts, ReleaseOwner{this, &owner});
}

Completion* RunRecord::producerOf(const std::shared_ptr<void>& owner) {
  const auto* release = owner ? std::get_deleter<ReleaseOwner>(owner) : nullptr;
  return release == nullptr ? nullptr : &release->record->completion_;
}

void RunRecord::free(Owner& owner) noexcept {
  owner.lender.reset();
  if (owner.memory == nullptr) return;
  // For cudaStreamPerThread, the thread that destroys the last owner may have a different stream
  // than the thread that issued the run. The stream of the destroying thread must wait for the run.
  if (differsPerThread(owner.stream)) {
    try {
      completion_.resources->device().waitEvent(owner.stream, completion_.event);
    } catch (const std::exception&) {
      completion_.errors.report(std::current_exception(), -1);
    }
  }
  owner.allocator->deallocate(owner.memory, owner.bytes, owner.stream);
  completion_.resources->held_bytes -= owner.bytes;
  owner.memory = nullptr;
}

void RunRecord::releasePart() noexcept {
  if (parts_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  completion_.reportUnwaited();
  if (completion_.resources->hasManyFreeRecords()) completion_.plan.reset();
  // RunResources owns the free records. The local pointer keeps the RunResources, and thus this
  // record, alive until giveRecord() has returned.
  const std::shared_ptr<RunResources> resources = std::move(completion_.resources);
  resources->giveRecord(*this);
}

void RunRecord::destroyAll(RunRecord* first) noexcept {
  while (first != nullptr) {
    RunRecord* const next = first->next;
    delete first;
    first = next;
  }
}

}  // namespace heddle::host
