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

// The instructions of a host program (host/program/program.h). Their grammar and meaning:
// docs/host_instructions.md. Each struct ends with its mnemonic, its kind and the list of its
// fields in the order of the text form.

// What an instruction is to passes that treat several instructions alike.
enum class InstructionKind : uint8_t {
  Memory,   // allocates or frees a buffer
  View,     // gives a slot another meaning on the host; touches no tensor's memory
  Work,     // reads or writes tensors on a stream
  Post,     // posts an operation in which other ranks take part
  Group,    // begins or ends a group of posts
  Order,    // orders streams
  Control,  // has bodies
  Call      // runs another program; inlineCalls() removes it
};

// Stream-ordered memory for the slot, in its type's size and allocation order.
struct Allocate {
  SlotId out;
  StreamId stream = 0;
  bool operator==(const Allocate&) const = default;
  static constexpr std::string_view kMnemonic = "allocate";
  static constexpr InstructionKind kKind = InstructionKind::Memory;
  static constexpr auto fields() {
    return std::tuple(field::slot(&Allocate::out, kAllocated), field::stream(&Allocate::stream));
  }
};

// No later instruction touches the buffer of the slot, through any alias.
struct Free {
  SlotId slot;
  StreamId stream = 0;
  bool operator==(const Free&) const = default;
  static constexpr std::string_view kMnemonic = "free";
  static constexpr InstructionKind kKind = InstructionKind::Memory;
  static constexpr auto fields() {
    return std::tuple(field::slot(&Free::slot, kWritten), field::stream(&Free::stream));
  }
};

// `out` views the buffer of `in`; moves no data. The out slot's type gives the new sizes.
struct Alias {
  struct Same {
    bool operator==(const Same&) const = default;
  };  // same sizes: another name
  struct Reshape {
    bool operator==(const Reshape&) const = default;
  };  // row-major regrouping; the
      // strides of `in` must allow a view
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
  };  // this rank's block of `in`, as
      // the sharding of `out` says
  struct Unpad {
    bool operator==(const Unpad&) const = default;
  };  // the valid part of a padded
      // buffer (alloc sizes of `in`)
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

// A host value: a size or index expression, a literal, or a scalar op on scalar slots.
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

// A kernel family on argument slots, in the order of its segment's inputs and outputs. Candidate,
// grid and workspace are chosen at prepare from the extents of the run. An output slot may be one
// of the inputs (in place, element by element).
struct LaunchKernel {
  KernelId kernel;
  std::vector<SlotId> inputs;
  std::vector<SlotId> outputs;
  StreamId stream = 0;
  bool operator==(const LaunchKernel&) const = default;
  static constexpr std::string_view kMnemonic = "launch";
  static constexpr InstructionKind kKind = InstructionKind::Work;
  static constexpr auto fields() {
    return std::tuple(
        field::kernel(&LaunchKernel::kernel), field::slot(&LaunchKernel::inputs, kRead),
        field::slot(&LaunchKernel::outputs, kWritten), field::stream(&LaunchKernel::stream));
  }
};

// What a library does better: an op that no kernel is generated for, with the attributes that it
// has in a fusion (host/program/library_op.h).
inline constexpr int32_t kMostCtas = 64;         // no transport takes more for one collective
inline constexpr int32_t kMostCopyChannels = 4;  // each has memory of its own on every GPU

