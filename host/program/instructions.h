#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "comm/communicator.h"
#include "host/program/fields.h"
#include "host/program/ids.h"
#include "ir/graph/fusion.h"

namespace heddle::host {

// The instructions of a host program (host/program/program.h). docs/host_instructions.md describes
// their grammar and meaning. Each struct ends with its mnemonic, its kind and the list of its
// fields in the order of the text form.

// The kind of an instruction, for passes that treat several instructions alike.
enum class InstructionKind : uint8_t {
  Memory,   // allocates or frees a buffer
  View,     // changes what a slot names, on the host; accesses no tensor's memory
  Work,     // reads or writes tensors on a stream
  Post,     // posts an operation in which other ranks take part
  Group,    // begins or ends a group of posts
  Order,    // orders streams
  Control,  // has bodies
  Call      // runs another program; inlineCalls() removes it
};

// Allocates stream-ordered memory for the slot, in the size and allocation order of its type.
struct Allocate {
  SlotId out;
  StreamId stream = kCallerStream;
  bool operator==(const Allocate&) const = default;
  static constexpr std::string_view kMnemonic = "allocate";
  static constexpr InstructionKind kKind = InstructionKind::Memory;
  static constexpr auto fields() {
    return std::tuple(field::slot(&Allocate::out, kAllocated), field::stream(&Allocate::stream));
  }
};

// Frees the buffer of the slot. No later instruction may access it, through any alias.
struct Free {
  SlotId slot;
  StreamId stream = kCallerStream;
  bool operator==(const Free&) const = default;
  static constexpr std::string_view kMnemonic = "free";
  static constexpr InstructionKind kKind = InstructionKind::Memory;
  static constexpr auto fields() {
    return std::tuple(field::slot(&Free::slot, kWritten), field::stream(&Free::stream));
  }
};

// Makes `out` a view of the buffer of `in`, without a copy. The type of `out` gives the new sizes.
struct Alias {
  struct Same {
    bool operator==(const Same&) const = default;
  };  // same sizes: another name
  struct Reshape {
    bool operator==(const Reshape&) const = default;
  };  // row-major regrouping; the strides of `in` must allow the view
  struct Permute {
    std::vector<int64_t> axes;
    bool operator==(const Permute&) const = default;
  };
  struct Slice {
    std::vector<Size> starts;
    std::vector<Size> stops;
    std::vector<int64_t> steps = {};  // > 0 per axis; empty: 1 everywhere
    bool operator==(const Slice&) const = default;
  };
  struct Index {
    Size index;
    bool operator==(const Index&) const = default;
  };  // %in[i % 2]: axis 0
  struct Shard {
    bool operator==(const Shard&) const = default;
  };  // this rank's block of `in`, by the sharding of `out`
  struct Unpad {
    bool operator==(const Unpad&) const = default;
  };  // the valid part of a padded buffer (alloc sizes of `in`)
  using View = std::variant<Same, Reshape, Permute, Slice, Index, Shard, Unpad>;
  SlotId out;
  SlotId in;
  View view;
  bool operator==(const Alias&) const = default;
  static constexpr std::string_view kMnemonic = "alias";
  static constexpr InstructionKind kKind = InstructionKind::View;
  static constexpr auto fields() {
    return std::tuple(field::slot(&Alias::out, kDefined), field::slot(&Alias::in),
                      field::size(&Alias::view));
  }
};

// Computes a host value: a size or index expression, a literal, or a scalar op on scalar slots.
struct Evaluate {
  struct Apply {
    const OpDef* op = nullptr;  // Pointwise
    std::vector<SlotId> args;   // scalar slots
    bool operator==(const Apply&) const = default;
  };
  SlotId out;
  std::variant<Size, Scalar, Apply> expression;
  bool operator==(const Evaluate&) const = default;
  static constexpr std::string_view kMnemonic = "evaluate";
  static constexpr InstructionKind kKind = InstructionKind::View;
  static constexpr auto fields() {
    return std::tuple(field::slot(&Evaluate::out, kDefined), field::operand(&Evaluate::expression));
  }
};

// Launches a kernel on slots in the order of its segment's inputs and outputs. When a plan is
// prepared, the kernel's variant, grid and workspace are chosen for the sizes of the run. An output
// slot may be one of the inputs (in place, element by element).
struct LaunchKernel {
  KernelId kernel;
  std::vector<SlotId> inputs;
  std::vector<SlotId> outputs;
  StreamId stream = kCallerStream;
  bool operator==(const LaunchKernel&) const = default;
  static constexpr std::string_view kMnemonic = "launch";
  static constexpr InstructionKind kKind = InstructionKind::Work;
  static constexpr auto fields() {
    return std::tuple(
        field::kernel(&LaunchKernel::kernel), field::slot(&LaunchKernel::inputs, kRead),
        field::slot(&LaunchKernel::outputs, kWritten), field::stream(&LaunchKernel::stream));
  }
};

inline constexpr int32_t kMostCtas = 64;         // most thread blocks of a collective
inline constexpr int32_t kMostCopyChannels = 4;  // each needs its own memory on every GPU

// Calls a library function for an op for which no kernel is generated (host/program/library_op.h).
struct CallLibrary {
  std::string function;  // the name of the op
  std::vector<SlotId> inputs;
  std::vector<SlotId> outputs;
  StreamId stream = kCallerStream;
  std::vector<std::pair<std::string, Attr>> attrs = {};  // in the order of OpDef::attrs
  // Number of SMs that a matrix product leaves to a concurrent collective (Communicate::carrier).
  int32_t spare_sms = 0;
  bool operator==(const CallLibrary&) const = default;
  static constexpr std::string_view kMnemonic = "call_library";
  static constexpr InstructionKind kKind = InstructionKind::Work;
  static constexpr auto fields() {
    return std::tuple(
        field::setting(&CallLibrary::function), field::slot(&CallLibrary::inputs, kRead),
        field::slot(&CallLibrary::outputs, kWritten), field::size(&CallLibrary::attrs),
        field::setting(&CallLibrary::spare_sms), field::stream(&CallLibrary::stream));
  }
};

// Copies `in` to `out`. The two have equal dtypes and local sizes; their strides may differ.
struct Copy {
  SlotId out;
  SlotId in;
  StreamId stream = kCallerStream;
  bool operator==(const Copy&) const = default;
  static constexpr std::string_view kMnemonic = "copy";
  static constexpr InstructionKind kKind = InstructionKind::Work;
  static constexpr auto fields() {
    return std::tuple(field::slot(&Copy::in, kRead), field::slot(&Copy::out, kWritten),
                      field::stream(&Copy::stream));
  }
};

// Posts a collective.
// Counts: from the full allocations (alloc sizes), so that they are equal on all ranks.
// Buffers: borrowed until a Wait on the token. A rank does not access a buffer that only the root
//          needs, and the slot may name nothing there.
// Order:   memory is moved without reordering. Therefore the axis along which ranks are gathered or
//          scattered must be outermost in memory on both sides. In an all-to-all, the axis that is
//          split must be outermost in the memory of `in`, and the joined axis in that of `out`.
struct Communicate {
  comm::CollectiveKind kind;  // not Recv. Send: from the root to the other rank of a team of two
  SlotId out;                 // Barrier: kNoSlot, like `in`
  SlotId in;
  Team team;
  std::optional<ReduceOp> reduce;
  StreamId stream = kCallerStream;
  TokenId token;
  std::optional<Size> root = {};  // a rank in the team, equal on all of its ranks
  // AllToAllV: lists with one element per rank of the team. The host needs them when it posts.
  std::optional<SlotId> send_counts = {};
  std::optional<SlotId> recv_counts = {};
  // The engines of a GPU that carry out the collective, and how many SMs it may use.
  comm::Carrier carrier = {};
  // More pairs for the same kind, posted with the first as one group with one token. No pair writes
  // to memory of another one. Only for kinds that mayGroup().
  struct Pair {
    SlotId in;
    SlotId out;
    bool operator==(const Pair&) const = default;
  };
  std::vector<Pair> also = {};
  std::vector<Pair> pairs() const;  // (in, out), then `also`; empty for a Barrier
  bool operator==(const Communicate&) const = default;
  static constexpr std::string_view kMnemonic = "communicate";
  static constexpr InstructionKind kKind = InstructionKind::Post;
  static constexpr auto fields() {
    return std::tuple(field::token(&Communicate::token, kDefined),
                      field::setting(&Communicate::kind), field::slot(&Communicate::in, kSent),
                      field::slot(&Communicate::out, kReceived), field::slot(&Communicate::also),
                      field::team(&Communicate::team), field::setting(&Communicate::reduce),
                      field::size(&Communicate::root), field::slot(&Communicate::send_counts),
                      field::slot(&Communicate::recv_counts), field::setting(&Communicate::carrier),
                      field::stream(&Communicate::stream));
  }
};

// Returns whether one Communicate may have several pairs: Allreduce, Reduce, Broadcast, Allgather,
// ReduceScatter and AllToAll.
bool mayGroup(comm::CollectiveKind kind);

// Send and Recv post a transfer between this rank and a peer, which is given as a rank in the team.
// The peer is an expression of `rank`, `ranks`, mesh indices and loop indices. Outside of a group,
// each of them has its own token. Inside a group, the token of GroupEnd covers all of them.
struct Send {
  SlotId slot;
  Size peer;
  Team team;
  StreamId stream = kCallerStream;
  std::optional<TokenId> token;
  bool operator==(const Send&) const = default;
  static constexpr std::string_view kMnemonic = "send";
  static constexpr InstructionKind kKind = InstructionKind::Post;
  static constexpr auto fields() {
    return std::tuple(field::token(&Send::token, kDefined), field::slot(&Send::slot, kSent),
                      field::size(&Send::peer), field::team(&Send::team),
                      field::stream(&Send::stream));
  }
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
  static constexpr auto fields() {
    return std::tuple(field::token(&Recv::token, kDefined), field::slot(&Recv::slot, kReceived),
                      field::size(&Recv::peer), field::team(&Recv::team),
                      field::stream(&Recv::stream));
  }
};
// Sends and receives between GroupBegin and GroupEnd are posted together, on one stream and team.
struct GroupBegin {
  bool operator==(const GroupBegin&) const = default;
  static constexpr std::string_view kMnemonic = "group_begin";
  static constexpr InstructionKind kKind = InstructionKind::Group;
  static constexpr auto fields() { return std::tuple(); }
};
struct GroupEnd {
  TokenId token;
  bool operator==(const GroupEnd&) const = default;
  static constexpr std::string_view kMnemonic = "group_end";
  static constexpr InstructionKind kKind = InstructionKind::Group;
  static constexpr auto fields() { return std::tuple(field::token(&GroupEnd::token, kDefined)); }
};

// Makes the stream (never the host) wait until the operation of the token has completed. If several
// posts define the token, the latest one counts. Before the first one, a Wait does nothing.
struct Wait {
  TokenId token;
  StreamId stream = kCallerStream;
  bool operator==(const Wait&) const = default;
  static constexpr std::string_view kMnemonic = "wait";
  static constexpr InstructionKind kKind = InstructionKind::Order;
  static constexpr auto fields() {
    return std::tuple(field::token(&Wait::token), field::stream(&Wait::stream));
  }
};

// RecordEvent records the event on a stream. WaitEvent makes its stream wait for the latest record
// of the event. If there is no record yet, WaitEvent does nothing.
struct RecordEvent {
  EventId event;
  StreamId stream = kCallerStream;
  bool operator==(const RecordEvent&) const = default;
  static constexpr std::string_view kMnemonic = "record_event";
  static constexpr InstructionKind kKind = InstructionKind::Order;
  static constexpr auto fields() {
    return std::tuple(field::event(&RecordEvent::event, kDefined),
                      field::stream(&RecordEvent::stream));
  }
};
struct WaitEvent {
  EventId event;
  StreamId stream = kCallerStream;
  bool operator==(const WaitEvent&) const = default;
  static constexpr std::string_view kMnemonic = "wait_event";
  static constexpr InstructionKind kKind = InstructionKind::Order;
  static constexpr auto fields() {
    return std::tuple(field::event(&WaitEvent::event), field::stream(&WaitEvent::stream));
  }
};

// Reads a tensor of one element into a scalar slot, or an i64 tensor without gaps into a list of
// equal length. It is the only instruction on which the host waits.
struct ReadBack {
  SlotId out;
  SlotId in;
  StreamId stream = kCallerStream;
  bool operator==(const ReadBack&) const = default;
  static constexpr std::string_view kMnemonic = "read_back";
  static constexpr InstructionKind kKind = InstructionKind::Work;
  static constexpr auto fields() {
    return std::tuple(field::slot(&ReadBack::out, kDefined), field::slot(&ReadBack::in, kRead),
                      field::stream(&ReadBack::stream));
  }
};

struct Instruction;

// Runs the body for each index from `start` to `stop - 1`. The bounds depend only on sizes, the
// rank and indices of outer loops, so that they are known when a plan is prepared.
struct For {
  std::string index;
  Size start;
  Size stop;
  std::vector<Instruction> body;
  bool operator==(const For&) const = default;
  static constexpr std::string_view kMnemonic = "for";
  static constexpr InstructionKind kKind = InstructionKind::Control;
  static constexpr auto fields() {
    return std::tuple(field::loopIndex(&For::index), field::size(&For::start),
                      field::size(&For::stop), field::body(&For::body));
  }
};

// Compares two size expressions, or a scalar slot (i64 or bool) with a size expression. The first
// kind is decided when a plan is prepared, the second kind in the run.
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
  static constexpr auto fields() {
    return std::tuple(field::operand(&If::predicate), field::body(&If::then_body),
                      field::body(&If::else_body));
  }
};

