#pragma once

#include <boost/container/small_vector.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "codegen/kernel.h"
#include "codegen/kernel_choice.h"
#include "host/device/attention.h"
#include "host/plan/kernel_store.h"
#include "host/plan/plan.h"
#include "host/plan/stored_segment.h"
#include "host/program/program.h"
#include "host/unroll/unroll.h"

namespace heddle::host {

// Translates an unrolled program (host/unroll/unroll.h) to a plan (host/plan/plan.h). makePlan()
// and compileKernels() create one PlanBuilder per call. Below, a segment is the part of a fusion
// from which a kernel is generated.
class PlanBuilder {
 public:
  // `sizes` are the sizes of `request` without the late inputs (host/unroll/late_scalars.h).
  PlanBuilder(const Program& program, const Unrolled& unrolled, const UnrollRequest& request,
              const SizeBindings& sizes, const GivenTensors& given, const PlanTarget& target);
  // Call one of these functions, and only once. compileKernels() only compiles the kernels.
  std::shared_ptr<const Plan> build();
  void compileKernels();

 private:
  void draft();
  // The uses of one token or event of the program. A token represents posted operations, for which
  // a stream can wait (host/program/instructions.h). A token or event that orders two streams needs
  // an event of the device.
  struct EventUse {
    StreamId stream;       // the stream of the first use
    bool crosses = false;  // true: several streams use the token or event
    DeviceEventId event;   // the event in the plan; invalid: not assigned yet
  };
  using EventKey = std::variant<EventId, TokenId>;
  // An operand of a kernel. The descriptor must exist as long as the PlanBuilder. ownDesc() stores
  // descriptors that the unrolled program does not contain.
  struct LaunchOperand {
    Address address;
    const TensorDesc* desc;
    RegisterId scalar = {};  // see Plan::Operand::scalar
  };
  using LaunchOperands = boost::container::small_vector<LaunchOperand, 4>;
  struct Launch {
    const Fusion* segment;
    LaunchOperands inputs;
    LaunchOperands outputs;
    StreamId stream;
    std::shared_ptr<StoredSegment> stored = {};  // nullptr: not looked up in the KernelStore yet
    const UnrolledStep* step = nullptr;          // nullptr: the plan itself adds the launch
    const Kernel* kernel = nullptr;              // nullptr: the program does not contain the kernel
    const std::string& candidate() const;        // Kernel::candidate, or ""
  };
  // The kernel of a segment for operands with these descriptors and alignments
  // (codegen::planKernel()). Launches of the segment with equal operands share the stages and
  // argument blocks of this kernel.
  struct PlannedKernel {
    std::shared_ptr<StoredSegment> stored;
    codegen::DescList::Pointers inputs = {};
    codegen::DescList::Pointers outputs = {};
    std::vector<int32_t> alignments = {};  // alignments of the inputs, then of the outputs
    codegen::RunSizes run = {};            // argument of codegen::planKernel()
    std::string candidate = {};            // Kernel::candidate
    std::optional<codegen::KernelChoice> choice = {};  // the chosen candidate
    // If the kernel is new: what the arguments of each stage contain. Otherwise empty.
    std::vector<codegen::StageLayout> layouts = {};
    codegen::KernelPlan plan = {};  // if the kernel is not new, addStages() moves the launches out
    KernelStore::Loaded loaded = {};  // one per stage; empty: the kernel is new or has no stages
    StageId first_stage = {};         // the stages of the kernel are consecutive
    size_t stage_count = 0;
    codegen::SegmentPlanner::Operands operands() const {
      return {inputs, outputs, alignments, run, choice ? &*choice : nullptr};
    }
    bool isNew() const { return loaded.empty() && stage_count > 0; }
    IdRange<StageId> stages() const {
      return {first_stage, StageId(first_stage.index() + stage_count)};
    }
  };
  // A matrix product. Instructions with equal specs share it.
  struct PlannedMatmul {
    MatmulSpec spec;
    const UnrolledStep* first;  // the first step with this spec; error messages name it
    std::shared_ptr<const PreparedMatmul> prepared;
  };
  // A call of attention. The spec describes the memory that cuDNN accesses.
  struct PlannedAttention {
    AttentionCallSpec spec;
    const UnrolledStep* step;  // error messages name it
    AttentionId id;
    StreamId stream;
  };
  // A 0-d input in host memory.
  struct HostValue {
    RegisterId scalar;  // register that holds the element
    DType dtype;
    bool in_memory;  // true: some reader needs the element in device memory
  };
  // The sends and receives between the instructions GroupBegin and GroupEnd. They are posted
  // together.
  struct Group {
    bool open = false;                           // true: between GroupBegin and GroupEnd
    comm::Communicator* communicator = nullptr;  // nullptr: no operation so far
    StreamId stream = kCallerStream;
    int32_t first = 0;                 // index of the first operation in Plan::operations
    Plan::Inspection inspection = {};  // the tensors of the operations, if the plan checks numerics
  };

