#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "host/device/device.h"
#include "host/job/agree_on_algorithms.h"
#include "host/job/communicators.h"
#include "host/plan/kernel_store.h"
#include "host/plan/steps.h"
#include "host/plan/stored_segment.h"
#include "host/unroll/unroll.h"

namespace heddle::host {

class PreparedAttention;  // host/device/attention.h
struct KernelChoices;     // host/device/kernel_choices.h

// An unrolled program (host/unroll/unroll.h) is a host program written out for one rank and one set
// of sizes. A plan is an unrolled program that is bound to a device: a flat list of steps. The plan
// fixes every size, kernel and communicator, and every offset that does not depend on late inputs
// (LatePointer). Only pointers and scalar values are missing.
// An argument block contains the arguments of one stage (Stage). Before a run launches a stage, it
// writes pointers and scalars to known offsets in its copy of the argument block. All runs with the
// same shapes share the plan. A plan is immutable, except its member `agreed`.
//
// In this file, a register is an element of RunState::registers (host/run/run_state.h). It holds a
// scalar value of the run.

struct Plan {
  // One of the launches that compute a kernel. Several LaunchSteps may use the same stage.
  struct Stage {
    codegen::LaunchStage launch;
    KernelHandle kernel = nullptr;  // stays loaded because Plan::kernels owns it
    int32_t args = 0;               // offset of the stage's argument block in Plan::args
  };
  // A pointer that a run writes to an argument block.
  struct PointerPatch {
    int32_t at;  // offset in Plan::args
    Address address;
  };
  // A scalar that a run writes to an argument block.
  struct ScalarPatch {
    int32_t at;  // offset in Plan::args
    RegisterId scalar;
    DType dtype;  // the type that the kernel expects
  };
  // The memory of one operation (Plan::operations) of a CollectiveStep. `send` is read, `recv` is
  // written.
  struct OperationAddresses {
    Address send;
    Address recv;
  };
  // The counts of an AllToAllV: how many elements a rank sends to each rank of the team, and how
  // many it receives from each rank.
  struct Counts {
    int32_t ranks;          // number of ranks of the team
    RegisterId send;        // first of `ranks` registers with the numbers to send
    RegisterId recv;        // first of `ranks` registers with the numbers to receive
    int32_t at;             // index of the send list in RunState::counts; the receive list follows
    int64_t send_elements;  // size of the send buffer, in elements
    int64_t recv_elements;  // size of the receive buffer, in elements
  };
  struct Matmul {
    Address a;
    Address b;
    Address bias;  // invalid pointer: no bias
    Address c;
    std::shared_ptr<const PreparedMatmul> prepared;  // products with equal MatmulSpec share it
    MatmulWork work = {};                            // work of one call
  };
  struct Library {
    LibraryCall call;  // without pointers; a run copies the call and adds the pointers
    std::vector<Address> inputs;
    Address output;
    std::vector<TensorDesc> descs;  // descriptors of all inputs, then that of the output
  };
  struct Attention {
    static constexpr size_t kMostOperands = 9;
    std::array<Address, kMostOperands> operands;  // the tensors read, followed by those written
    // Offset of PreparedAttention::Memory::workspace in the workspace of the stream, in bytes.
    int64_t workspace = 0;
    std::shared_ptr<const PreparedAttention> prepared;
  };
  // A tensor or a scalar.
  struct Operand {
    Address address;
    TensorDesc desc;
    RegisterId scalar = {};  // register of a scalar; invalid: the operand is a tensor
  };
  // A kernel that the reference evaluator computes. `segment` is the result of localSegment()
  // (host/plan/local_segment.h) for the segment of the kernel.
  struct Reference {
    Fusion segment;
    std::vector<Operand> inputs;
    std::vector<Operand> outputs;
  };
  // A tensor or scalar that a CheckStep checks, a PrintStep prints or an InspectStep inspects.
  struct NamedOperand {
    std::string name;
    Operand operand;
  };
  // The tensors and scalars of an instruction that its two InspectSteps inspect. The sends and
  // receives of a group have one Inspection, which belongs to the GroupEnd.
  struct Inspection {
    InstructionIndex instruction = -1;
    int32_t occurrence = 0;  // see StepNote::occurrence
    // true: the instruction posts operations, so written values may come from other ranks.
    bool communicates = false;
    CountsId counts = {};  // valid: an all-to-all-v; its counts say which elements are inspected
    std::vector<NamedOperand> read;
    std::vector<NamedOperand> written;
    // Per element of `written`: the op or library function that computes it; "": none.
    std::vector<std::string> ops;
  };
  struct BufferInput {  // a tensor in device memory
    PointerIndex pointer;
    int32_t input;         // position of the argument
    bool written = false;  // true: a step writes the tensor
    bool donated = false;  // true: the caller gives up its value
  };
  // An address that depends on late inputs. A late input is a scalar that decides only where slices
  // begin (host/unroll/late_scalars.h). A run computes the address when it binds the inputs. If the
  // run allocates the buffer, it computes the address again after the allocation.
  struct LatePointer {
    PointerIndex base;  // the pointer of a buffer
    std::vector<View::LateTerm> terms;
  };
  struct ScalarInput {
    RegisterId out;  // register that receives the value
    int32_t input;
    DType dtype;
    Scalar default_value;  // used if the caller passes no value
    std::string name;      // name of the input, without '%'
  };
  struct ValueInput {  // a 0-d tensor in host memory
    RegisterId out;    // register that receives its element
    int32_t input;
    DType dtype;
  };
  struct Preallocated {     // a caller's tensor that receives an output
    PointerIndex pointer;   // of the buffer that the tensor replaces, or preallocatedPointer()
    int32_t output;         // position of the output
    std::string name;       // name of the output, without '%'
    int64_t bytes;          // size of the caller's tensor, with padding
    TensorDesc allocation;  // all elements of the caller's tensor, with padding
  };
  // Facts about a step for timelines and injected faults.
  struct StepNote {
    StreamId stream;           // invalid: the step runs on the host only
    int32_t occurrence = 0;    // number of earlier executions; above 0 only in loops
    int64_t bytes = 0;         // bytes that the instruction reads and writes
    Address output;            // the first memory that the instruction writes
    int64_t output_bytes = 0;  // bytes at `output`; 0: the instruction writes nothing
    // If the step is a collective that no rank completes before all ranks of its team have begun
    // it: the team. Otherwise invalid.
    TeamId team;
  };
  struct Output {
    RegisterId scalar;  // register of a scalar; invalid: the output is a tensor
    Address address;
    BufferId buffer;  // the buffer of `address`; invalid: a scalar, or this rank holds no part
    TensorDesc desc;
    int32_t input = -1;         // position of the input whose memory the output shares; -1: none
    bool preallocated = false;  // true: the output is in the caller's tensor
  };

