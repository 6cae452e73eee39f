#pragma once

#include <cstddef>
#include <new>

#include "host/plan/plan.h"
#include "host/run/run_state.h"

namespace heddle::host {

// Issues the steps of a plan (host/plan/plan.h) to the streams of one run. operator() has an
// overload for each kind of step. Each run needs its own Issuer.
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
  // Returns the index of the instruction that run() has begun to issue last. Error messages name
  // this instruction. Returns -1 before the first step, and during a step that belongs to no
  // instruction.
  InstructionIndex instruction() const { return issue_.instruction; }
  // Frees all memory that the run holds, as stream-ordered frees: buffers on stream 0 of the
  // program, which first waits for all issued work, and the workspace of each stream on this
  // stream. Call this if run() has thrown an exception.
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
  void operator()(const InspectStep& step);

 private:
  Stream stream(StreamId id) const { return state_.streams[id]; }
  std::byte* at(const Address& address) const {
    if (!address.pointer.valid()) return nullptr;
    std::byte* base = state_.pointers[address.pointer];
    return base == nullptr ? nullptr : base + address.offset;  // nullptr: a buffer of 0 bytes
  }
  Scalar& scalar(RegisterId id) const { return state_.registers[id]; }
  // Returns the register with the number `first` + `i`.
  Scalar& scalar(RegisterId first, int32_t i) const {
    return scalar(RegisterId(first.number() + i));
  }
  void bindCounts(const CollectiveStep& step, comm::Operation& operation);
  // Issues a step inside a range that profilers show. Records the step if the run has a profile.
  // Injects the fault if the run has one and the step belongs to the instruction of the fault. If
  // the step belongs to no instruction, only issues it.
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

// Checks that `fault` (host/job/inject_fault.h) can have an effect in a run of the plan. Does not
// know which branches the run takes. Throws UserError in any of these cases:
// - The instruction of the fault does not exist.
// - This rank does not issue the instruction.
// - The kind is Corrupt, and the instruction writes no memory on this rank.
void checkFault(const InjectedFault& fault, const Plan& plan, const RunResources& resources);

}  // namespace heddle::host
