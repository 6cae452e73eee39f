#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "comm/communicator.h"
#include "ir/graph/fusion.h"

namespace heddle::host {

// The host program: what every rank does, as plain data. One global program for all ranks; each
// rank projects it at prepare. It holds no pointer, prints and parses (host/text/program_text.h),
// and never changes while it runs. Grammar and meaning of each instruction:
// docs/host_instructions.md.

using SlotId = int32_t;    // index into Program::slots
using TokenId = int32_t;   // index into Program::tokens
using EventId = int32_t;   // index into Program::events
using KernelId = int32_t;  // index into Program::kernels
inline constexpr SlotId kNoSlot = -1;
using StreamId = int32_t;  // 0 is the caller's stream; others are made by the device

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

// A team of ranks: those that differ only in these axes of the mesh. No axes: every rank of the
// mesh. Outermost axis first; the order gives the ranks within the team.
struct Team {
  MeshId mesh;  // kNoMesh: all ranks of the job
  std::vector<MeshAxis> axes;
  bool operator==(const Team&) const = default;
};

// Stream-ordered memory for the slot, in its type's size and allocation order.
struct Allocate {
  SlotId out;
  StreamId stream = 0;
  bool operator==(const Allocate&) const = default;
};

// No later instruction touches the buffer of the slot, through any alias.
struct Free {
  SlotId slot;
  StreamId stream = 0;
  bool operator==(const Free&) const = default;
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
};

// `out` = `in`, same local sizes, any strides on either side when both are dense in the same order.
struct Copy {
  SlotId out;
  SlotId in;
  StreamId stream = 0;
  bool operator==(const Copy&) const = default;
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
};
struct Recv {
  SlotId slot;
  Size peer;
  Team team;
  StreamId stream = 0;
  std::optional<TokenId> token;
  bool operator==(const Recv&) const = default;
};
// Sends and receives between the two are posted together. All on the stream and team of the group.
struct GroupBegin {
  bool operator==(const GroupBegin&) const = default;
};
struct GroupEnd {
  TokenId token;
  bool operator==(const GroupEnd&) const = default;
};

// The stream (never the host) waits until the posted operation of the token is done. A token
// starts done; the latest post of it counts.
struct Wait {
  TokenId token;
  StreamId stream = 0;
  bool operator==(const Wait&) const = default;
};

struct RecordEvent {
  EventId event;
  StreamId stream = 0;
  bool operator==(const RecordEvent&) const = default;
};
struct WaitEvent {
  EventId event;
  StreamId stream = 0;
  bool operator==(const WaitEvent&) const = default;
};

// A 0-d or one-element device tensor to a scalar slot, or an i64 tensor without gaps to a list of
// as many: the only instruction on which the host waits.
struct ReadBack {
  SlotId out;
  SlotId in;
  StreamId stream = 0;
  bool operator==(const ReadBack&) const = default;
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
};

// Runs another program of the same file with these slots as its inputs; its outputs land in
// `outputs`.
struct Call {
  std::string program;
  std::vector<SlotId> inputs;
  std::vector<SlotId> outputs;
  bool operator==(const Call&) const = default;
};

// Debug: fails the run when the slot holds NaN or inf / prints name, sizes and first values.
struct Check {
  SlotId slot;
  StreamId stream = 0;
  bool operator==(const Check&) const = default;
};
struct Print {
  SlotId slot;
  StreamId stream = 0;
  bool operator==(const Print&) const = default;
};

using Op = std::variant<Allocate, Free, Alias, Evaluate, LaunchKernel, CallLibrary, Copy,
                        Communicate, Send, Recv, GroupBegin, GroupEnd, Wait, RecordEvent, WaitEvent,
                        ReadBack, For, If, Call, Check, Print>;

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

// --- what an instruction touches -------------------------------------------------------------
// The one declaration from which lifetimes, dependencies, race checks and timelines derive.
struct Access {
  SlotId slot;
  bool write;
  // A collective's output is written and its input read until its Wait, which is what `borrowed`
  // says. Both are whole. On which ranks a rooted one touches them is for the Unrolled to say.
  bool borrowed = false;
  bool operator==(const Access&) const = default;
};
std::vector<Access> accessesOf(const Op& op);  // tensor slots only; For and If: none
std::optional<StreamId> streamOf(
    const Op& op);                        // nullopt: host side (Alias, Evaluate, For, If, Call)
std::string_view mnemonic(const Op& op);  // "allocate", "launch", ...

}  // namespace heddle::host
