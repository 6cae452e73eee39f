#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// Refers to a slot, token, event, kernel or mesh of one ProgramBuilder. A Ref is small and may be
// copied. The functions of a builder throw UserError if they get a Ref of another builder, or an
// empty Ref.
template <class IdType>
class Ref {
 public:
  Ref() = default;  // empty
  // Returns the index in the Program, for example in Program::slots.
  IdType id() const { return id_; }

 private:
  friend class ProgramBuilder;
  Ref(IdType id, int64_t builder) : id_(id), builder_(builder) {}
  IdType id_;
  int64_t builder_ = 0;  // number of the builder; 0: empty
};
using SlotRef = Ref<SlotId>;
using TokenRef = Ref<TokenId>;
using EventRef = Ref<EventId>;
using KernelRef = Ref<KernelId>;
using MeshRef = Ref<MeshId>;

// The index of a loop. The sizes of instructions may contain it, as in Size::mod(i + 1, 2), and so
// may the sizes of slots that are declared in the body. The sizes of kernels may not. Outside of
// the body of the loop, the functions of the builder throw UserError for a size with this index.
using Index = Size;

// The type of a tensor slot, such as `f32[t, h] shard(@m, 0: x) alloc=[ceildiv(t, 2), h]`. To give
// the type a memory order, set `tensor.layout`.
struct TensorType {
  TensorType(DType dtype, std::vector<Size> sizes, std::optional<Sharding> sharding = {},
             std::vector<Size> allocated = {});
  TensorType(TensorView view) : tensor(std::move(view)) {}  // NOLINT: implicit
  TensorView tensor;
  std::vector<Size> alloc;  // allocated size of each axis on one rank; empty: see Slot::alloc
};

struct LibraryOptions {
  std::vector<std::pair<std::string, Attr>> attrs = {};  // in any order
  int32_t spare_sms = 0;  // only for matrix products: number of SMs left to a concurrent collective
  StreamId stream = kCallerStream;
};

struct CollectiveOptions {
  Team team = {};  // default: all ranks of the job
  std::optional<ReduceOp> op = {};
  std::optional<Size> root = {};
  std::optional<SlotRef> send_counts = {};
  std::optional<SlotRef> recv_counts = {};
  comm::Carrier carrier = {};
  StreamId stream = kCallerStream;
  std::optional<TokenRef> token = {};  // nullopt: a new token
};

struct TransferOptions {
  Team team = {};  // default: all ranks of the job
  StreamId stream = kCallerStream;
  std::optional<TokenRef> token = {};  // nullopt: a new token; inside a group, no token
};

// Types of values for which ProgramBuilder::evaluate() is deleted. Otherwise C++ would convert the
// value to a Size.
template <class Value>
concept IsNoSize = std::floating_point<Value> || std::same_as<Value, bool>;

// Builds a host program (host/program/program.h). docs/host_instructions.md describes the
// declarations and instructions. The comment of a function shows what it adds or returns in text
// form: a declaration, an instruction, or a part of one.
//
// Errors:  UserError. A function throws if its operands are wrong. build() throws for errors that
//          only the complete program shows. If the text of the program would have the same error,
//          the parser (host/text/program_text.h) uses the same words. It names the line, and the
//          builder names the declaration or the instruction: "slot %y: ...", "instruction 3 `...`:
//          ...". The builder does not search for races; verify() (host/verify/verify.h) and
//          Executable do.
// Names:   all slots must have different names. The same holds for kernels, meshes, tokens and
//          events. Tokens, events and loop indices have default names.
// Streams: by default, an instruction is on stream 0, the stream of the caller.
// Threads: not thread-safe. One builder builds one Program.
//
//   ProgramBuilder b("doubled");
//   auto add = b.kernel("add", fusion);  // of %a: f32[n] and %b: f32[n]
//   auto x = b.input("x", {DType::F32, {"n"}});
//   auto y = b.allocate(b.tensor("y", {DType::F32, {"n"}}));
//   b.copy(x, y);
//   b.loop(3, [&](Index) { b.launch(add, {y, y}, {y}); });
//   b.output(y);
//   Program program = std::move(b).build();
class ProgramBuilder {
 public:
  using Body = std::function<void()>;
  using LoopBody = std::function<void(const Index&)>;
  using Slots = std::vector<SlotRef>;
  using Pairs = std::vector<std::pair<SlotRef, SlotRef>>;
  using Compare = Predicate::Compare;

