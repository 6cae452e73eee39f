#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "comm/communicator.h"
#include "host/program/alias.h"
#include "host/program/ids.h"
#include "host/program/instruction_kind.h"
#include "ir/graph/fusion.h"

namespace heddle::host {

// The instructions of a host program (host/program/program.h). An instruction names registers of
// the program, called slots. docs/host_instructions.md describes grammar and meaning. Each struct
// ends with its mnemonic and its kind.

// Allocates stream-ordered memory for the slot, with the allocated sizes and the axis order of the
// slot (host/program/program.h).
struct Allocate {
  SlotId out;
  StreamId stream = kCallerStream;
  // The slot gets the memory of the first tensor in this list that is available. The first write to
  // the slot overwrites the value of this tensor. These tensors are available, if no earlier
  // Allocate has taken their memory:
  // - a tensor that the program allocated, if it begins at the first byte of its buffer
  // - an input that the run donates (RunOptions::donated), unless the slot is a preallocated output
  // If no tensor is available, the instruction allocates new memory. Inside an If that the run
  // decides (Predicate), it always allocates new memory.
  std::vector<SlotId> reuse = {};
  bool operator==(const Allocate&) const = default;
  static constexpr std::string_view kMnemonic = "allocate";
  static constexpr InstructionKind kKind = InstructionKind::Memory;
};

// Frees the buffer of the slot. No later instruction may access the buffer, through any slot.
struct Free {
  SlotId slot;
  StreamId stream = kCallerStream;
  bool operator==(const Free&) const = default;
  static constexpr std::string_view kMnemonic = "free";
  static constexpr InstructionKind kKind = InstructionKind::Memory;
};

// Computes a value on the host: a size expression, a literal, or an op on scalar slots.
struct Evaluate {
  struct Apply {
    const OpDef* op = nullptr;  // an op of the kind OpKind::Pointwise
    std::vector<SlotId> args;   // scalar slots
    bool operator==(const Apply&) const = default;
  };
  SlotId out;
  std::variant<Size, Scalar, Apply> expression;
  bool operator==(const Evaluate&) const = default;
  static constexpr std::string_view kMnemonic = "evaluate";
  static constexpr InstructionKind kKind = InstructionKind::View;
};

// Launches a kernel. The slots are in the order of the inputs and outputs of Kernel::segment. The
// plan of a run chooses grid, workspace and candidate (one of several ways to compute the kernel)
// for the sizes of the run. Exception: the program may name the candidate (Kernel::candidate). An
// output slot may also be an input if the kernel may work in place. If it may not, the run throws
// UserError before it starts.
struct LaunchKernel {
  KernelId kernel;
  std::vector<SlotId> inputs;
  std::vector<SlotId> outputs;
  StreamId stream = kCallerStream;
  bool operator==(const LaunchKernel&) const = default;
  static constexpr std::string_view kMnemonic = "launch";
  static constexpr InstructionKind kKind = InstructionKind::Work;
};

inline constexpr int32_t kMostCtas = 64;  // largest comm::Carrier::ctas and CallLibrary::spare_sms
inline constexpr int32_t kMostCopyChannels = 4;  // largest comm::Carrier::copy_channel

// Calls a library function: a matrix product, an attention, or a function of
// host/device/library_call.h, such as a cumulative sum.
struct CallLibrary {
  std::string function;  // the name of the op
  std::vector<SlotId> inputs;
  std::vector<SlotId> outputs;
  StreamId stream = kCallerStream;
  std::vector<std::pair<std::string, Attr>> attrs = {};  // in the order of OpDef::attrs
  // Only for matrix products: number of SMs that stay free for a concurrent collective.
  int32_t spare_sms = 0;
  bool operator==(const CallLibrary&) const = default;
  static constexpr std::string_view kMnemonic = "call_library";
  static constexpr InstructionKind kKind = InstructionKind::Work;
};

// Copies `in` to `out`. Both have the same dtype and, on each rank, the same local sizes. Their
// strides may differ.
struct Copy {
  SlotId out;
  SlotId in;
  StreamId stream = kCallerStream;
  bool operator==(const Copy&) const = default;
  static constexpr std::string_view kMnemonic = "copy";
  static constexpr InstructionKind kKind = InstructionKind::Work;
};

// Posts (starts) a collective. `token` represents it until it has completed.
// Counts:  the element counts include the padding of the allocations, except in an AllToAllV. All
//          ranks allocate equal sizes, so the counts are equal on all ranks.
// Buffers: before a Wait on the token, no instruction may write `in` or access `out`. This rule
//          also applies to the buffers in `also`. A slot that only the root needs may be undefined
//          on all ranks except the root.
// Order:   the elements that one rank contributes or gets must be contiguous in memory. A gathered
//          or scattered axis must therefore be outermost in memory. The same holds for the two axes
//          that an all-to-all splits and joins.
struct Communicate {
  comm::CollectiveKind kind;  // never Recv; Send: the root of a team of two sends to the other rank
  SlotId out;                 // kNoSlot for a Barrier
  SlotId in;
  Team team;
  std::optional<ReduceOp> reduce;
  StreamId stream = kCallerStream;
  TokenId token;
  // The rank of the root in the team. All ranks of the team must have the same root. nullopt: the
  // kind has no root.
  std::optional<Size> root = {};
  // Only in an AllToAllV: list slots with one count per rank of the team, filled by ReadBack.
  std::optional<SlotId> send_counts = {};
  std::optional<SlotId> recv_counts = {};
  // Selects SMs or copy engines for the collective, and limits the number of SMs.
  comm::Carrier carrier = {};
  // Further pairs of buffers, which the same collective transfers; only if mayGroup(kind). No pair
  // may write to memory that another pair uses.
  struct Pair {
    SlotId in;
    SlotId out;
    bool operator==(const Pair&) const = default;
  };
  std::vector<Pair> also = {};
  std::vector<Pair> pairs() const;  // (in, out) and then all of `also`; empty for a Barrier
  bool operator==(const Communicate&) const = default;
  static constexpr std::string_view kMnemonic = "communicate";
  static constexpr InstructionKind kKind = InstructionKind::Post;
};

// Returns whether one Communicate of this kind may have several pairs. The result is true for
// Allreduce, Reduce, Broadcast, Allgather, ReduceScatter and AllToAll.
bool mayGroup(comm::CollectiveKind kind);

// Send and Recv post a transfer to or from rank `peer` of the team. `peer` may contain size
// symbols, `rank`, `ranks`, mesh coordinates and loop indices. Outside of a group, each Send and
// each Recv has its own token. Inside a group, only GroupEnd has a token; it represents all
// transfers of the group.
struct Send {
  SlotId slot;
  Size peer;
  Team team;
  StreamId stream = kCallerStream;
  std::optional<TokenId> token;
  bool operator==(const Send&) const = default;
  static constexpr std::string_view kMnemonic = "send";
  static constexpr InstructionKind kKind = InstructionKind::Post;
};
struct Recv {
  SlotId slot;
  Size peer;
  Team team;
  StreamId stream = kCallerStream;
  std::optional<TokenId> token;
  bool operator==(const Recv&) const = default;
  static constexpr std::string_view kMnemonic = "recv";
  static constexpr InstructionKind kKind = InstructionKind::Post;
};
// Begins a group: the sends and receives up to GroupEnd are posted together. All of them must use
// the same stream and the same team.
struct GroupBegin {
  bool operator==(const GroupBegin&) const = default;
  static constexpr std::string_view kMnemonic = "group_begin";
  static constexpr InstructionKind kKind = InstructionKind::Group;
};
struct GroupEnd {
  TokenId token;
  bool operator==(const GroupEnd&) const = default;
  static constexpr std::string_view kMnemonic = "group_end";
  static constexpr InstructionKind kKind = InstructionKind::Group;
};

// Makes the stream wait until the operation of the token has completed. The host does not wait. If
// several posts define the token, Wait waits for the latest of them. Before the first post, Wait
// does nothing.
struct Wait {
  TokenId token;
  StreamId stream = kCallerStream;
  bool operator==(const Wait&) const = default;
  static constexpr std::string_view kMnemonic = "wait";
  static constexpr InstructionKind kKind = InstructionKind::Order;
};

// RecordEvent records the event on its stream. WaitEvent makes its stream wait until the latest
// record of the event has happened. Without a record, WaitEvent does nothing.
struct RecordEvent {
  EventId event;
  StreamId stream = kCallerStream;
  bool operator==(const RecordEvent&) const = default;
  static constexpr std::string_view kMnemonic = "record_event";
  static constexpr InstructionKind kKind = InstructionKind::Order;
};
struct WaitEvent {
  EventId event;
  StreamId stream = kCallerStream;
  bool operator==(const WaitEvent&) const = default;
  static constexpr std::string_view kMnemonic = "wait_event";
  static constexpr InstructionKind kKind = InstructionKind::Order;
};

// Copies a tensor to the host: one element into a scalar slot, or an i64 tensor without gaps into a
// list slot of equal length. ReadBack is the only instruction on which the host waits.
struct ReadBack {
  SlotId out;
  SlotId in;
  StreamId stream = kCallerStream;
  bool operator==(const ReadBack&) const = default;
  static constexpr std::string_view kMnemonic = "read_back";
  static constexpr InstructionKind kKind = InstructionKind::Work;
};

struct Instruction;

// Runs the body for each index from `start` to `stop - 1`. The bounds depend only on sizes, on the
// rank and on indices of outer loops. They are therefore known when a plan is prepared.
struct For {
  std::string index;
  Size start;
  Size stop;
  std::vector<Instruction> body;
  bool operator==(const For&) const = default;
  static constexpr std::string_view kMnemonic = "for";
  static constexpr InstructionKind kKind = InstructionKind::Control;
};

// The condition of an If. If `lhs` is a size expression, the condition is decided when a plan is
// prepared. If `lhs` is a scalar slot (i64 or bool), the run decides the condition.
struct Predicate {
  enum class Compare : uint8_t { Eq, Ne, Lt, Le, Gt, Ge };
  std::variant<Size, SlotId> lhs;
  Compare compare;
  Size rhs;
  bool operator==(const Predicate&) const = default;
};
struct If {
  Predicate predicate;
  std::vector<Instruction> then_body;
  std::vector<Instruction> else_body;
  bool operator==(const If&) const = default;
  static constexpr std::string_view kMnemonic = "if";
  static constexpr InstructionKind kKind = InstructionKind::Control;
};

// Runs program `program` of Program::callees on `inputs`. The results define the slots `outputs`.
struct Call {
  std::string program;
  std::vector<SlotId> inputs;
  std::vector<SlotId> outputs;
  bool operator==(const Call&) const = default;
  static constexpr std::string_view kMnemonic = "call";
  static constexpr InstructionKind kKind = InstructionKind::Call;
};

// A Check makes the run fail if a value is NaN or infinite. A Print prints the name of the slot,
// and its value or the first elements of its tensor.
struct Check {
  SlotId slot;
  StreamId stream = kCallerStream;
  bool operator==(const Check&) const = default;
  static constexpr std::string_view kMnemonic = "check";
  static constexpr InstructionKind kKind = InstructionKind::Work;
};
struct Print {
  SlotId slot;
  StreamId stream = kCallerStream;
  bool operator==(const Print&) const = default;
  static constexpr std::string_view kMnemonic = "print";
  static constexpr InstructionKind kKind = InstructionKind::Work;
};

using Op = std::variant<Allocate, Free, Alias, Evaluate, LaunchKernel, CallLibrary, Copy,
                        Communicate, Send, Recv, GroupBegin, GroupEnd, Wait, RecordEvent, WaitEvent,
                        ReadBack, For, If, Call, Check, Print>;

}  // namespace heddle::host
