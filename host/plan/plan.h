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

// A Unrolled bound to a device: a flat list of steps in which every size, offset, kernel and
// communicator is settled. Only pointers and scalar values are missing; they are patched at known
// places of argument blocks. Immutable, shared by all runs with the same shapes.

// Index into RunState::pointers: the buffers of the unrolled program, then a workspace for each
// stream, then the preallocated outputs.
using PointerIndex = int32_t;

struct Place {
  PointerIndex pointer = -1;
  int64_t offset = 0;  // bytes
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
  int32_t stage;  // of Plan::stages
  int32_t first_pointer;
  int32_t pointers;  // of Plan::pointer_patches
  int32_t first_scalar;
  int32_t scalars;  // of Plan::scalar_patches
  StreamId stream;
};
struct ReferenceStep {  // a segment evaluated on the host, for a device without a compiler
  int32_t reference;
  StreamId stream;
};
struct MatmulStep {
  int32_t matmul;
  StreamId stream;
};
struct LibraryStep {
  int32_t library;
  StreamId stream;
};
struct AttentionStep {
  int32_t attention;
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
  int32_t first;
  int32_t operations;  // posted together
  StreamId stream;
  int32_t counts = -1;         // of Plan::counts: an AllToAllV alone
  int32_t team = -1;           // of Plan::teams
  comm::Carrier carrier = {};  // of the communicator
};
struct RecordStep {
  int32_t event;
  StreamId stream;
};
struct WaitStep {
  int32_t event;
  StreamId stream;
};
struct RegisterStep {
  int32_t out;
  Scalar value;
};
struct ApplyStep {
  const OpDef* op;
  std::array<int32_t, kMaxOperands> args;
  int32_t out;
  DType compute;  // the type in which the op computes
  DType dtype;    // of the result
};
struct ReadBackStep {
  Place src;
  int32_t out;
  int32_t event;
  StreamId stream;
  DType source_dtype;
  DType dtype;
  int32_t count;  // to as many registers from `out` on
};
struct BranchStep {  // goes to `target` unless registers[lhs] `compare` rhs
  int32_t lhs;
  Predicate::Compare compare;
  int64_t rhs;
  int32_t target;
};
struct GotoStep {
  int32_t target;
};
struct CheckStep {
  int32_t watched;
  StreamId stream;
};
struct PrintStep {
  int32_t watched;
  StreamId stream;
};

using Step =
    std::variant<AllocateStep, FreeStep, LaunchStep, ReferenceStep, MatmulStep, LibraryStep,
                 AttentionStep, CopyStep, CollectiveStep, RecordStep, WaitStep, RegisterStep,
                 ApplyStep, ReadBackStep, BranchStep, GotoStep, CheckStep, PrintStep>;

struct Plan {
  struct Stage {
    codegen::LaunchStage launch;
    KernelHandle kernel = nullptr;
    int32_t args = 0;  // where its block starts in Plan::args
  };
  struct PointerPatch {
    int32_t at;  // in Plan::args
    Place place;
  };
  struct ScalarPatch {
    int32_t at;
    int32_t scalar;  // register
    DType dtype;
  };
  struct OperationPlaces {
    Place send;
    Place recv;
  };
  struct Counts {
    int32_t ranks;
    int32_t send;  // the first of `ranks` registers
    int32_t recv;
    int32_t at;             // where both lists stand in RunState::counts
    int64_t send_elements;  // that the buffers have
    int64_t recv_elements;
  };
  struct Matmul {
    Place a;
    Place b;
    Place bias;  // without a pointer: none
    Place c;
    std::shared_ptr<const PreparedMatmul> prepared;  // shared by calls that are alike
  };
  struct Library {
    LibraryCall call;  // without pointers
    std::vector<Place> inputs;
    Place output;
    std::vector<TensorDesc> descs;  // of inputs, then output
  };
  struct Attention {
    static constexpr size_t kMostOperands = 7;
    std::array<Place, kMostOperands> operands;  // what it reads, then what it writes
    std::shared_ptr<const PreparedAttention> prepared;
  };
  struct Operand {
    Place place;
    TensorDesc desc;
    int32_t scalar = -1;  // register
  };
  struct Reference {
    Fusion segment;  // of this rank's sizes
    std::vector<Operand> inputs;
    std::vector<Operand> outputs;
  };
  struct Watched {
    std::string name;
    Operand operand;
  };
  struct BufferInput {
    PointerIndex pointer;
    int32_t input;
  };
  struct ScalarInput {
    int32_t out;  // register
    int32_t input;
    DType dtype;
    Scalar default_value;  // when the caller gives none
  };
  struct ValueInput {  // a 0-d tensor in host memory
    int32_t out;       // register
    int32_t input;
    DType dtype;
  };
  struct Preallocated {
    PointerIndex pointer;
    int32_t output;
  };
  // What a timeline and an injected fault know of a step.
  struct StepNote {
    StreamId stream = -1;    // -1: the host alone
    int32_t occurrence = 0;  // of its instruction: the trip of a loop
    int64_t bytes = 0;       // that the instruction touches
    Place output;            // what it writes first, if anything
    int64_t output_bytes = 0;
    int32_t team = -1;  // of Plan::teams, for a collective that is also a barrier
  };
  struct Output {
    int32_t scalar = -1;  // register
    Place place;
    TensorDesc desc;
    int32_t input = -1;         // aliases the buffer of this input
    bool preallocated = false;  // landed in the caller's memory
  };