// Runs another program of the same file. `inputs` are its inputs, and `outputs` name its outputs.
struct Call {
  std::string program;
  std::vector<SlotId> inputs;
  std::vector<SlotId> outputs;
  bool operator==(const Call&) const = default;
  static constexpr std::string_view kMnemonic = "call";
  static constexpr InstructionKind kKind = InstructionKind::Call;
  static constexpr auto fields() {
    return std::tuple(field::setting(&Call::program), field::slot(&Call::outputs, kDefined),
                      field::slot(&Call::inputs));
  }
};

// For debugging: Check fails the run on NaN or inf. Print prints name, sizes and first values.
struct Check {
  SlotId slot;
  StreamId stream = kCallerStream;
  bool operator==(const Check&) const = default;
  static constexpr std::string_view kMnemonic = "check";
  static constexpr InstructionKind kKind = InstructionKind::Work;
  static constexpr auto fields() {
    return std::tuple(field::slot(&Check::slot, kRead), field::stream(&Check::stream));
  }
};
struct Print {
  SlotId slot;
  StreamId stream = kCallerStream;
  bool operator==(const Print&) const = default;
  static constexpr std::string_view kMnemonic = "print";
  static constexpr InstructionKind kKind = InstructionKind::Work;
  static constexpr auto fields() {
    return std::tuple(field::slot(&Print::slot, kRead), field::stream(&Print::stream));
  }
};

using Op = std::variant<Allocate, Free, Alias, Evaluate, LaunchKernel, CallLibrary, Copy,
                        Communicate, Send, Recv, GroupBegin, GroupEnd, Wait, RecordEvent, WaitEvent,
                        ReadBack, For, If, Call, Check, Print>;

}  // namespace heddle::host
