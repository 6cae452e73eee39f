#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// Unrolling writes a host program (host/program/program.h) out for one rank and one set of sizes:
// - Calls are replaced by the called programs, and loops are expanded.
// - Instructions that only other ranks execute (Instruction::on) are left out.
// - Branches on sizes are decided. Branches on scalars become jumps.
// - Each view is resolved to a buffer, a byte offset and a descriptor.
// The result is called an unrolled program. verify() (host/verify/verify.h) checks it for races,
// and a Plan (host/plan/plan.h) binds it to a device. Races are therefore checked on the same steps
// that a run executes.

using BufferId = int32_t;  // index into Unrolled::buffers

// An allocation or an input. An Allocate in a loop creates one buffer per iteration.
struct Buffer {
  enum class Origin : uint8_t { Input, Allocated };
  Origin origin = Origin::Allocated;
  int32_t input = -1;  // Origin::Input: index into Program::inputs
  int64_t bytes = 0;   // number of bytes allocated on this rank
  std::string name;    // name of the slot that the Allocate defines, or of the input
};

// The memory that a tensor slot names at one point of the program.
struct View {
  BufferId buffer = -1;  // -1: the view is empty, and the slot names no memory on this rank
  int64_t byte_offset = 0;
  TensorDesc desc;
};

// An access of one step to one buffer.
struct UnrolledAccess {
  BufferId buffer;
  int64_t begin;  // the access is to the bytes [begin, end) of the buffer
  int64_t end;
  bool write;  // false: a read
};

// One step of an unrolled program. A step names scalars of the host by registers, which are
// numbered from 0. A list has one register per element.
struct UnrolledStep {
  const Instruction* instruction = nullptr;  // in the Program, which must outlive the Unrolled
  InstructionIndex index = -1;
  StreamId stream = -1;  // -1: the step is not on a stream
  // The views of the input slots, in the order of the instruction. A view is empty for a scalar,
  // and for an input or output of a Communicate in which this rank has no part.
  std::vector<View> inputs;
  std::vector<View> outputs;
  // One per element of `inputs`: the register of a scalar, or the first register of a list. -1: the
  // input is a tensor.
  std::vector<SlotId> scalar_inputs;
  std::vector<UnrolledAccess> accesses;
  int64_t peer = -1;        // a rank in the team. Send, Recv: the other rank. Communicate: the root
  bool root_apart = false;  // true: the root of a gather or scatter has no part of its own
  // Evaluate of a size or literal: the value, in the dtype of the slot. An If that the run decides:
  // the right side of its predicate, as an i64.
  std::optional<Scalar> known;
  int32_t scalar_out = -1;  // Evaluate, ReadBack: the register to write; the first one of a list
  // Index of the step to which this step jumps. -1: this step does not jump. An If that the run
  // decides jumps if its predicate is false. A step without instruction, at the end of
  // If::then_body, always jumps.
  int32_t jump = -1;
};

struct Unrolled {
  // If the program contains Calls: a copy of the program in which each Call is replaced by the
  // called program. All ids of the unrolled program then refer to this copy. nullptr: the program
  // contains no Calls. A program from which a Plan is prepared contains none.
  std::shared_ptr<const Program> inlined;
  std::vector<UnrolledStep> steps;
  std::vector<Buffer> buffers;
  // Per output of the program. The view is empty for a scalar, and on ranks outside of the mesh of
  // the output.
  std::vector<View> outputs;
  std::vector<int32_t> scalar_outputs;   // per output of the program: scalar register, or -1
  std::vector<int32_t> input_registers;  // per input of the program: scalar register, or -1
  int32_t registers = 0;                 // number of scalar registers
  int64_t rank = 0;
};

// The rank and the sizes for which a program is unrolled.
struct UnrollRequest {
  SizeBindings sizes;  // the values of the symbols of the program
  // The local descriptors of the caller's tensors, one per input of the program; for a scalar, an
  // empty one. If the list is empty, each input has the descriptor that describe() returns, but in
  // the memory order that its type declares (Layout::observed).
  std::vector<TensorDesc> inputs;
  int64_t rank = 0;
  int64_t ranks = 1;  // number of ranks of the job
};

// Unrolls the program. UserError names the instruction and the slot: a view that does not exist, an
// index or peer out of range, a slot that is used before it is defined, sizes that do not fit. A
// program of more than a million steps is rejected before any step is created.
Unrolled unroll(const Program& program, const UnrollRequest& request);

// Returns the local descriptor of a slot on this rank for these sizes, in the allocation order of
// its type. On a rank outside of the slot's mesh, the local sizes are 0.
TensorDesc describe(const Slot& slot, const Meshes& meshes, const SizeBindings& sizes, int64_t rank,
                    int64_t ranks);

}  // namespace heddle::host
