#pragma once

#include <array>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "host/device/device.h"
#include "host/job/agree_on_algorithms.h"
#include "host/job/communicators.h"
#include "host/plan/kernel_store.h"
#include "host/unroll/unroll.h"

namespace heddle::host {

class PreparedAttention;  // host/device/attention.h

// An unrolled program (host/unroll/unroll.h) is a host program written out for one rank and one set
// of sizes. A plan is an unrolled program that is bound to a device: a flat list of steps. The plan
// fixes every size, offset, kernel and communicator. Only pointers and scalar values are missing. A
// run writes them to known offsets in its copy of the kernels' argument blocks. All runs with the
// same shapes share the plan. A plan is immutable, except its member `agreed`.
//
// In this file, a register is an element of RunState::registers (host/run/run_state.h). It holds a
// scalar value of the run.

// Index in RunState::pointers. That list contains, in this order, the buffers of the unrolled
// program, one workspace per stream, and one entry per output for a preallocated tensor.
using PointerIndex = int32_t;

// An address: an offset from a pointer of the run.
struct Place {
  PointerIndex pointer = -1;  // -1: no memory
  int64_t offset = 0;         // in bytes
};

struct AllocateStep {
  BufferId buffer;
  StreamId stream;
  int64_t bytes;
};
struct FreeStep {
  BufferId buffer;
  StreamId stream;
  int64_t bytes;
};
struct LaunchStep {
  int32_t stage;          // index in Plan::stages
  int32_t first_pointer;  // index of the first patch in Plan::pointer_patches
  int32_t pointers;       // number of pointer patches
  int32_t first_scalar;   // index of the first patch in Plan::scalar_patches
  int32_t scalars;        // number of scalar patches
  StreamId stream;
};
struct ReferenceStep {  // computes a kernel on the host; used without a compiler
  int32_t reference;    // index in Plan::references
  StreamId stream;
};
struct MatmulStep {
  int32_t matmul;  // index in Plan::matmuls
  StreamId stream;
};
struct LibraryStep {
  int32_t library;  // index in Plan::libraries
  StreamId stream;
};
struct AttentionStep {
  int32_t attention;  // index in Plan::attentions
  StreamId stream;
};
struct CopyStep {
  Place dst;
  Place src;
  int64_t bytes;
  StreamId stream;
};
struct CollectiveStep {
  comm::Communicator* communicator;
  int32_t first;       // index of the first operation in Plan::operations
  int32_t operations;  // number of operations; they are posted together
  StreamId stream;
  int32_t counts = -1;         // index in Plan::counts; -1: not an AllToAllV
  int32_t team = -1;           // index in Plan::teams: the ranks that take part
  comm::Carrier carrier = {};  // the hardware that moves the data
};
struct RecordStep {
  int32_t event;  // index in RunState::events
  StreamId stream;
};
struct WaitStep {
  int32_t event;  // index in RunState::events
  StreamId stream;
};
struct RegisterStep {  // sets register `out` to a constant
  int32_t out;
  Scalar value;
};
struct ApplyStep {  // applies a scalar op on the host
  const OpDef* op;
  std::array<int32_t, kMaxOperands> args;  // registers of the operands; -1: no operand
  int32_t out;                             // register of the result
  DType compute;                           // the type in which the op computes
  DType dtype;                             // the type of the result
};
struct ReadBackStep {  // copies elements to the host, and waits for the copy
  Place src;
  int32_t out;    // first register
  int32_t event;  // index in RunState::events
  StreamId stream;
  DType source_dtype;
  DType dtype;
  int32_t count;  // number of elements; element i is stored in register out + i
};
struct BranchStep {  // jumps to step `target` if the comparison of register `lhs` with rhs is false
  int32_t lhs;
  Predicate::Compare compare;
  int64_t rhs;
  int32_t target;
};
struct GotoStep {
  int32_t target;  // index of the next step
};
struct CheckStep {
  int32_t watched;  // index in Plan::watched
  StreamId stream;
};
struct PrintStep {
  int32_t watched;  // index in Plan::watched
  StreamId stream;
};

using Step =
    std::variant<AllocateStep, FreeStep, LaunchStep, ReferenceStep, MatmulStep, LibraryStep,
                 AttentionStep, CopyStep, CollectiveStep, RecordStep, WaitStep, RegisterStep,
                 ApplyStep, ReadBackStep, BranchStep, GotoStep, CheckStep, PrintStep>;

struct Plan {
  // One launch of a kernel.
  struct Stage {
    codegen::LaunchStage launch;
    KernelHandle kernel = nullptr;
    int32_t args = 0;  // offset of the stage's argument block in Plan::args
  };
  // A pointer that a run writes to an argument block.
  struct PointerPatch {
    int32_t at;  // offset in Plan::args
    Place place;
  };
  // A scalar that a run writes to an argument block.
  struct ScalarPatch {
    int32_t at;      // offset in Plan::args
    int32_t scalar;  // register of the value
    DType dtype;     // the type that the kernel expects
  };
  // The memory of one operation of a collective.
  struct OperationPlaces {
    Place send;
    Place recv;
  };
  // The counts of an AllToAllV: the numbers of elements that a rank sends to each rank of the team,
  // and the numbers that it receives from each.
  struct Counts {
    int32_t ranks;          // number of ranks of the team
    int32_t send;           // first of `ranks` registers with the numbers to send
    int32_t recv;           // first of `ranks` registers with the numbers to receive
    int32_t at;             // index of the send list in RunState::counts; the receive list follows
    int64_t send_elements;  // size of the send buffer, in elements
    int64_t recv_elements;  // size of the receive buffer, in elements
  };
  struct Matmul {
    Place a;
    Place b;
    Place bias;  // pointer -1: no bias
    Place c;
    std::shared_ptr<const PreparedMatmul> prepared;  // shared by calls with equal specs
  };
  struct Library {
    LibraryCall call;  // its pointers are null; a run fills them in a copy
    std::vector<Place> inputs;
    Place output;
    std::vector<TensorDesc> descs;  // of all inputs, followed by that of the output
  };
  struct Attention {
    static constexpr size_t kMostOperands = 7;
    std::array<Place, kMostOperands> operands;  // the tensors read, followed by those written
    std::shared_ptr<const PreparedAttention> prepared;
  };
  // A tensor or a scalar.
  struct Operand {
    Place place;
    TensorDesc desc;
    int32_t scalar = -1;  // register of a scalar; -1: the operand is a tensor
  };
  struct Reference {
    Fusion segment;  // result of localSegment() for the kernel's segment
    std::vector<Operand> inputs;
    std::vector<Operand> outputs;
  };
  // The tensor or scalar that a CheckStep checks or a PrintStep prints.
  struct Watched {
    std::string name;
    Operand operand;
  };
  struct BufferInput {  // a tensor in device memory
    PointerIndex pointer;
    int32_t input;  // position of the argument
  };
  struct ScalarInput {
    int32_t out;    // register that receives the value
    int32_t input;  // position of the argument
    DType dtype;
    Scalar default_value;  // used if the caller passes no value
  };
  struct ValueInput {  // a 0-d tensor in host memory
    int32_t out;       // register that receives its element
    int32_t input;     // position of the argument
    DType dtype;
  };
  struct Preallocated {  // a caller's tensor that receives an output
    PointerIndex pointer;
    int32_t output;  // position of the output
  };
  // Facts about a step for timelines and injected faults.
  struct StepNote {
    StreamId stream = -1;      // -1: the step runs on the host only
    int32_t occurrence = 0;    // number of earlier executions; above 0 only in loops
    int64_t bytes = 0;         // bytes that the instruction reads and writes
    Place output;              // the first memory that the instruction writes
    int64_t output_bytes = 0;  // bytes at `output`; 0: the instruction writes nothing
    // If the step is a collective that no rank completes before all ranks of the team have begun
    // it: the index of this team in Plan::teams. Otherwise -1.
    int32_t team = -1;
  };
  struct Output {
    int32_t scalar = -1;  // register of a scalar; -1: the output is a tensor
    Place place;
    TensorDesc desc;
    int32_t input = -1;         // position of the input whose memory the output shares; -1: none
    bool preallocated = false;  // true: the output is in the caller's tensor
  };

