#pragma once

#include <cstddef>
#include <new>

#include "host/plan/plan.h"
#include "host/run/run_state.h"

namespace heddle::host {

// Issues the steps of a plan: one handler a step. Lives for one run.
class Issuer {
 public:
  Issuer(const Plan& plan, RunState& state, Device& device, Allocator& allocator)
      : plan_(plan), state_(state), device_(device), allocator_(allocator) {
    issue_.errors = &state.completion->errors;
    RunObserver& observer = state.completion->observer;
    if (observer.observes()) issue_.observer = &observer;
  }

  // From the first step to the last; workspaces around them.
  void run();
  // At which run() stands, for messages; -1: before the first or after the last.
  InstructionIndex instruction() const { return issue_.instruction; }
  // Gives back what the run holds, on stream 0 behind all that was issued. After an exception, and
  // for buffers that are no output.
  void giveBack(BufferId buffer) noexcept;
  void giveBackAll() noexcept;

  void operator()(const AllocateStep& step);
  void operator()(const FreeStep& step);
  void operator()(const LaunchStep& step);
  void operator()(const ReferenceStep& step);
  void operator()(const MatmulStep& step);
  void operator()(const LibraryStep& step);
  void operator()(const AttentionStep& step);
  void operator()(const CopyStep& step);
  void operator()(const CollectiveStep& step);
  void operator()(const RecordStep& step);
  void operator()(const WaitStep& step);
  void operator()(const RegisterStep& step);
  void operator()(const ApplyStep& step);
  void operator()(const ReadBackStep& step);
  void operator()(const BranchStep& step);
  void operator()(const GotoStep& step);
  void operator()(const CheckStep& step);
  void operator()(const PrintStep& step);

 private:
  Stream stream(StreamId id) const { return state_.streams[static_cast<size_t>(id)]; }
  std::byte* at(const Place& place) const {
    if (place.pointer < 0) return nullptr;
    std::byte* base = state_.pointers[static_cast<size_t>(place.pointer)];
    return base == nullptr ? nullptr : base + place.offset;  // a buffer of no bytes
  }
  Scalar& scalar(int32_t id) const { return state_.registers[static_cast<size_t>(id)]; }
  void bindCounts(const CollectiveStep& step, comm::Operation& operation);
  // A step that a profile, a profiler or an injected fault looks at.
  void issueWatched(size_t step);
  void injectBeforeStep(StreamId stream);
  void injectAfterStep(size_t step);
  void allocateWorkspaces();
  void freeWorkspaces() noexcept;
  [[noreturn]] void throwOutOfMemory(const AllocateStep& step, const std::bad_alloc& why) const;
  void joinStreams() noexcept;

  const Plan& plan_;
  RunState& state_;
  Device& device_;
  Allocator& allocator_;
  Issue issue_;
  size_t next_ = 0;
  bool injected_ = false;
};

// UserError when the plan has no place for the fault: this rank does not issue the instruction, or
// it writes nothing that could be corrupted.
void checkFault(const InjectedFault& fault, const Plan& plan, const RunResources& resources);

}  // namespace heddle::host