  explicit ProgramBuilder(std::string program_name = "main");
  ~ProgramBuilder();
  ProgramBuilder(const ProgramBuilder&) = delete;
  ProgramBuilder& operator=(const ProgramBuilder&) = delete;

  // Checks the complete program and returns it. After that, the builder cannot be used.
  Program build() &&;

  // --- declarations ----------------------------------------------------------------------------

  // mesh @m = [y=2, x=ranks]
  MeshRef mesh(DeviceMesh mesh);
  // kernel @k { fusion ... }
  // For each mesh of the fusion, the program must already have an equal mesh with the same name.
  KernelRef kernel(std::string name, Fusion segment);
  // program main(%x: f32[t, h])
  SlotRef input(std::string name, TensorType type);
  // program main(%s: f64 = 1.0)
  SlotRef scalarInput(std::string name, DType dtype, std::optional<Scalar> default_value = {});
  // slot %y: f32[t, h]
  SlotRef tensor(std::string name, TensorType type);
  // slot %n: i64
  SlotRef scalar(std::string name, DType dtype);
  // slot %c: list i64[ranks]
  SlotRef list(std::string name, const Size& size);
  // -> (%y)
  void output(SlotRef slot);
  // -> (%w1 in %w), and with `required` -> (%w1 in! %w)
  // The output is stored in the memory of the input (ReusedInput in host/program/program.h).
  void output(SlotRef slot, SlotRef input, bool required = false);
  // with t = 4
  void sizeDefault(const std::string& symbol, int64_t value);
  // guard a == b "text"
  void guardEqual(const Size& a, const Size& b, std::string text);
  // guard a <= b "text"
  void guardAtMost(const Size& a, const Size& b, std::string text);
  // $t and !e
  // These functions declare a token or event with a name of the caller's choice. They are needed
  // only if an instruction waits for it before the first post or record in the text, as in a loop
  // that waits for the previous iteration. All other instructions can use the Ref that the first
  // post or record has returned.
  TokenRef token(std::string name);
  EventRef event(std::string name);

  // --- parts of types and instructions ---------------------------------------------------------

  // shard(@m, 0: x) partial(sum: y)
  // Entry i of `axes` contains the mesh axes that split axis i of the tensor.
  Sharding shard(MeshRef mesh, std::vector<std::vector<MeshAxis>> axes,
                 std::vector<Sharding::Partial> partial = {}) const;
  // team=@m[x]
  Team team(MeshRef mesh, std::vector<MeshAxis> axes = {}) const;
  // @m.x and @m.x.index
  Size extent(MeshRef mesh, MeshAxis axis) const;
  Size coordinate(MeshRef mesh, MeshAxis axis) const;
  // rank and ranks
  static Size rank() { return Size("rank"); }
  static Size ranks() { return Size("ranks"); }

  // --- memory, views and values on the host ----------------------------------------------------
  // In this section, a function with a parameter `out` defines this slot and returns it.

  // %y = allocate reuse=(%x, %t) stream=0
  SlotRef allocate(SlotRef out, StreamId stream = kCallerStream, const Slots& reuse = {});
  // free %y stream=0
  void free(SlotRef slot, StreamId stream = kCallerStream);
  // %v = alias %y reshape
  SlotRef alias(SlotRef out, SlotRef in, Alias::View view = Alias::Same{});
  // %n = evaluate 2*i + 1
  SlotRef evaluate(SlotRef out, const Size& size);
  // %c = evaluate mul(%a, %b)
  SlotRef evaluate(SlotRef out, std::string_view pointwise_op, const Slots& operands);
  // %c = evaluate 0.5
  SlotRef constant(SlotRef out, Scalar value);
  template <IsNoSize Value>
  SlotRef evaluate(SlotRef out, Value value) = delete;  // call constant()
  // %n = read_back %a stream=0
  SlotRef readBack(SlotRef out, SlotRef in, StreamId stream = kCallerStream);

