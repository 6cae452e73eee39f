#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "host/unroll/scope.h"
#include "host/unroll/unroll.h"

namespace heddle::host {

// Unrolls a host program that contains no Call instruction (host/unroll/unroll.h). unroll() creates
// one object per call.
class Unroller {
 public:
  Unroller(const Program& program, const UnrollRequest& request);
  Unrolled run();

 private:
  // A list of instructions that the Unroller is processing. `frames_` is the stack of these lists.
  struct Frame {
    enum class Kind : uint8_t { Body, Loop, Then, Else };
    Kind kind = Kind::Body;
    const std::vector<Instruction>* list = nullptr;
    size_t next = 0;             // index into the list
    InstructionIndex first = 0;  // number of the first instruction of the list
    InstructionIndex index = 0;  // number of the next instruction
    // Only for a Loop:
    const std::string* loop_index = nullptr;
    int64_t at = 0;    // current value of the loop index
    int64_t stop = 0;  // the loop ends when `at` reaches this value
    // Only for Then and Else, the bodies of an If that the run decides:
    const If* branch = nullptr;
    size_t jump_step = 0;  // the step whose jump is set at the end of this list
    // The slots that a body defines, each with its view before the branch.
    std::map<SlotId, SharedView> before{};
    std::set<SlotId> new_scalars{};   // scalars that this body defines and that had no value before
    std::set<SlotId> then_scalars{};  // Else: new_scalars of the then_body
  };

  // The values in a buffer. View::value numbers them.
  struct BufferValues {
    int32_t latest = 0;               // the value of the last Allocate that took the memory
    int32_t written = 0;              // the latest value that an instruction has written
    std::optional<size_t> free = {};  // the step of the Free; nullopt: not freed
  };

  const Slot& slot(SlotId id) const { return program_.slots.at(id); }
  // Returns the view of a slot. If the slot is undefined, the view has no buffer.
  const View& viewOf(SlotId id) const { return views_.at(id) ? *views_[id] : kUndefined; }

  // unroller.cpp: inputs, outputs and registers.
  RegisterId registerOf(SlotId id);  // for a list: the register of its first element
  void inputs();
  void outputs();
  void checkReuse(size_t position, SlotId input) const;
  std::string undefinedReason(SlotId id) const;

  // unroll_control_flow.cpp: loops, branches, ranks.
  void advance();
  void checkSteps();
  void instruction(const Instruction& x, InstructionIndex index);
  void openLoop(const For& loop, InstructionIndex index);
  void openBranch(const Instruction& x, const If& branch, InstructionIndex index);
  void close();
  void nextTrip(Frame& loop);
  void closeThen();
  void closeElse();
  // Sets the target of the branch's jump. Undefines the tensor slots that either body has defined,
  // because only the run knows which body it executes.
  void leaveBranch(const Frame& frame);
  // Removes the value of a scalar at the end of a branch.
  void forgetScalar(SlotId id);
  Frame* innermostBranch();  // nullptr: not in a branch that the run decides
  // Returns the number of instructions of a body, with those of its inner bodies.
  int32_t lengthOf(const std::vector<Instruction>& body);
  std::string positionOf(const Instruction& x, InstructionIndex index) const;

  // unroll_reuse.cpp: values that share memory (Allocate::reuse).
  void findPreallocated();
  void donate();
  BufferValues& valuesIn(BufferId buffer);
  bool isAvailable(const View& view, SlotId taker);
  bool takeMemory(const Allocate& x);
  bool isTaken(const Free& x);
  void checkValue(const Access& access, const View& view);
  void checkDonatedOutputs() const;
  void dropTakenFrees();

  // unroll_instruction.cpp: what an instruction reads, writes and defines.
  void define(SlotId id, SharedView view);
  void define(SlotId id, View view) { define(id, std::make_shared<const View>(std::move(view))); }
  const SharedView& tensor(SlotId id);
  void readScalar(UnrolledStep& step, SlotId id);
  void read(UnrolledStep& step, SlotId id);
  void write(UnrolledStep& step, SlotId id) { step.outputs.push_back(tensor(id)); }
  void operands(UnrolledStep& step, const std::vector<SlotId>& inputs,
                const std::vector<SlotId>& outputs);
  void writeScalar(UnrolledStep& step, SlotId id);
  void fill(UnrolledStep& step, const Op& op);
  // Checks the guards of a kernel, and the sizes of the values that it computes and does not store.
  // Does nothing if the kernel has no guards and all of these sizes are sizes of operands. Also
  // does nothing if the last launch of the kernel had operands of the same sizes.
  void checkSizesInside(KernelId kernel, const UnrolledStep& step);
  void allocate(UnrolledStep& step, const Allocate& x);
  void alias(UnrolledStep& step, const Alias& x);
  void evaluate(UnrolledStep& step, const Evaluate& x);
  void peer(UnrolledStep& step, const Size& peer, const Team& team);
  void checkPosted(const UnrolledStep& step) const;
  void communicate(UnrolledStep& step, const Communicate& x);
  std::optional<int64_t> allocatedByType(SlotId id) const;
  bool rootIsApart(const Communicate& x, const std::vector<int64_t>& team) const;
  void readCounts(UnrolledStep& step, const Communicate& x, int64_t team_size);
  int64_t rankInTeam(const Size& value, std::string_view what, int64_t team_size) const;

  const Program& program_;
  const UnrollRequest& request_;
  Scope scope_;
  Unrolled unrolled_;
  std::vector<Frame> frames_;
  static inline const View kUndefined;
  IdVector<SlotId, SharedView> views_;  // nullptr: the slot is undefined
  IdVector<SlotId, RegisterId> registers_;
  std::map<SlotId, int64_t> list_lengths_;
  std::map<SlotId, View> reused_;            // for inputs that outputs reuse: the original view
  IdVector<BufferId, BufferValues> values_;  // may have fewer elements than there are buffers
  // The preallocated outputs. In place of an output that is a view: the slot of which it is a view.
  std::set<SlotId> preallocated_;
  std::vector<size_t> taken_frees_;  // Free steps of buffers that were reused later
  std::set<SlotId> scalars_;         // the scalars that are defined
  std::set<SlotId> branched_;        // slots that became undefined at the end of a branch
  // For each input whose allocated sizes or strides differ from those that its type states: the
  // descriptor that the type states.
  std::map<BufferId, TensorDesc> elsewhere_;
  std::unordered_map<const std::vector<Instruction>*, int32_t> lengths_;  // results of lengthOf()
  // For each kernel: whether checkSizesInside() must check sizes or guards; nullopt: not known yet.
  IdVector<KernelId, std::optional<bool>> needs_values_;
  // For each kernel: the sizes of all operands at its last launch, which checkSizesInside()
  // checked.
  std::map<KernelId, std::vector<int64_t>> checked_sizes_;
};

}  // namespace heddle::host