  std::vector<Step> steps;
  std::vector<InstructionIndex> instruction_of;  // instruction of each step; -1: none
  std::vector<StepNote> notes;                   // per step
  std::vector<std::vector<int>> teams;           // teams of collectives, as ranks of the World
  uint64_t sizes_hash = 0;                       // hash of the sizes for which the plan was created
  // Number of the round of comparisons (host/run/match_collectives_across_ranks.h) in which the
  // ranks agreed on the operations that this plan posts; 0: the ranks have not agreed yet.
  // RunOrder::running guards this member.
  mutable uint64_t agreed = 0;
  std::vector<Stage> stages;
  std::vector<std::byte> args;  // the argument blocks of all stages
  std::vector<PointerPatch> pointer_patches;
  std::vector<ScalarPatch> scalar_patches;
  std::vector<comm::Operation> operations;
  std::vector<OperationPlaces> operation_places;  // memory of each element of `operations`
  std::vector<Counts> counts;
  int32_t counts_size = 0;     // required length of RunState::counts
  int64_t staging_bytes = 16;  // required length of RunState::staging
  std::vector<Matmul> matmuls;
  std::vector<Library> libraries;
  std::vector<Attention> attentions;
  std::vector<Reference> references;
  std::vector<Watched> watched;
  std::vector<Buffer> buffers;
  std::vector<int64_t> workspace_bytes;  // size per stream; the steps of a stream share it
  std::vector<BufferInput> buffer_inputs;
  std::vector<ScalarInput> scalar_inputs;
  std::vector<ValueInput> value_inputs;
  std::vector<Preallocated> preallocated;
  std::vector<Output> outputs;
  int32_t registers = 0;                    // number of registers
  int32_t events = 0;                       // number of events
  int32_t streams = 1;                      // number of streams
  std::vector<bool> communication_streams;  // Program::communicationStreams()
  bool communicates = false;                // true: the plan posts operations on this rank
  // The communicators of the plan whose operations wait on the device
  // (comm::Communicator::isStreamOrdered()).
  std::vector<comm::Communicator*> stream_ordered;

