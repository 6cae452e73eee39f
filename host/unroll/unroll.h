#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// A Program unrolled for one rank and one set of sizes:
// - callees are inlined and loops expanded
// - instructions `on` meshes without this rank are left out
// - branches on sizes are decided; branches on scalars become jumps
// - views are resolved to a buffer, a byte offset and a descriptor
// verify() checks it for races, and a Plan binds it to a device. Both therefore see the same steps.

using BufferId = int32_t;

// An allocation or an input. An Allocate in a loop creates one buffer per trip.
struct Buffer {
  enum class Origin : uint8_t { Input, Allocated };
  Origin origin = Origin::Allocated;
  int32_t input = -1;  // Origin::Input: position among the program's inputs
  int64_t bytes = 0;   // allocated on this rank
  std::string name;    // of the slot of the Allocate or input
};

// The memory that a tensor slot names at one point of the program.
struct View {
  BufferId buffer = -1;
  int64_t byte_offset = 0;
  TensorDesc desc;
};

// An access of one step to one buffer.
struct UnrolledAccess {
  BufferId buffer;
  int64_t begin;  // bytes [begin, end) that the view spans
  int64_t end;
  bool write;
};

struct UnrolledStep {
  const Instruction* instruction = nullptr;  // in the Program, which must outlive the Unrolled
  InstructionIndex index = -1;
  StreamId stream = -1;      // -1: the host alone executes it
  std::vector<View> inputs;  // in the order of the instruction's input slots. Empty for scalars and
                             // for a side of a Communicate on which this rank has no part
  std::vector<View> outputs;
  std::vector<SlotId> scalar_inputs;  // parallel to inputs: scalar register, or -1
  std::vector<UnrolledAccess> accesses;
  int64_t peer = -1;            // Send, Recv: rank in the team; Communicate: the root
  bool root_apart = false;      // the root of a gather or scatter has no part of its own
  std::optional<Scalar> known;  // Evaluate of a Size or literal: the value in the slot's dtype.
                                // An If that the run decides: the right side of its predicate, an
                                // i64
  int32_t scalar_out = -1;      // Evaluate, ReadBack: register that is written; first one of a list
  // The next step: of an If that the run decides, if its predicate is false; of a step without
  // instruction (at the end of then_body), always.
  int32_t jump = -1;
};

struct Unrolled {
  // Set if the program has calls: the program in which calls are replaced by their bodies. Steps,
  // slots, kernels, tokens and events are then those of this program. nullptr for a program that
  // inlineCalls() returned, as plans use it.
  std::shared_ptr<const Program> inlined;
  std::vector<UnrolledStep> steps;
  std::vector<Buffer> buffers;
  std::vector<View> outputs;  // per program output. Scalars: an empty view. No buffer if this rank
                              // is outside of the slot's mesh
  std::vector<int32_t> scalar_outputs;   // per program output: register, or -1
  std::vector<int32_t> input_registers;  // per program input: scalar register, or -1
  int32_t registers = 0;                 // scalar registers
  int64_t rank = 0;
};

// The rank and the sizes to unroll for. `inputs` has the local descriptors of the caller's tensors,
// one per program input (scalars: an empty one). Without `inputs`, each input has the descriptor
// that describe() gives, in the observed memory order if its type has one.
struct UnrollRequest {
  SizeBindings sizes;  // symbols of the program
  std::vector<TensorDesc> inputs;
  int64_t rank = 0;
  int64_t ranks = 1;
};

// Unrolls the program. UserError names the instruction and the slot: a view that does not exist, an
// index or peer out of range, a slot that is used before it is defined, sizes that do not fit. A
// program of more than a million steps is rejected before any step is created.
Unrolled unroll(const Program& program, const UnrollRequest& request);

// Returns the local descriptor of a slot for these sizes on this rank, in the allocation order of
// its type. A rank outside of the slot's mesh holds nothing: its sizes are 0.
TensorDesc describe(const Slot& slot, const Meshes& meshes, const SizeBindings& sizes, int64_t rank,
                    int64_t ranks);

}  // namespace heddle::host