  std::vector<Step> steps;
  std::vector<InstructionIndex> instruction_of;  // per step
  std::vector<StepNote> notes;                   // per step
  std::vector<std::vector<int>> teams;           // world ranks
  uint64_t sizes_hash = 0;                       // of the sizes it was made for
  mutable uint64_t agreed = 0;  // CrossRankMatcher's; while RunOrder::running is held
  std::vector<Stage> stages;
  std::vector<std::byte> args;  // the argument blocks of all stages
  std::vector<PointerPatch> pointer_patches;
  std::vector<ScalarPatch> scalar_patches;
  std::vector<comm::Operation> operations;
  std::vector<OperationPlaces> operation_places;  // parallel to operations
  std::vector<Counts> counts;
  int32_t counts_size = 0;     // of RunState::counts
  int64_t staging_bytes = 16;  // of RunState::staging
  std::vector<Matmul> matmuls;
  std::vector<Library> libraries;
  std::vector<Attention> attentions;
  std::vector<Reference> references;
  std::vector<Watched> watched;
  std::vector<Buffer> buffers;
  std::vector<int64_t> workspace_bytes;  // per stream
  std::vector<BufferInput> buffer_inputs;
  std::vector<ScalarInput> scalar_inputs;
  std::vector<ValueInput> value_inputs;
  std::vector<Preallocated> preallocated;
  std::vector<Output> outputs;
  int32_t registers = 0;
  int32_t events = 0;
  int32_t streams = 1;
  std::vector<bool> communication_streams;  // Program::communicationStreams()
  bool communicates = false;
  std::vector<comm::Communicator*> stream_ordered;  // of those it posts to

  PointerIndex workspace(StreamId stream) const {
    return static_cast<PointerIndex>(buffers.size()) + stream;
  }
  PointerIndex preallocatedPointer(size_t output) const {
    return static_cast<PointerIndex>(buffers.size()) + streams + static_cast<int32_t>(output);
  }
  size_t pointers() const { return buffers.size() + static_cast<size_t>(streams) + outputs.size(); }
};

// What a plan is bound to, besides the unrolled program.
struct PlanTarget {
  Device& device;
  const Communicators& communicators;
  KernelStore& kernels;
  AlgorithmAgreement& matmuls;
  int64_t ranks = 1;
  Stream stream = nullptr;  // of the run that the plan is made for: where algorithms are timed
};

// `preallocated`: per output the descriptor of the caller's tensor, or nullopt. `by_value`: which
// inputs are 0-d tensors in host memory; those behind its end are not. UserError naming the
// instruction for what the device cannot do, naming the output for a preallocated tensor that does
// not fit. Compiles and loads the kernels it needs.
std::shared_ptr<const Plan> makePlan(const Program& program, const Unrolled& unrolled,
                                     const SizeBindings& sizes,
                                     const std::vector<std::optional<TensorDesc>>& preallocated,
                                     const std::vector<bool>& by_value, const PlanTarget& target);

}  // namespace heddle::host