struct CallLibrary {
  std::string function;  // the name of the op
  std::vector<SlotId> inputs;
  std::vector<SlotId> outputs;
  StreamId stream = 0;
  std::vector<std::pair<std::string, Attr>> attrs = {};  // in the order of OpDef::attrs
  // Of a GPU, that a product leaves to a collective beside it (Communicate::carrier).
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

// `out` = `in`, same local sizes, any strides on either side when both are dense in the same order.
struct Copy {
  SlotId out;
  SlotId in;
  StreamId stream = 0;
  bool operator==(const Copy&) const = default;
  static constexpr std::string_view kMnemonic = "copy";
  static constexpr InstructionKind kKind = InstructionKind::Work;
  static constexpr auto fields() {
    return std::tuple(field::slot(&Copy::in, kRead), field::slot(&Copy::out, kWritten),
                      field::stream(&Copy::stream));
  }
};

// Posts a collective on whole allocations (alloc sizes, so counts are equal on all ranks). The
// buffers are borrowed until a Wait on the token. It moves memory as it lies: the axis along which
// ranks are gathered or scattered must be outermost in memory on both sides; of an all-to-all the
// axis that is split outermost in that of `in`, the one that is joined in that of `out`. A buffer
// that only the root has is not looked at elsewhere, and its slot may name nothing there.
struct Communicate {
  comm::CollectiveKind kind;  // any but Recv; Send: the root's to the other of a team of two
  SlotId out;                 // Barrier: kNoSlot, like `in`
  SlotId in;
  Team team;
  std::optional<ReduceOp> reduce;
  StreamId stream = 0;
  TokenId token;
  std::optional<Size> root = {};  // a rank within the team, the same on all of its ranks
  // AllToAllV: lists of as many elements as the team has ranks, which the host has when it posts.
  std::optional<SlotId> send_counts = {};
  std::optional<SlotId> recv_counts = {};
  // What moves it, and what of a GPU that takes.
  comm::Carrier carrier = {};
  // More of the same kind, posted with the first as one group under the one token; no two of them
  // share memory that either writes. Only of a kind that mayGroup().
  struct Pair {
    SlotId in;
    SlotId out;
    bool operator==(const Pair&) const = default;
  };
  std::vector<Pair> also = {};
  std::vector<Pair> pairs() const;  // all of them, the first before the others
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

// Allreduce, Reduce, Broadcast, Allgather, ReduceScatter, AllToAll: which several pairs may share.
bool mayGroup(comm::CollectiveKind kind);

// Point to point with a peer of the team, given by an expression of `rank`, `ranks`, mesh indices
// and loop indices (a rank within the team). Outside a group the token is the operation's own;
// inside a group it must be absent and GroupEnd's token covers all.
struct Send {
  SlotId slot;
  Size peer;
  Team team;
  StreamId stream = 0;
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
  StreamId stream = 0;
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
// Sends and receives between the two are posted together. All on the stream and team of the group.
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

// The stream (never the host) waits until the posted operation of the token is done. A token
// starts done; the latest post of it counts.
struct Wait {
  TokenId token;
  StreamId stream = 0;
  bool operator==(const Wait&) const = default;
  static constexpr std::string_view kMnemonic = "wait";
  static constexpr InstructionKind kKind = InstructionKind::Order;
  static constexpr auto fields() {
    return std::tuple(field::token(&Wait::token), field::stream(&Wait::stream));
  }
};

struct RecordEvent {
  EventId event;
  StreamId stream = 0;
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
  StreamId stream = 0;
  bool operator==(const WaitEvent&) const = default;
  static constexpr std::string_view kMnemonic = "wait_event";
  static constexpr InstructionKind kKind = InstructionKind::Order;
  static constexpr auto fields() {
    return std::tuple(field::event(&WaitEvent::event), field::stream(&WaitEvent::stream));
  }
};

// A 0-d or one-element device tensor to a scalar slot, or an i64 tensor without gaps to a list of
// as many: the only instruction on which the host waits.
struct ReadBack {
  SlotId out;
  SlotId in;
  StreamId stream = 0;
  bool operator==(const ReadBack&) const = default;
  static constexpr std::string_view kMnemonic = "read_back";
  static constexpr InstructionKind kKind = InstructionKind::Work;
  static constexpr auto fields() {
    return std::tuple(field::slot(&ReadBack::out, kDefined), field::slot(&ReadBack::in, kRead),
                      field::stream(&ReadBack::stream));
  }
};

struct Instruction;

// for INDEX in start .. stop (stop excluded). Bounds are known at prepare: sizes, rank, indices of
// outer loops.
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

// Both sides are size expressions, or a scalar slot (an i64 or bool) on the left.
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

// Runs another program of the same file with these slots as its inputs; its outputs land in
// `outputs`.
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

// Debug: fails the run when the slot holds NaN or inf / prints name, sizes and first values.
struct Check {
  SlotId slot;
  StreamId stream = 0;
  bool operator==(const Check&) const = default;
  static constexpr std::string_view kMnemonic = "check";
  static constexpr InstructionKind kKind = InstructionKind::Work;
  static constexpr auto fields() {
    return std::tuple(field::slot(&Check::slot, kRead), field::stream(&Check::stream));
  }
};
struct Print {
  SlotId slot;
  StreamId stream = 0;
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
