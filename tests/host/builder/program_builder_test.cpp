#include "host/builder/program_builder.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "host/program/visit.h"
#include "host/text/program_text.h"
#include "tests/host/builder/built_examples.h"
#include "tests/host/example_files.h"

// Builds programs that also exist as text. The built program and the parsed text must be equal.
namespace heddle::host::program_builder_test {
namespace {

using testing::inPlaceLoop;
using testing::kernelOf;
using testing::programExample;
using testing::ringAllgather;
using testing::unevenExchange;

using comm::CollectiveKind;
using Compare = Predicate::Compare;

// The instructions and forms that the examples do not contain.
constexpr const char* kOthers = R"(heddle 1
program copied(%a: f32[u]) -> (%b) {
  slot %b: f32[u]
  %b = allocate
  copy %a -> %b
}
mesh @m = [y=2, x=ranks]
mesh @few = [x=2] ranks=[1, 3]
kernel @scale {
  fusion scale(%x: f32[t, h] shard(@few, 0: x), %s: f64) {
    %y = mul(%x, %s)
    return %y
  }
}
program others(%x: f32[t, h], %w: f32[t, h] contiguous=[true, false], %s: f64 = 1, %n: i64) -> (%y, %x in! %x, %w in %w)
    with t = 4, h = 8, %n = -1 {
  guard t == 4 "the rows"
  guard %n <= h "a caller"
  slot %y: f32[t, h] order=[1, 0]
  slot %z: f32[t, h] shard(@m, 0: x) partial(sum: y) alloc=[ceildiv(t, 2), h]
  slot %v: f32[h, t]
  slot %e: f32[t, broadcast(1), h]
  slot %d: f32[t]
  slot %o: i64[t]
  slot %c: f64
  slot %k: i64
  %y = allocate reuse=(%x, %w) stream=0
  launch @scale(%x, %s) -> (%y) stream=3
  %v = alias %y permute=[1, 0]
  %y = alias %x slice starts=[0, 1] stops=[t, h] steps=[1, 2]
  %e = alias %y expand=[1]
  %d = alias %y diagonal=[0, 1]
  %z = alias %y shard
  %z = alias %y unpad
  %y = alias %x
  %k = evaluate i64(-3)
  %c = evaluate -inf
  %c = evaluate mul(%c, %s)
  call_library matmul(%x, %v) -> (%y) spare_sms=8 stream=0
  call_library argsort(%d, axis=0, descending=true) -> (%o) stream=2
  $t0 = communicate allgather %x -> %y team=@m[y, x] stream=1
  $t1 = communicate reduce_scatter %x -> %y op=max ctas=16 lane=2 stream=1
  $t2 = communicate allreduce %x -> %y, %d -> %d team=@m op=sum
  $t3 = communicate broadcast %x -> %y root=ranks - 1
  $t4 = communicate barrier
  $t5 = send %x to=1 - rank
  $"an odd name" = recv %x from=@m.y.index team=@few
  wait $"an odd name" stream=4
  !e0 = record_event stream=1
  wait_event !e0 stream=0
  %k = read_back %d stream=0
  for outer in 1 .. t {
    for i in 0 .. outer {
      if %k >= i {
        check %y stream=5
      } else {
        print %y
      }
    }
  }
  if rank < 2 {
    call @copied(%d) -> (%d)
    on @few: for i in 0 .. 2 {
      on @m: call @copied(%d) -> (%d)
    }
  }
  on @few: free %y
  on @few: group_begin
  on @few: send %x to=0
  on @few: $t7 = group_end
}
)";

Program copiedProgram() {
  ProgramBuilder b("copied");
  const SlotRef a = b.input("a", {DType::F32, {"u"}});
  const SlotRef out = b.allocate(b.tensor("b", {DType::F32, {"u"}}));
  b.copy(a, out);
  b.output(out);
  return std::move(b).build();
}

// Builds kOthers.
class Others {
 public:
  explicit Others(const Program& parsed) : scale_(b_.kernel("scale", kernelOf(parsed, 0))) {}

  Program build() {
    declare();
    appendLocal();
    communicate();
    appendControlFlow();
    return std::move(b_).build();
  }

 private:
  void declare() {
    b_.output(y_);
    b_.output(x_, x_, true);
    b_.output(w_, w_);
    b_.sizeDefault("t", 4);
    b_.sizeDefault("h", 8);
    b_.sizeDefault("%n", -1);
    b_.guardEqual("t", 4, "the rows");
    b_.guardAtMost("%n", "h", "a caller");
  }

