#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "host/program/instructions.h"
#include "ir/graph/fusion.h"

namespace heddle::host {

// The host program describes the work of all ranks, as plain data. There is one program for all
// ranks. Each rank unrolls it when it prepares a plan (host/unroll/unroll.h). A program contains no
// pointers into itself, prints and parses (host/text/program_text.h), and never changes while it
// runs. docs/host_instructions.md describes each instruction.

// A register of the program. A tensor slot names a buffer or a view of one. A scalar slot holds a
// host value, or a list of i64 values with one axis, which only ReadBack fills. A later Allocate,
// Alias, Evaluate or ReadBack may redefine a slot.
struct Slot {
  std::string name;  // without '%'
  bool is_scalar = false;
  TensorView tensor;        // unsharded logical sizes, layout, sharding
  std::vector<Size> alloc;  // local allocated sizes, per axis, equal on all ranks; empty: those of
                            // the sharding's blocks, rounded up
  std::optional<Scalar> default_value;  // scalar inputs
  bool isList() const { return is_scalar && tensor.rank() > 0; }
  bool operator==(const Slot&) const = default;
};

struct Instruction {
  Op op;
  MeshId on = kNoMesh;  // only the ranks of this mesh execute it; kNoMesh: all ranks
  int line = 0;         // line in the text from which it was parsed; == ignores it
  bool operator==(const Instruction& other) const { return on == other.on && op == other.op; }
};

// A kernel is stored as the fusion segment from which it is generated. A printed program therefore
// contains everything that is needed to run it.
struct Kernel {
  std::string name;  // without '@'
  Fusion segment;
};

struct Program {
  std::string name = "main";
  Meshes meshes;
  IdVector<KernelId, Kernel> kernels;
  IdVector<SlotId, Slot> slots;
  IdVector<TokenId, std::string> tokens;  // names without '$'
  IdVector<EventId, std::string> events;  // names without '!'
  std::vector<SlotId> inputs;
  std::vector<SlotId> outputs;
  std::vector<std::pair<std::string, int64_t>> size_defaults;
  std::vector<SizeGuard> guards;
  std::vector<Instruction> body;
  std::vector<Program> callees;  // for Call; they share no ids with this program

  std::optional<SlotId> findSlot(std::string_view name) const;
  size_t streams() const;  // 1 + the highest StreamId used
  // Returns for each stream whether it has collectives, sends or receives, but no launches and no
  // library calls.
  IdVector<StreamId, bool> communicationStreams() const;
};

// Returns whether two programs are equal. It ignores what the text form does not keep: the ids of
// tokens and events, other slots before inputs, and the order of callees.
bool sameProgram(const Program& a, const Program& b);

// The number of an instruction in messages, dumps and unrolled programs: its position in a walk of
// the body that counts a For or If before its bodies. It is equal on all ranks. Callees are not
// counted.
using InstructionIndex = int32_t;
int32_t countInstructions(const std::vector<Instruction>& body);

// --- derived from the field lists of instructions (host/program/instructions.h) ----------------

// How an instruction uses the memory of a tensor slot.
struct Access {
  SlotId slot;
  bool write;
  // The access lasts until a Wait on the token. In a collective with a root, only some ranks access
  // each buffer. The unrolled program determines these ranks.
  bool borrowed = false;
  bool operator==(const Access&) const = default;
};
// Returns the accesses of the instruction, without those of its bodies. Lifetimes, dependencies,
// race checks and timelines are all derived from this list.
std::vector<Access> accessesOf(const Op& op);
std::optional<StreamId> streamOf(const Op& op);    // nullopt: the instruction is for the host only
const Team* teamOf(const Op& op);                  // nullptr: no other rank takes part
std::optional<TokenId> postedToken(const Op& op);  // nullopt: the instruction posts no token
std::vector<Size> sizesOf(const Op& op);           // without those of bodies
std::string_view mnemonic(const Op& op);           // "allocate", "launch", ...
InstructionKind kindOf(const Op& op);

}  // namespace heddle::host