  // --- work ------------------------------------------------------------------------------------

  // launch @k(%x, %s) -> (%y) stream=0
  void launch(KernelRef kernel, const Slots& inputs, const Slots& outputs,
              StreamId stream = kCallerStream);
  // call_library cumsum(%a, axis=1) -> (%c) stream=0
  void callLibrary(std::string function, const Slots& inputs, const Slots& outputs,
                   const LibraryOptions& options = {});
  // copy %a -> %b stream=0
  void copy(SlotRef in, SlotRef out, StreamId stream = kCallerStream);
  // check %a stream=0
  void check(SlotRef slot, StreamId stream = kCallerStream);
  // print %a stream=0
  void print(SlotRef slot, StreamId stream = kCallerStream);

  // --- communication ---------------------------------------------------------------------------
  // Each function returns the token of the operation that it posts.

  // $t = communicate allreduce %a -> %b team=@m[x] op=sum stream=1
  TokenRef communicate(comm::CollectiveKind kind, SlotRef in, SlotRef out,
                       const CollectiveOptions& options = {});
  // $t = communicate allreduce %a -> %c, %b -> %d op=sum
  TokenRef communicate(comm::CollectiveKind kind, const Pairs& pairs,
                       const CollectiveOptions& options = {});
  // $t = communicate barrier
  TokenRef barrier(const CollectiveOptions& options = {});
  // $t = send %a to=1 team=@m[x] stream=1
  // Inside a group, a send or recv has no token. The function returns an empty Ref.
  TokenRef send(SlotRef slot, const Size& to, const TransferOptions& options = {});
  // $t = recv %b from=0 team=@m[x] stream=1
  TokenRef recv(SlotRef slot, const Size& from, const TransferOptions& options = {});
  // group_begin .. $t = group_end
  // Posts the sends and receives of the body together.
  TokenRef group(const Body& body, std::optional<TokenRef> token = {});

  // --- order -----------------------------------------------------------------------------------

  // wait $t stream=0
  void wait(TokenRef token, StreamId stream = kCallerStream);
  // !e = record_event stream=0
  EventRef recordEvent(StreamId stream = kCallerStream);
  EventRef recordEvent(EventRef event, StreamId stream = kCallerStream);
  // wait_event !e stream=1
  void waitEvent(EventRef event, StreamId stream = kCallerStream);

  // --- control flow ----------------------------------------------------------------------------
  // A body is a function that appends instructions. It is called once, also if it is the body of a
  // loop.

  // for i in 0 .. n { }
  void loop(const Size& stop, const LoopBody& body) { loop(0, stop, body); }
  void loop(const Size& start, const Size& stop, const LoopBody& body);
  void loop(std::string index, const Size& start, const Size& stop, const LoopBody& body);
  // if rank == 0 { } else { }
  void branch(const Size& left, Compare compare, const Size& right, const Body& then_body,
              const Body& else_body = {});
  // if %n > 0 { } else { }
  void branch(SlotRef left, Compare compare, const Size& right, const Body& then_body,
              const Body& else_body = {});
  // on @m: free %y
  // Only the ranks of the mesh execute the instructions of the body. The function sets
  // Instruction::on of these instructions, but not of the instructions inside loops and branches: a
  // rank that skips a loop also skips the instructions in the body of the loop. The body must not
  // call on(), except inside a loop or branch.
  void on(MeshRef mesh, const Body& body);
  // call @other(%a) -> (%b)
  // The builder keeps a copy of the called program.
  void call(const Program& callee, const Slots& inputs, const Slots& outputs);

 private:
  struct State;
  State& state() const;  // throws UserError after build()

  std::unique_ptr<State> state_;
};

}  // namespace heddle::host
