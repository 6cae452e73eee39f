#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "host/program/instructions.h"
#include "ir/graph/fusion.h"

namespace heddle::host {

// A host program is a list of instructions that all ranks of a job execute: kernel launches,
// library calls, collectives, waits, loops and branches. It is plain data, without pointers into
// itself, and never changes while it runs. host/text/program_text.h prints and parses it. Before a
// run, each rank unrolls the program: it expands loops and resolves views for its rank and its
// sizes. docs/host_instructions.md describes each instruction.

// A slot is a register of the program. There are three kinds of slots:
//   A tensor slot names a buffer or a view of a buffer.
//   A scalar slot holds a number on the host.
//   A list slot holds a list of i64 values on the host. Slot::is_scalar is true for list slots too.
//     Only ReadBack fills a list slot.
// A later Allocate, Alias, Evaluate, ReadBack or Call may redefine a slot.
struct Slot {
  std::string name;  // without '%'
  bool is_scalar = false;
  TensorView tensor;  // unsharded logical sizes, layout, sharding
  // Allocated size of each axis on one rank, equal on all ranks. If the list is empty, the
  // allocated size of each axis is the size of the largest block that the sharding assigns to a
  // rank.
  std::vector<Size> alloc;
  std::optional<Scalar> default_value;  // default of a scalar input; nullopt: no default
  bool isList() const { return is_scalar && tensor.rank() > 0; }
  bool operator==(const Slot&) const = default;
};

struct Instruction {
  Op op;
  MeshId on = kNoMesh;  // only the ranks of this mesh execute it; kNoMesh: all ranks
  int line = 0;         // line in the parsed text; operator== ignores it
  bool operator==(const Instruction& other) const;
};

// A kernel of the program. Its segment is the part of a fusion (ir/graph/fusion.h) from which the
// code of the kernel is generated. The text of a program contains the segments, so a parsed program
// can run without its fusion.
struct Kernel {
  std::string name;  // without '@'
  Fusion segment;
  // The candidate that the plan must use (docs/kernels.md): its index, or parameters such as "loops
  // unroll=2". A candidate is one of several ways to compute the kernel. Empty: the tuned candidate
  // for the sizes of the run (docs/tuning.md), or the first one if none is tuned.
  std::string candidate = {};
};

// Says that an output of the program is stored in the memory of an input, as in `-> (%w1 in %w)`.
// At the end of the program, the slot of the output must name the complete memory of the input,
// with the sizes and strides of the caller's tensor.
struct ReusedInput {
  SlotId input;
  // A program usually computes such an output in another buffer and copies it into the input at the
  // end. true (`in!`): the pass write_in_place must remove this copy. If it cannot, it throws
  // UserError with the reason.
  bool required = false;
  bool operator==(const ReusedInput&) const = default;
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
  // Key: the index of an output in `outputs`. Value: the input in whose memory the output is
  // stored. No entry: the output has memory of its own, or is a view.
  std::map<size_t, ReusedInput> reuses;
  std::vector<std::pair<std::string, int64_t>> size_defaults;  // (symbol, default value)
  std::vector<SizeGuard> guards;  // conditions on sizes, which every run checks
  std::vector<Instruction> body;
  // The programs that the Call instructions of `body` name. Each of them has its own lists of
  // slots, kernels and so on, to which its ids refer.
  std::vector<Program> callees;

  std::optional<SlotId> findSlot(std::string_view name) const;
  size_t streams() const;  // 1 + the highest StreamId in use
  // Returns for each stream whether it has collectives, sends or receives, but no launches and no
  // library calls.
  IdVector<StreamId, bool> communicationStreams() const;
};

// Returns the symbols such as `%n` (ir/base/size.h) that occur in sizes of slots, instructions,
// guards and kernels. The symbol `%n` stands for the value of the input %n. Does not visit callees.
std::set<std::string> scalarSymbolsOf(const Program& program);

// Returns whether two programs are equal. Ignores the line numbers of instructions. Also ignores
// three differences that are lost when a program is printed and parsed: the ids of tokens and
// events, the positions of the inputs among the slots, and the order of the callees. sameGraph()
// (ir/graph/fusion.h) compares the segments of kernels, and ignores annotations and guards.
bool sameProgram(const Program& a, const Program& b);

// The number of an instruction in messages, dumps and unrolled programs. Instructions are numbered
// from 0 in the order of the text. A For or If comes before the instructions of its bodies. The
// number is equal on all ranks. Instructions of callees have no number.
using InstructionIndex = int32_t;
int32_t countInstructions(const std::vector<Instruction>& body);

// --- the slots and streams of instructions ------------------------------------------------------

// A read or write of the memory of a tensor slot by an instruction. An Allocate and a Free count
// as writes. A scalar slot that a LaunchKernel or a Print reads has an Access too. In a collective
// with a root, only some ranks access each slot. accessesOf() returns the accesses of all ranks;
// the unrolled program of a rank contains only the accesses of this rank.
struct Access {
  SlotId slot;
  bool write;  // false: a read
  // true: the access lasts until a Wait on the token of the instruction. Send and Recv in a group
  // have the token of the GroupEnd.
  bool borrowed = false;
  bool operator==(const Access&) const = default;
};
// Returns the accesses of the instruction, without those of its bodies. Lifetimes, dependencies,
// race checks and timelines are all derived from this list.
std::vector<Access> accessesOf(const Op& op);
std::optional<StreamId> streamOf(const Op& op);    // nullopt: the instruction has no stream
const Team* teamOf(const Op& op);                  // nullptr: the instruction has no team
std::optional<TokenId> postedToken(const Op& op);  // nullopt: the instruction defines no token
std::vector<Size> sizesOf(const Op& op);           // without the sizes in bodies
std::string_view mnemonic(const Op& op);           // "allocate", "launch", ...
InstructionKind kindOf(const Op& op);

}  // namespace heddle::host