  std::vector<Step> steps;
  std::vector<InstructionIndex> instruction_of;  // per step: its instruction; -1: none
  std::vector<StepNote> notes;                   // per step
  IdVector<TeamId, std::vector<int>> teams;      // teams of collectives, as ranks of the World
  uint64_t sizes_hash = 0;                       // hash of the sizes on which the plan depends
  UnrollRequest request;                         // the request for which the program was unrolled
  // The ranks compare the operations that they post, in numbered rounds
  // (host/run/match_collectives_across_ranks.h). `agreed` is the number of the latest round in
  // which the operations of this plan matched on all ranks; 0: there was no such round yet.
  // RunOrder::running guards this member.
  mutable uint64_t agreed = 0;
  IdVector<StageId, Stage> stages;
  std::vector<LoadedKernel> kernels;  // kernels of the stages
  int64_t kernel_bytes = 0;           // size of the kernels that were loaded for this plan
  std::vector<std::byte> args;        // the argument blocks of all stages
  std::vector<PointerPatch> pointer_patches;
  std::vector<ScalarPatch> scalar_patches;
  std::vector<comm::Operation> operations;
  std::vector<OperationAddresses> operation_addresses;  // memory of each element of `operations`
  IdVector<CountsId, Counts> counts;
  int32_t counts_size = 0;     // required length of RunState::counts
  int64_t staging_bytes = 16;  // required length of RunState::staging
  IdVector<MatmulId, Matmul> matmuls;
  IdVector<LibraryId, Library> libraries;
  IdVector<AttentionId, Attention> attentions;
  IdVector<ReferenceId, Reference> references;
  IdVector<NamedOperandId, NamedOperand> named_operands;
  IdVector<InspectionId, Inspection> inspections;
  IdVector<BufferId, Buffer> buffers;
  IdVector<StreamId, int64_t> workspace_bytes;  // the steps of a stream share its workspace
  // Per stream: whether its launches use counters (codegen::LaunchStage::kCounters).
  IdVector<StreamId, bool> counts_blocks;
  std::vector<BufferInput> buffer_inputs;
  // true: a step writes an input, or an input is donated.
  bool has_exclusive_input = false;
  // Per input: the descriptor of its allocation, that is, of its elements and its padding. A run
  // may write the padding too. Empty unless has_exclusive_input is true or an output is
  // preallocated.
  std::vector<TensorDesc> input_allocations;
  std::vector<ScalarInput> scalar_inputs;
  std::vector<ValueInput> value_inputs;
  std::vector<Preallocated> preallocated;
  std::vector<LatePointer> late_pointers;
  std::map<int32_t, LateRange> late;  // Unrolled::late
  std::vector<Output> outputs;
  // The buffers that a run may still hold after its last step. They become outputs or are freed.
  std::vector<BufferId> remaining;
  size_t registers = 0;                            // number of registers
  size_t events = 0;                               // number of device events
  size_t streams = 1;                              // number of streams
  IdVector<StreamId, bool> communication_streams;  // Program::communicationStreams()
  bool communicates = false;                       // true: the plan posts operations on this rank
  // The communicators of the plan whose operations wait on the device
  // (comm::Communicator::isStreamOrdered()).
  std::vector<comm::Communicator*> stream_ordered;

