#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// A Program unrolled for one rank and one set of sizes: loops expanded, `on` projected, predicates
// known at prepare decided, views resolved to (buffer, byte offset, descriptor), callees inlined.
// verify checks races on it, Plan binds it to a device: so both speak of the same thing.

using BufferId = int32_t;

// One allocation, input or output buffer. A slot allocated in a loop makes one buffer a trip.
struct Buffer {
  enum class Origin : uint8_t { Input, Allocated };
  Origin origin = Origin::Allocated;
  int32_t input = -1;  // Origin::Input: position among the program's inputs
  int64_t bytes = 0;   // allocated on this rank
  std::string name;    // of the slot that made it
};

// A slot at one moment.
struct View {
  BufferId buffer = -1;
  int64_t byte_offset = 0;
  TensorDesc desc;
};

struct UnrolledAccess {
  BufferId buffer;
  int64_t begin;  // bytes [begin, end) that the view spans
  int64_t end;
  bool write;
};

struct UnrolledStep {
  const Instruction* instruction = nullptr;  // in the Program, which outlives the Unrolled
  InstructionIndex index = -1;
  StreamId stream = -1;      // -1: host side
  std::vector<View> inputs;  // in the order of the instruction's input slots; scalars: empty view;
                             // empty too where a rank has no part in a rooted Communicate
  std::vector<View> outputs;
  std::vector<SlotId>
      scalar_inputs;  // parallel to inputs: the unrolled program's scalar register, or -1
  std::vector<UnrolledAccess> accesses;
  int64_t peer = -1;            // Send, Recv: rank within the team; of a Communicate: the root
  bool root_apart = false;      // a gather or scatter whose root has none of the parts
  std::optional<Scalar> known;  // Evaluate of a Size or literal: its value in the slot's dtype;
                                // If decided at run time: the right side, an i64
  int32_t scalar_out = -1;      // Evaluate, ReadBack: register written, of a list the first
  int32_t jump = -1;            // If decided at run time: step to go to when the predicate fails;
                                // step of kind `Goto` (instruction == nullptr): where to go
};

struct Unrolled {
  // Set when the program has calls: the steps are of this one, calls replaced by their bodies, and
  // so are its slots, kernels, tokens and events. Plans avoid it by inlineCalls() beforehand.
  std::shared_ptr<const Program> inlined;
  std::vector<UnrolledStep> steps;
  std::vector<Buffer> buffers;
  std::vector<View> outputs;  // per program output; scalars: empty view; without a buffer where
                              // this rank is outside of the slot's mesh
  std::vector<int32_t> scalar_outputs;   // per program output: register, or -1
  std::vector<int32_t> input_registers;  // per program input: scalar register, or -1
  int32_t registers = 0;                 // scalar registers
  int64_t rank = 0;
};

// What a run is given. `inputs[i]` are the local descriptors of the caller's tensors (scalars:
// empty); an empty one stands for describe(slot).
struct UnrollRequest {
  SizeBindings sizes;  // symbols of the program
  std::vector<TensorDesc> inputs;
  int64_t rank = 0;
  int64_t ranks = 1;
};

// UserError naming instruction and slot: a view that does not exist, an index or peer out of range,
// a slot used before it is defined, sizes that disagree, a loop of more than 10 million steps.
Unrolled unroll(const Program& program, const UnrollRequest& request);

// The descriptor of a slot for these sizes on this rank, in its allocation order. A rank outside
// the slot's mesh holds nothing: sizes 0.
TensorDesc describe(const Slot& slot, const Meshes& meshes, const SizeBindings& sizes, int64_t rank,
                    int64_t ranks);

}  // namespace heddle::host