  // Returns the index of the workspace of a stream.
  PointerIndex workspace(StreamId stream) const {
    return static_cast<PointerIndex>(buffers.size()) + stream;
  }
  // Returns the index of the caller's tensor that receives a copy of output `output`.
  PointerIndex preallocatedPointer(size_t output) const {
    return static_cast<PointerIndex>(buffers.size()) + streams + static_cast<int32_t>(output);
  }
  // Returns the length of RunState::pointers.
  size_t pointers() const { return buffers.size() + static_cast<size_t>(streams) + outputs.size(); }
};

// The resources to which makePlan() binds an unrolled program. The device and the communicators
// must outlive the plan.
struct PlanTarget {
  Device& device;
  const Communicators& communicators;
  KernelStore& kernels;
  AlgorithmAgreement& matmuls;
  int64_t ranks = 1;
  Stream stream = nullptr;  // the stream of the run; library algorithms are measured on it
};

// Creates a plan, and compiles and loads its kernels. A call with new sizes is collective over the
// job if the ranks must agree on library algorithms (host/job/agree_on_algorithms.h).
//   preallocated  per output: the descriptor of the caller's tensor, or nullopt
//   by_value      per input: whether it is a 0-d tensor in host memory; missing entries are false
// Throws UserError if the device cannot execute an instruction, or if a preallocated tensor does
// not fit its output. The message names the instruction or the output.
std::shared_ptr<const Plan> makePlan(const Program& program, const Unrolled& unrolled,
                                     const SizeBindings& sizes,
                                     const std::vector<std::optional<TensorDesc>>& preallocated,
                                     const std::vector<bool>& by_value, const PlanTarget& target);

}  // namespace heddle::host