  void appendLocal() {
    b_.allocate(y_, kCallerStream, {x_, w_});
    b_.launch(scale_, {x_, s_}, {y_}, StreamId(3));
    b_.alias(v_, y_, Alias::Permute{{1, 0}});
    b_.alias(y_, x_, Alias::Slice{{0, 1}, {"t", "h"}, {1, 2}});
    b_.alias(e_, y_, Alias::Expand{{1}});
    b_.alias(d_, y_, Alias::Diagonal{0, 1});
    b_.alias(z_, y_, Alias::Shard{});
    b_.alias(z_, y_, Alias::Unpad{});
    b_.alias(y_, x_);
    b_.constant(k_, -3);
    b_.constant(c_, -std::numeric_limits<double>::infinity());
    b_.evaluate(c_, "mul", {c_, s_});
    b_.callLibrary("matmul", {x_, v_}, {y_}, {.spare_sms = 8});
    b_.callLibrary("argsort", {d_}, {o_},
                   {.attrs = {{"descending", true}, {"axis", 0}}, .stream = StreamId(2)});
  }

  void communicate() {
    const StreamId stream(1);
    b_.communicate(CollectiveKind::Allgather, x_, y_,
                   {.team = b_.team(m_, {MeshAxis::Y, MeshAxis::X}), .stream = stream});
    b_.communicate(CollectiveKind::ReduceScatter, x_, y_,
                   {.op = ReduceOp::Max, .carrier = {16, 2}, .stream = stream});
    b_.communicate(CollectiveKind::Allreduce, {{x_, y_}, {d_, d_}},
                   {.team = b_.team(m_), .op = ReduceOp::Sum});
    b_.communicate(CollectiveKind::Broadcast, x_, y_, {.root = b_.ranks() - 1});
    b_.barrier();
    b_.send(x_, 1 - b_.rank());
    const TokenRef odd = b_.token("an odd name");
    b_.recv(x_, b_.coordinate(m_, MeshAxis::Y), {.team = b_.team(few_), .token = odd});
    b_.wait(odd, StreamId(4));
    b_.waitEvent(b_.recordEvent(stream));
    b_.readBack(k_, d_);
  }

  void appendControlFlow() {
    b_.loop("outer", 1, "t", [&](const Index& outer) {
      b_.loop(outer, [&](const Index& i) {
        b_.branch(
            k_, Compare::Ge, i, [&] { b_.check(y_, StreamId(5)); }, [&] { b_.print(y_); });
      });
    });
    const Program copied = copiedProgram();
    b_.branch(b_.rank(), Compare::Lt, 2, [&] {
      b_.call(copied, {d_}, {d_});
      b_.on(few_, [&] {
        b_.loop(2, [&](const Index&) { b_.on(m_, [&] { b_.call(copied, {d_}, {d_}); }); });
      });
    });
    b_.on(few_, [&] {
      b_.free(y_);
      b_.group([&] { b_.send(x_, 0); });
    });
  }

  static TensorType rows() { return {DType::F32, {"t", "h"}}; }
  static TensorType gappedRows() {
    TensorType type = rows();
    type.tensor.layout.observed = Layout::Observed{{0, 1}, {true, false}};
    return type;
  }
  static TensorType columns() {
    TensorType type = rows();
    type.tensor.layout.required = AxisOrder{1, 0};
    return type;
  }
  static TensorType withBroadcastAxis() {
    TensorType type{DType::F32, {"t", 1, "h"}};
    type.tensor.domain[1].kind = IterKind::Broadcast;
    return type;
  }