  // plan_builder.cpp: the order of the work; streams, buffers and addresses. Exceptions in
  // plan_outputs.cpp: checkPreallocated(), bindOutputs(), landsInPlace() and finishOutputs().
  void findEventUses();
  void useEvent(const EventKey& key, StreamId stream);
  void bindBuffers();
  IdVector<BufferId, bool> writtenInputs() const;
  void checkWrittenInput(const Buffer& buffer) const;
  void checkPreallocated(size_t i, const TensorDesc& given) const;
  void bindOutputs();
  bool landsInPlace(const Plan::Output& output, const TensorDesc& given) const;
  void finishOutputs();
  void emitFork();
  void emitJoin();
  void emitAll();
  void emitOne(const UnrolledStep& step);
  void beginNote(const UnrolledStep& step);
  void finishJumps();
  void findRemaining();
  Step& emit(Step step);
  DeviceEventId newEvent() { return DeviceEventId(plan_->events++); }
  const Slot& slot(SlotId id) const { return program_.slots.at(id); }
  Address addressOf(const View& view);
  PointerIndex latePointer(const View& view);
  size_t firstLatePointer() const;
  void setAlignment(PointerIndex pointer, const std::vector<int32_t>& alignments, size_t i);
  int32_t alignmentAt(const Address& address) const;
  Plan::Operand operandOf(const UnrolledStep& step, size_t input);

  // plan_steps.cpp: the instructions that the other files do not handle. Exception: emit() of a
  // LaunchKernel, which is declared here, is in plan_launch.cpp.
  void emit(const Allocate& op, const UnrolledStep& step);
  void emit(const Free& op, const UnrolledStep& step);
  void emit(const Evaluate& op, const UnrolledStep& step);
  void emit(const LaunchKernel& op, const UnrolledStep& step);
  void emit(const Copy& op, const UnrolledStep& step);
  void emit(const ReadBack& op, const UnrolledStep& step);
  void emit(const If& op, const UnrolledStep& step);
  void emit(const Check& op, const UnrolledStep& step);
  void emit(const Print& op, const UnrolledStep& step);
  void emitApply(const Evaluate& op, const Evaluate::Apply& apply, const UnrolledStep& step);
  void emitCopy(const Plan::Operand& out, const Plan::Operand& in, StreamId stream);
  NamedOperandId namedOperand(SlotId slot, const UnrolledStep& step);
  // If the plan checks numerics: adds InspectSteps around the steps from `first` on, which belong
  // to the instruction of `step`.
  void inspect(const UnrolledStep& step, size_t first);
  void addInspected(const UnrolledStep& step, Plan::Inspection& inspection);
  void insertStep(size_t at, InspectStep step);

  // plan_library.cpp and plan_attention.cpp: library calls.
  void emit(const CallLibrary& op, const UnrolledStep& step);
  size_t plannedMatmul(MatmulSpec spec, const UnrolledStep& step);
  void emitLines(const CallLibrary& call, const UnrolledStep& step);
  void emitAttention(const CallLibrary& call, const UnrolledStep& step);
  std::set<std::string> questionsOf(const AttentionCallSpec& spec) const;
  std::string chooseAlgorithm(const std::string& question) const;
  std::string chooseAttention(const std::string& question, const std::string& given) const;
  void prepareLibraryCalls();
  void prepareMatmuls(const AlgorithmChoices& choices);
  void prepareAttentions(const AlgorithmChoices& choices);
  // Calls `work`. If it throws UserError, adds the instruction of the step to the message.
  void namingInstruction(const UnrolledStep& step, const std::function<void()>& work) const;

  // plan_communicate.cpp: collectives, sends, receives, tokens and events.
  void emit(const Communicate& op, const UnrolledStep& step);
  void emitOneWay(const Communicate& op, const UnrolledStep& step,
                  comm::Communicator* communicator);
  void emitCounts(const UnrolledStep& step);
  void emit(const Send& op, const UnrolledStep& step);
  void emit(const Recv& op, const UnrolledStep& step);
  void emitPeer(const Team& team, comm::Operation operation, Address address, const View& view,
                StreamId stream, const std::optional<TokenId>& token, const UnrolledStep& step);
  void emit(const GroupBegin& op, const UnrolledStep& step);
  void emit(const GroupEnd& op, const UnrolledStep& step);
  void emit(const Wait& op, const UnrolledStep& step);
  void emit(const RecordEvent& op, const UnrolledStep& step);
  void emit(const WaitEvent& op, const UnrolledStep& step);
  void emitRecord(const EventKey& key, StreamId stream);
  void emitWait(const EventKey& key, StreamId stream);
  void emitCollective(comm::Communicator* communicator, int32_t first, StreamId stream);
  void orderAfterOtherTeams(comm::Communicator* communicator, StreamId stream);
  comm::Communicator* communicatorOf(const Team& team, const comm::Carrier& carrier);
  TeamId teamOf(comm::Communicator* communicator);
  bool isBarrier(comm::Communicator* communicator, int32_t first) const;