  PointerIndex workspace(StreamId stream) const {
    return PointerIndex(buffers.size() + stream.index());
  }
  PointerIndex counters(StreamId stream) const {
    return PointerIndex(buffers.size() + streams + stream.index());
  }
  // Returns the index in RunState::pointers of the caller's tensor that receives a copy of output
  // `output`.
  PointerIndex preallocatedPointer(size_t output) const {
    return PointerIndex(buffers.size() + 2 * streams + output);
  }
  // Returns the length of RunState::pointers.
  size_t pointers() const { return latePointer(late_pointers.size()).index(); }
  // Returns the index in RunState::pointers of element `i` of late_pointers.
  PointerIndex latePointer(size_t i) const {
    return PointerIndex(buffers.size() + 2 * streams + outputs.size() + i);
  }
};

// The resources to which makePlan() binds an unrolled program. The device and the communicators
// must outlive the plan.
struct PlanTarget {
  Device& device;
  const Communicators& communicators;
  KernelStore& kernels;
  AlgorithmAgreement& algorithms;
  int64_t ranks = 1;
  Stream stream = nullptr;  // the stream of the run; library algorithms are measured on it
  // Per kernel of the program: the result of KernelStore::segmentOf(). Empty: the plan asks the
  // store for the segments that it needs.
  const IdVector<KernelId, std::shared_ptr<StoredSegment>>& segments;
  size_t streams;                                         // Program::streams()
  const IdVector<StreamId, bool>& communication_streams;  // Program::communicationStreams()
  bool check_numerics = false;                            // ExecutableOptions::check_numerics
  // The candidates to use for kernels for which the program names none. A candidate is one of
  // several ways to compute a kernel. nullptr: the rules of codegen::planKernel() choose.
  const KernelChoices* choices = nullptr;
};

// The properties of the caller's tensors on which a plan depends. Alignments are in bytes
// (codegen::alignmentOf()). A list may have fewer entries than there are inputs or outputs. The
// missing entries then count as nullopt, false or kFullAlignment.
struct GivenTensors {
  std::vector<std::optional<TensorDesc>> preallocated = {};  // per output
  std::vector<bool> by_value = {};  // per input: it is a 0-d tensor in host memory
  std::vector<int32_t> input_alignments = {};
  std::vector<int32_t> output_alignments = {};  // alignments of preallocated tensors
};

// Creates a plan, and compiles and loads its kernels. If the ranks must agree on library algorithms
// for new sizes (host/job/agree_on_algorithms.h), the call waits for the same call on all other
// ranks. Throws UserError in these cases, among others. The message names the instruction, output
// or input.
// - The device cannot execute an instruction.
// - A preallocated tensor does not fit its output.
// - An input that is updated in place is in host memory, or its elements overlap.
std::shared_ptr<const Plan> makePlan(const Program& program, const Unrolled& unrolled,
                                     const UnrollRequest& request, const GivenTensors& given,
                                     const PlanTarget& target);
// Compiles the kernels of the plan, so that makePlan() finds their images. Loads no kernels, and
// waits for no other rank.
void compileKernels(const Program& program, const Unrolled& unrolled, const UnrollRequest& request,
                    const GivenTensors& given, const PlanTarget& target);

// Returns roughly how many bytes a plan occupies, with the kernels that were loaded for it.
int64_t bytesOf(const Plan& plan);

}  // namespace heddle::host
