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

// The host program: what every rank does, as plain data. One global program for all ranks; each
// rank projects it at prepare. It holds no pointer, prints and parses (host/text/program_text.h),
// and never changes while it runs. Grammar and meaning of each instruction:
// docs/host_instructions.md.

// A register. A tensor slot names a buffer (or a view of one) of the tensor's type; a scalar slot
// holds a host value, or a list of them (an axis of i64), which only ReadBack fills. A slot may be
// redefined by a later Allocate, Alias, Evaluate or ReadBack.
struct Slot {
  std::string name;  // without '%'
  bool is_scalar = false;
  TensorView tensor;        // unsharded logical sizes, layout, sharding
  std::vector<Size> alloc;  // local allocated sizes, per axis, equal on all ranks; empty: those of
                            // the sharding's blocks (ceil sizes)
  std::optional<Scalar> default_value;  // scalar inputs
  bool isList() const { return is_scalar && tensor.rank() > 0; }
  bool operator==(const Slot&) const = default;
};

struct Instruction {
  Op op;
  MeshId on;     // only the ranks of this mesh; kNoMesh: all
  int line = 0;  // of the text it came from; does not count in ==
  bool operator==(const Instruction& other) const { return on == other.on && op == other.op; }
};

// A generated kernel travels as the fusion segment it came from, so a program file runs by itself.
struct Kernel {
  std::string name;  // without '@'
  Fusion segment;
};

struct Program {
  std::string name = "main";
  Meshes meshes;
  std::vector<Kernel> kernels;
  std::vector<Slot> slots;
  std::vector<std::string> tokens;  // names without '$'
  std::vector<std::string> events;  // names without '!'
  std::vector<SlotId> inputs;
  std::vector<SlotId> outputs;
  std::vector<std::pair<std::string, int64_t>> size_defaults;
  std::vector<SizeGuard> guards;
  std::vector<Instruction> body;
  std::vector<Program> callees;  // for Call; share nothing with this one

  std::optional<SlotId> findSlot(std::string_view name) const;
  int streams() const;  // 1 + the highest StreamId used
  // By stream: on it are collectives, sends or receives, and nothing that computes.
  std::vector<bool> communicationStreams() const;
};

bool sameProgram(const Program& a, const Program& b);

// The number of an instruction in diagnostics, dumps and unrolled programs: its position in a walk
// of the body that counts a For or If before its body. Equal on all ranks. Callees are not counted.
using InstructionIndex = int32_t;
int32_t countInstructions(const std::vector<Instruction>& body);

// --- derived from the field lists of instructions (host/program/instructions.h) ----------------

// How an instruction uses the memory of a tensor slot.
struct Access {
  SlotId slot;
  bool write;
  // The access lasts until the Wait on the token. It covers the whole buffer. Of a rooted
  // collective, the unrolled program says which ranks access it.
  bool borrowed = false;
  bool operator==(const Access&) const = default;
};
// An instruction with bodies has none of its own. Lifetimes, dependencies, race checks and
// timelines all derive from this list.
std::vector<Access> accessesOf(const Op& op);
std::optional<StreamId> streamOf(const Op& op);    // nullopt: the instruction is for the host only
const Team* teamOf(const Op& op);                  // nullptr: no other rank takes part
std::optional<TokenId> postedToken(const Op& op);  // nullopt: the instruction posts no token
std::vector<Size> sizesOf(const Op& op);           // without those of bodies
std::string_view mnemonic(const Op& op);           // "allocate", "launch", ...
InstructionKind kindOf(const Op& op);

}  // namespace heddle::host