  // plan_values.cpp: 0-d inputs in host memory.
  bool isByValue(int32_t input) const {
    const auto i = static_cast<size_t>(input);
    return i < given_.by_value.size() && given_.by_value[i];
  }
  void bindValues();
  HostValue* valueOf(const View& view);
  void findValueUses(const UnrolledStep& step);
  void storeValues();
  void passValues(Launch& launch);

  // plan_launch.cpp: generated kernels.
  void emitLaunch(Launch launch);
  void emitReference(const Launch& launch);
  void emitStage(StageId id, const Launch& launch);
  LaunchOperand launchOperand(const UnrolledStep& step, size_t input);
  const TensorDesc* ownDesc(TensorDesc desc) { return &own_descs_.emplace_back(std::move(desc)); }
  bool isPlannedFor(const PlannedKernel& kernel, const Launch& launch) const;
  PlannedKernel& planned(Launch& launch);
  static KernelStore::Key keyOf(const PlannedKernel& kernel);
  SizeBindings sizesInside(const Launch& launch) const;
  void findKernel(PlannedKernel& kernel, const Launch& launch);
  void choose(PlannedKernel& kernel, const Launch& launch) const;
  void planNew(PlannedKernel& kernel) const;
  void addStages(PlannedKernel& kernel);
  std::vector<const codegen::KernelPlan*> newKernels() const;
  void loadKernels();
  void store(PlannedKernel& kernel);

  const Program& program_;
  const Unrolled& unrolled_;
  const SizeBindings& sizes_;
  const GivenTensors& given_;
  PlanTarget target_;
  std::shared_ptr<Plan> plan_;
  InstructionIndex current_ = -1;     // the instruction whose steps are emitted; -1: none
  Plan::StepNote note_;               // note for the steps of the current instruction
  std::vector<int32_t> occurrences_;  // number of earlier executions of each instruction

  std::map<EventKey, EventUse> uses_;
  IdVector<StreamId, bool> streams_used_;
  // Alignments of pointers to the caller's tensors, in bytes.
  std::map<PointerIndex, int32_t> alignments_;
  IdVector<BufferId, bool> substituted_;  // true: a tensor of the caller replaces the buffer
  // Per step of the unrolled program: index of its first step in the plan.
  std::vector<int32_t> step_of_unrolled_;
  std::vector<PlannedKernel> kernels_;
  // The segment of each element of kernels_. planned() searches this list, because it is compact.
  std::vector<const StoredSegment*> kernel_segments_;
  std::deque<Fusion> own_segments_;   // segments that the program does not contain
  std::deque<TensorDesc> own_descs_;  // descriptors that the unrolled program does not contain
  std::map<BufferId, HostValue> values_;
  // Results of withValues() (host/plan/by_value_inputs.h), by its arguments.
  std::map<std::pair<const Fusion*, std::vector<bool>>, const Fusion*> by_value_segments_;
  std::vector<PlannedMatmul> planned_matmuls_;
  std::unordered_multimap<size_t, size_t> planned_by_hash_;  // indices in planned_matmuls_
  // Per element of Plan::matmuls: its index in planned_matmuls_, and its stream.
  IdVector<MatmulId, std::pair<size_t, StreamId>> matmul_uses_;
  std::vector<PlannedAttention> planned_attentions_;
  // Per communicator used so far: the World ranks of its team, and its carrier.
  std::map<comm::Communicator*, std::pair<std::vector<int>, comm::Carrier>> members_;
  Group group_;
  DeviceEventId read_back_event_;  // event that all ReadBackSteps share; invalid: none yet
  // The communicators and streams on which operations have been posted, in order of their latest
  // post. orderAfterOtherTeams() uses this list for transports whose operations occupy the GPU
  // while they wait for other ranks.
  struct Posted {
    comm::Communicator* communicator;
    StreamId stream;
    bool operator==(const Posted&) const = default;
  };
  std::vector<Posted> posted_;
  bool branches_ = false;  // true: an earlier step is a branch; a run may skip posts
};

}  // namespace heddle::host
