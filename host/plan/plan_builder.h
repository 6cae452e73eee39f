#pragma once

#include <deque>
#include <map>
#include <unordered_map>
#include <utility>

#include "host/plan/plan.h"
#include "host/program/program.h"

namespace heddle::host {

// Translates an unrolled program to the steps of a plan. makePlan() creates one for each plan.
class PlanBuilder {
 public:
  PlanBuilder(const Program& program, const Unrolled& unrolled, const SizeBindings& sizes,
              const std::vector<std::optional<TensorDesc>>& preallocated,
              const std::vector<bool>& by_value, const PlanTarget& target);
  std::shared_ptr<const Plan> build();

 private:
  // The uses of one token or event. It needs an event of the device only if it orders two streams.
  struct EventUse {
    StreamId stream = -1;  // of its first use
    bool crosses = false;  // another stream uses it too
    int32_t event = -1;    // index of the event; assigned when a step first needs it
  };
  using EventKey = std::pair<bool, int32_t>;  // whether it is a token, and its id
  // Launches of one segment with equal descriptors share stages and argument blocks.
  struct PlannedKernel {
    const Fusion* segment;
    std::vector<TensorDesc> inputs;
    std::vector<TensorDesc> outputs;
    codegen::KernelPlan kernel;
    int32_t first_stage = 0;
  };
  struct Launch {
    const Fusion* segment;
    std::vector<Plan::Operand> inputs;
    std::vector<Plan::Operand> outputs;
    StreamId stream;
  };
  // Matrix products with equal specs share the object that the library prepares.
  struct PlannedMatmul {
    MatmulSpec spec;
    const UnrolledStep* first;  // for messages
    std::shared_ptr<const PreparedMatmul> prepared;
  };
  // A 0-d input in host memory.
  struct HostValue {
    int32_t scalar;  // register
    DType dtype;
    bool in_memory;  // a reader needs it in device memory; kernels take it as an argument
  };
  // The operations between GroupBegin and GroupEnd.
  struct Group {
    bool open = false;
    comm::Communicator* communicator = nullptr;
    StreamId stream = 0;
    int32_t first = 0;
  };

  // plan_builder.cpp: the order of all parts; streams, buffers, outputs.
  void findEventUses();
  void useEvent(const EventKey& key, StreamId stream);
  void bindBuffers();
  void bindOutputs();
  bool landsInPlace(const Plan::Output& output, const TensorDesc& given) const;
  void finishOutputs();
  void emitFork();
  void emitJoin();
  void emitAll();
  void emitOne(const UnrolledStep& step);
  void beginNote(const UnrolledStep& step);
  void finishJumps();
  Step& emit(Step step);
  int32_t newEvent() { return plan_->events++; }
  const Slot& slot(SlotId id) const { return program_.slots.at(static_cast<size_t>(id)); }
  Place placeOf(const View& view) const;
  Plan::Operand operandOf(const UnrolledStep& step, size_t input) const;

  // plan_steps.cpp: one member per instruction.
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
  int32_t watch(SlotId slot, const UnrolledStep& step);

  // plan_library.cpp
  void emit(const CallLibrary& op, const UnrolledStep& step);
  size_t plannedMatmul(MatmulSpec spec, const UnrolledStep& step);
  void emitLines(const CallLibrary& call, const UnrolledStep& step);
  void emitAttention(const CallLibrary& call, const UnrolledStep& step);
  void prepareMatmuls();

  // plan_communicate.cpp
  void emit(const Communicate& op, const UnrolledStep& step);
  void emitOneWay(const Communicate& op, const UnrolledStep& step,
                  comm::Communicator* communicator);
  void emitCounts(const UnrolledStep& step);
  void emit(const Send& op, const UnrolledStep& step);
  void emit(const Recv& op, const UnrolledStep& step);
  void emitPeer(const Team& team, comm::Operation operation, Place place, const View& view,
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
  int32_t teamOf(comm::Communicator* communicator);
  bool isBarrier(comm::Communicator* communicator, int32_t first) const;

  // plan_values.cpp
  bool isByValue(int32_t input) const {
    return static_cast<size_t>(input) < by_value_.size() && by_value_[static_cast<size_t>(input)];
  }
  void bindValues();
  HostValue* valueOf(const View& view);
  void findValueUses(const UnrolledStep& step);
  void storeValues();
  void passValues(Launch& launch);

  // plan_launch.cpp
  void emitLaunch(Launch launch);
  void emitReference(const Launch& launch);
  void emitStage(size_t stage, const Launch& launch);
  PlannedKernel& planned(const Launch& launch);
  void addStages(PlannedKernel& planned);
  void loadKernels();

  const Program& program_;
  const Unrolled& unrolled_;
  const SizeBindings& sizes_;
  const std::vector<std::optional<TensorDesc>>& preallocated_;
  const std::vector<bool>& by_value_;
  PlanTarget target_;
  std::shared_ptr<Plan> plan_;
  InstructionIndex current_ = -1;
  Plan::StepNote note_;  // of the current instruction
  std::map<InstructionIndex, int32_t> occurrences_;

  std::map<EventKey, EventUse> uses_;
  std::vector<bool> streams_used_;
  std::vector<bool> substituted_;  // per buffer: a preallocated tensor of the caller replaces it
  std::vector<int32_t> step_of_unrolled_;  // first plan step of each step of the unrolled program
  std::deque<PlannedKernel> kernels_;
  std::deque<Fusion> own_segments_;  // segments that are not in the program
  std::map<BufferId, HostValue> values_;
  std::map<std::pair<const Fusion*, std::vector<bool>>, const Fusion*> value_segments_;
  std::vector<PlannedMatmul> planned_matmuls_;
  std::unordered_multimap<size_t, size_t> planned_by_hash_;  // indices in planned_matmuls_
  // Per entry of Plan::matmuls: index in planned_matmuls_, and stream.
  std::vector<std::pair<size_t, StreamId>> matmul_uses_;
  // World ranks and carrier of each communicator used so far.
  std::map<comm::Communicator*, std::pair<std::vector<int>, comm::Carrier>> members_;
  Group group_;
  int32_t read_back_event_ = -1;
  // The communicators and streams on which collectives were posted, the latest last. Some
  // transports need this list, because on them the collectives of different teams must run in one
  // order.
  struct Posted {
    comm::Communicator* communicator;
    StreamId stream;
    bool operator==(const Posted&) const = default;
  };
  std::vector<Posted> posted_;
  bool branches_ = false;  // a run may skip some of the posts so far, because of an `if`
};

}  // namespace heddle::host
