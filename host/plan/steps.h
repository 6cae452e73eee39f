#pragma once

#include <array>
#include <cstdint>
#include <variant>

#include "comm/communicator.h"
#include "host/program/instructions.h"
#include "host/unroll/unroll.h"

namespace heddle::host {

// The steps of a plan (host/plan/plan.h), and the ids that they contain.

// Index in RunState::pointers. That list contains in this order:
// - the buffers of the unrolled program
// - one workspace per stream
// - the counters (codegen::LaunchStage::kCounters) of each stream
// - one entry per output, for the caller's preallocated tensor
// - the addresses that depend on late inputs (Plan::LatePointer)
using PointerIndex = Id<struct PointerTag>;
// pointerTo() and bufferOf() convert between a buffer and its pointer. Both have the same number.
constexpr PointerIndex pointerTo(BufferId buffer) { return PointerIndex(buffer.number()); }
constexpr BufferId bufferOf(PointerIndex pointer) { return BufferId(pointer.number()); }

// Each of these types except DeviceEventId is an index into the member of Plan with the
// corresponding name: StageId into Plan::stages, and so on.
using StageId = Id<struct StageTag>;
using ReferenceId = Id<struct ReferenceTag>;
using MatmulId = Id<struct MatmulTag>;
using LibraryId = Id<struct LibraryTag>;
using AttentionId = Id<struct AttentionTag>;
using CountsId = Id<struct CountsTag>;
using TeamId = Id<struct TeamTag>;
using NamedOperandId = Id<struct NamedOperandTag>;
using InspectionId = Id<struct InspectionTag>;
using DeviceEventId = Id<struct DeviceEventTag>;  // index into RunState::events

// An address: an offset from an element of RunState::pointers.
struct Address {
  PointerIndex pointer;  // invalid: no memory
  int64_t offset = 0;    // in bytes
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
  StageId stage;
  int32_t first_pointer;  // index of the first patch in Plan::pointer_patches
  int32_t pointers;       // number of pointer patches
  int32_t first_scalar;   // index of the first patch in Plan::scalar_patches
  int32_t scalars;        // number of scalar patches
  StreamId stream;
};
struct ReferenceStep {  // computes a kernel on the host; used without a compiler
  ReferenceId reference;
  StreamId stream;
};
struct MatmulStep {
  MatmulId matmul;
  StreamId stream;
};
struct LibraryStep {
  LibraryId library;
  StreamId stream;
};
struct AttentionStep {
  AttentionId attention;
  StreamId stream;
};
struct CopyStep {
  Address dst;
  Address src;
  int64_t bytes;
  StreamId stream;
};
struct CollectiveStep {
  comm::Communicator* communicator;
  int32_t first;       // index of the first operation in Plan::operations
  int32_t operations;  // number of operations; they are posted together
  StreamId stream;
  CountsId counts = {};        // invalid: not an AllToAllV
  TeamId team = {};            // the ranks that take part
  comm::Carrier carrier = {};  // the hardware that moves the data
};
struct RecordStep {  // records a device event on a stream
  DeviceEventId event;
  StreamId stream;
};
struct WaitStep {  // makes a stream wait for a device event
  DeviceEventId event;
  StreamId stream;
};
struct RegisterStep {  // sets register `out` to a constant
  RegisterId out;
  Scalar value;
};
struct ApplyStep {  // applies a scalar op on the host
  const OpDef* op;
  std::array<RegisterId, kMaxOperands> args;  // operands; invalid: the op has fewer operands
  RegisterId out;
  DType compute;  // the type in which the op computes
  DType dtype;    // the type of the result
};
struct ReadBackStep {  // copies elements to the host, and waits for the copy
  Address src;
  RegisterId out;  // the register of element 0
  DeviceEventId event;
  StreamId stream;
  DType source_dtype;
  DType dtype;
  int32_t count;  // number of elements; element i is stored in register out + i
};
struct BranchStep {  // jumps to step `target` if the comparison of register `lhs` with rhs is false
  RegisterId lhs;
  Predicate::Compare compare;
  int64_t rhs;
  int32_t target;
};
struct GotoStep {  // jumps to step `target`
  int32_t target;  // index in Plan::steps
};
struct CheckStep {  // fails the run if a tensor contains NaN or infinity
  NamedOperandId operand;
  StreamId stream;
};
struct PrintStep {  // prints a tensor or a scalar to stdout
  NamedOperandId operand;
  StreamId stream;
};
// Counts the NaN and infinite values in the tensors and scalars that an instruction reads or has
// written. A plan contains this step only if PlanTarget::check_numerics is true.
struct InspectStep {
  InspectionId inspection;
  bool after;  // false: inspects what the instruction reads; true: what it has written
  StreamId stream;
};

using Step =
    std::variant<AllocateStep, FreeStep, LaunchStep, ReferenceStep, MatmulStep, LibraryStep,
                 AttentionStep, CopyStep, CollectiveStep, RecordStep, WaitStep, RegisterStep,
                 ApplyStep, ReadBackStep, BranchStep, GotoStep, CheckStep, PrintStep, InspectStep>;

template <class... Kinds>
bool isOneOf(const Step& step) {
  return (std::holds_alternative<Kinds>(step) || ...);
}

// Returns whether the step may write device memory: it computes, copies or communicates. A
// CollectiveStep that only sends writes none.
inline bool writesData(const Step& step) {
  return isOneOf<LaunchStep, ReferenceStep, MatmulStep, LibraryStep, AttentionStep, CopyStep,
                 CollectiveStep>(step);
}

}  // namespace heddle::host