  ProgramBuilder b_{"others"};
  MeshRef m_ = b_.mesh({"m", {{MeshAxis::Y, 2}, {MeshAxis::X, DeviceMesh::kFromJob}}, {}});
  MeshRef few_ = b_.mesh({"few", {{MeshAxis::X, 2}}, {1, 3}});
  KernelRef scale_;
  SlotRef x_ = b_.input("x", rows());
  SlotRef w_ = b_.input("w", gappedRows());
  SlotRef s_ = b_.scalarInput("s", DType::F64, 1);
  SlotRef n_ = b_.scalarInput("n", DType::I64);
  SlotRef y_ = b_.tensor("y", columns());
  SlotRef z_ = b_.tensor("z", {DType::F32,
                               {"t", "h"},
                               b_.shard(m_, {{MeshAxis::X}}, {{MeshAxis::Y, ReduceOp::Sum}}),
                               {Size::ceilDiv("t", 2), "h"}});
  SlotRef v_ = b_.tensor("v", {DType::F32, {"h", "t"}});
  SlotRef e_ = b_.tensor("e", withBroadcastAxis());
  SlotRef d_ = b_.tensor("d", {DType::F32, {"t"}});
  SlotRef o_ = b_.tensor("o", {DType::I64, {"t"}});
  SlotRef c_ = b_.scalar("c", DType::F64);
  SlotRef k_ = b_.scalar("k", DType::I64);
};

void expectSame(const Program& built, const Program& parsed) {
  EXPECT_EQ(print(built), print(parsed));
  EXPECT_TRUE(sameProgram(built, parsed));
}

TEST(ProgramBuilder, InPlaceLoopEqualsItsText) {
  const Program parsed = programExample("in_place_loop.hostir");
  expectSame(inPlaceLoop(parsed), parsed);
}

TEST(ProgramBuilder, RingAllgatherEqualsItsText) {
  expectSame(ringAllgather(), programExample("ring_allgather.hostir"));
}

TEST(ProgramBuilder, UnevenExchangeEqualsItsText) {
  const Program parsed = programExample("uneven_exchange.hostir");
  expectSame(unevenExchange(parsed), parsed);
}

TEST(ProgramBuilder, OtherInstructionsEqualTheirText) {
  const Program parsed = parseProgram(kOthers);
  expectSame(Others(parsed).build(), parsed);
}

TEST(ProgramBuilder, TheseProgramsContainEveryInstruction) {
  const Program parsed = parseProgram(kOthers);
  std::set<std::string_view> found;
  for (const Program& program : {ringAllgather(), Others(parsed).build()}) {
    forEachInstruction(program.body, [&](const Instruction& x, InstructionIndex) {
      found.insert(mnemonic(x.op));
    });
  }
  EXPECT_EQ(found.size(), std::variant_size_v<Op>);
}

TEST(ProgramBuilder, LoopIndexAvoidsTheSymbolsOfInputs) {
  ProgramBuilder b;
  b.input("x", {DType::F32, {"i"}});
  const SlotRef n = b.scalar("n", DType::I64);
  b.loop("i", [&](const Index& outer) {
    b.loop(2, [&](const Index& inner) { b.evaluate(n, outer + inner); });
  });
  const std::string text = print(std::move(b).build());
  EXPECT_NE(text.find("for j in 0 .. i {\n    for k in 0 .. 2 {\n      %n = evaluate j + k"),
            std::string::npos)
      << text;
}

TEST(ProgramBuilder, DefaultNamesAvoidDeclaredNames) {
  ProgramBuilder b;
  b.barrier({.token = b.token("t1")});
  b.waitEvent(b.recordEvent(b.event("e1")));
  b.wait(b.barrier());
  b.waitEvent(b.recordEvent());
  const Program program = std::move(b).build();
  EXPECT_EQ(program.tokens.items(), (std::vector<std::string>{"t1", "t2"}));
  EXPECT_EQ(program.events.items(), (std::vector<std::string>{"e1", "e2"}));
}

// The order of the meshes in the fusion differs from that in the program.
TEST(ProgramBuilder, KernelUsesTheMeshesOfTheProgram) {
  const Fusion segment = parseFusion(R"(heddle 1
mesh @b = [x=2]
mesh @a = [x=3]
fusion k(%x: f32[t] shard(@b, 0: x)) {
  %y = neg(%x)
  return %y
}
)");
  ProgramBuilder b;
  b.mesh({"a", {{MeshAxis::X, 3}}, {}});
  b.mesh({"b", {{MeshAxis::X, 2}}, {}});
  b.kernel("k", segment);
  b.mesh({"c", {{MeshAxis::X, 4}}, {}});
  const Program program = std::move(b).build();
  const std::string text = print(program);
  EXPECT_NE(text.find("fusion k(%x: f32[t] shard(@b, 0: x))"), std::string::npos) << text;
  EXPECT_TRUE(sameProgram(parseProgram(text), program));
}

}  // namespace
}  // namespace heddle::host::program_builder_test
