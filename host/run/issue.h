#pragma once

#include <cstddef>
#include <new>

#include "host/plan/plan.h"
#include "host/run/run_state.h"

namespace heddle::host {

// Issues the steps of a plan, with one handler per kind of step. An Issuer is used for one run.
class Issuer {
 public:
  Issuer(const Plan& plan, RunState& state, Device& device, Allocator& allocator)
      : plan_(plan), state_(state), device_(device), allocator_(allocator) {
    issue_.errors = &state.completion->errors;
    RunObserver& observer = state.completion->observer;
    if (observer.observes()) issue_.observer = &observer;
  }

  // Allocates the workspaces, issues all steps, and frees the workspaces.
  void run();
  // Returns the instruction that run() is issuing, for messages. -1: none, because run() is before
  // the first or after the last step.
  InstructionIndex instruction() const { return issue_.instruction; }
  // Frees all memory of the run, on stream 0 after all issued work. Call this after an exception.
  void freeAll() noexcept;

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
  Stream stream(StreamId id) const { return state_.streams[id]; }
  std::byte* at(const Place& place) const {
    if (!place.pointer.valid()) return nullptr;
    std::byte* base = state_.pointers[place.pointer];
    return base == nullptr ? nullptr : base + place.offset;  // a buffer of no bytes
  }
  Scalar& scalar(RegisterId id) const { return state_.registers[id]; }
  // Returns element `i` of a list.
  Scalar& scalar(RegisterId first, int32_t i) const {
    return scalar(RegisterId(first.number() + i));
  }
  void bindCounts(const CollectiveStep& step, comm::Operation& operation);
  // Issues a step if a run profile or a profiler records it, or if a fault may be injected.
  void issueObserved(size_t step);
  void injectBeforeStep(StreamId stream);
  void injectAfterStep(size_t step);
  void freeBuffer(BufferId buffer) noexcept;
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

// Requires that the fault can act in a run of the plan. UserError: the instruction of the fault
// does not exist, this rank does not issue it, or (for Corrupt) it writes no memory on this rank.
void checkFault(const InjectedFault& fault, const Plan& plan, const RunResources& resources);

}  // namespace heddle::host
