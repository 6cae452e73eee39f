#include <gtest/gtest.h>

#include <optional>

#include "host/builder/program_builder.h"
#include "host/text/program_text.h"
#include "host/verify/verify_structure.h"
#include "ir/base/error.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"

namespace heddle::host::program_builder_errors_test {
namespace {

using testing::userErrorOf;

using comm::CollectiveKind;

// A wrong program as text, and the calls that build it.
struct WrongProgram {
  std::string text;
  std::function<void(ProgramBuilder&)> build;
};

std::string textError(const std::string& text) {
  return userErrorOf([&] { verifyStructure(parseProgram("heddle 1\n" + text, "f")); });
}

std::string builderError(const std::function<void(ProgramBuilder&)>& build) {
  return userErrorOf([&] {
    ProgramBuilder b;
    build(b);
    std::move(b).build();
  });
}

// Returns the part of an error after its position, such as "f:3:7: ". Returns nullopt if the error
// has no position in a text.
std::optional<std::string> withoutPosition(const std::string& error) {
  if (!error.starts_with("f:")) return std::nullopt;
  return error.substr(error.find(": ") + 2);
}

// Requires that the builder gives the error of the text. If the error of the text has a line and a
// column, the error of the builder has a different position: "slot %y: ..." or "instruction 0 ...".
void expectSameErrors(const std::vector<WrongProgram>& programs) {
  for (const WrongProgram& wrong : programs) {
    const std::string expected = textError(wrong.text);
    const std::string got = builderError(wrong.build);
    ASSERT_NE(expected, "") << wrong.text;
    const std::optional<std::string> without = withoutPosition(expected);
    if (!without) {
      EXPECT_EQ(got, expected) << wrong.text;
      continue;
    }
    EXPECT_TRUE(got.ends_with(": " + *without))
        << "got \"" << got << "\" for \"" << expected << "\"";
  }
}

Fusion fusionOf(const std::string& text) { return parseFusion("heddle 1\n" + text); }
DeviceMesh meshOf(std::vector<DeviceMesh::Axis> axes, std::vector<int64_t> ranks = {}) {
  return {"m", std::move(axes), std::move(ranks)};
}
MeshRef rowMesh(ProgramBuilder& b) { return b.mesh(meshOf({{MeshAxis::X, 2}})); }
SlotRef floats(ProgramBuilder& b, const std::string& name = "x") {
  return b.input(name, {DType::F32, {"n"}});
}
const TensorType kFloats{DType::F32, {"n"}};

TEST(ProgramBuilderErrors, MeshErrorsEqualThoseOfTheText) {
  constexpr auto X = MeshAxis::X, Y = MeshAxis::Y;
  constexpr int64_t kJob = DeviceMesh::kFromJob;
  const std::string rest = " program main() -> () { }";
  const auto mesh = [&](const std::string& text, const DeviceMesh& made) {
    return WrongProgram{text + rest, [made](ProgramBuilder& b) { b.mesh(made); }};
  };
  expectSameErrors({
      mesh("mesh @m = [x=0]", meshOf({{X, 0}})),
      mesh("mesh @m = [x=2, y=2]", meshOf({{X, 2}, {Y, 2}})),
      mesh("mesh @m = [y=ranks, x=ranks]", meshOf({{Y, kJob}, {X, kJob}})),
      mesh("mesh @m = [y=65536, x=65537]", meshOf({{Y, 65536}, {X, 65537}})),
      mesh("mesh @m = [x=2] ranks=[1]", meshOf({{X, 2}}, {1})),
      mesh("mesh @m = [x=ranks] ranks=[1]", meshOf({{X, kJob}}, {1})),
      mesh("mesh @m = [x=2] ranks=[1, 1]", meshOf({{X, 2}}, {1, 1})),
      mesh("mesh @m = [x=2] ranks=[1, -1]", meshOf({{X, 2}}, {1, -1})),
      {"mesh @m = [x=2] mesh @m = [x=2]" + rest,
       [](ProgramBuilder& b) {
         rowMesh(b);
         rowMesh(b);
       }},
  });
}

TEST(ProgramBuilderErrors, TypeErrorsEqualThoseOfTheText) {
  const auto slot = [](const std::string& type, const TensorType& made) {
    return WrongProgram{"mesh @m = [x=2] program main() -> () { slot %y: " + type + " }",
                        [made](ProgramBuilder& b) {
                          rowMesh(b);
                          b.tensor("y", made);
                        }};
  };
  const auto changed = [](const std::function<void(TensorView&)>& change) {
    TensorType type = kFloats;
    change(type.tensor);
    return type;
  };
  const auto sharded = [](Sharding sharding) {
    return TensorType{DType::F32, {"n", 2}, std::move(sharding)};
  };
  constexpr auto X = MeshAxis::X, Y = MeshAxis::Y;
  const MeshId m{0};
  expectSameErrors({
      slot("f32[-1]", {DType::F32, {-1}}),
      slot("f32[broadcast(n)]",
           changed([](TensorView& view) { view.domain[0].kind = IterKind::Broadcast; })),
      slot("f32[n?]", changed([](TensorView& view) { view.domain[0].kind = IterKind::Symbolic; })),
      slot("f32[n] order=[1]",
           changed([](TensorView& view) { view.layout.required = AxisOrder{1}; })),
      slot("f32[n] hinted order=[0, 0]", changed([](TensorView& view) {
             view.layout.hint = AxisOrder{0, 0};
           })),
      slot("f32[n] contiguous=[true]", changed([](TensorView& view) {
             view.layout.observed = Layout::Observed{{0}, {true}};
           })),
      slot("f32[n] alloc=[n, 2]", {DType::F32, {"n"}, {}, {"n", 2}}),
      slot("f32[n, 2] shard(@m, 0: y)", sharded({m, {{Y}, {}}, {}, {}})),
      slot("f32[n, 2] shard(@m, 0: x, 1: x)", sharded({m, {{X}, {X}}, {}, {}})),
      slot("f32[n, 2] shard(@m, 0: x) partial(sum: x)",
           sharded({m, {{X}}, {{X, ReduceOp::Sum}}, {}})),
      slot("f32[n, 2] shard(@m, 2: x)", sharded({m, {{}, {}, {X}}, {}, {}})),
      slot("f32[n, 2] shard(@m) stream(2: 2)", sharded({m, {}, {}, Sharding::StreamSplit{2, 2}})),
      slot("f32[n, 2] shard(@m) stream(0: 0)", sharded({m, {}, {}, Sharding::StreamSplit{0, 0}})),
  });
}

TEST(ProgramBuilderErrors, InputTypeErrorsEqualThoseOfTheText) {
  const auto input = [](const std::string& type, const std::function<void(Layout&)>& change) {
    TensorType made = kFloats;
    change(made.tensor.layout);
    return WrongProgram{"program main(%x: " + type + ") -> () { }",
                        [made](ProgramBuilder& b) { b.input("x", made); }};
  };
  const auto scalar = [](const std::string& type, DType dtype, Scalar value) {
    return WrongProgram{"program main(%s: " + type + ") -> () { }",
                        [=](ProgramBuilder& b) { b.scalarInput("s", dtype, value); }};
  };
  expectSameErrors({
      input("f32[n] order=[1]",
            [](Layout& layout) {
              layout.observed = Layout::Observed{{1}, {true}};
            }),
      input("f32[n] contiguous=[true, true]",
            [](Layout& layout) {
              layout.observed = Layout::Observed{{0}, {true, true}};
            }),
      input("f32[n] needed order=[0]", [](Layout& layout) { layout.needed = AxisOrder{0}; }),
      input("f32[n] hinted order=[0]", [](Layout& layout) { layout.hint = AxisOrder{0}; }),
      scalar("i64 = 0.5", DType::I64, 0.5),
      scalar("bool = 1", DType::Bool, 1),
      scalar("f32 = true", DType::F32, true),
  });
}

TEST(ProgramBuilderErrors, DeclarationErrorsEqualThoseOfTheText) {
  const std::string kernel = "kernel @k { fusion f(%a: f32[n]) { %b = neg(%a) return %b } } ";
  const Fusion negated = fusionOf("fusion f(%a: f32[n]) { %b = neg(%a) return %b }");
  const Fusion open = fusionOf("fusion f(%a: f32[n?]) { %b = neg(%a) return %b }");
  const Fusion product = fusionOf("fusion f(%a: f32[n, n]) { %b = matmul(%a, %a) return %b }");
  const Fusion sharded =
      fusionOf("mesh @q = [x=2] fusion f(%a: f32[n] shard(@q)) { %b = neg(%a) return %b }");
  expectSameErrors({
      {"program main(%x: f32[n]) -> () { slot %x: f64 }",
       [](ProgramBuilder& b) {
         floats(b);
         b.scalar("x", DType::F64);
       }},
      {"program main(%x: f32[n]) -> (%y in %y) { slot %y: f32[n] }",
       [](ProgramBuilder& b) {
         const SlotRef y = b.tensor("y", kFloats);
         b.output(y, y);
       }},
      {"program main(%x: f32[n]) -> (%x in %x, %x in %x) { }",
       [](ProgramBuilder& b) {
         const SlotRef x = floats(b);
         b.output(x, x);
         b.output(x, x);
       }},
      {"program main(%x: f32[n]) -> () with n = 1, n = 2 { }",
       [](ProgramBuilder& b) {
         b.sizeDefault("n", 1);
         b.sizeDefault("n", 2);
       }},
      {"program main(%x: f32[n]) -> () with n = -1 { }",
       [](ProgramBuilder& b) { b.sizeDefault("n", -1); }},
      {"program main() -> () { guard %q == 1 \"q\" }",
       [](ProgramBuilder& b) { b.guardEqual("%q", 1, "q"); }},
      {kernel + kernel + "program main() -> () { }",
       [&](ProgramBuilder& b) {
         b.kernel("k", negated);
         b.kernel("k", negated);
       }},
      {"kernel @k { fusion f(%a: f32[n?]) { %b = neg(%a) return %b } } program main() -> () { }",
       [&](ProgramBuilder& b) { b.kernel("k", open); }},
      {"kernel @k { fusion f(%a: f32[n, n]) { %b = matmul(%a, %a) return %b } } program main() -> "
       "() { }",
       [&](ProgramBuilder& b) { b.kernel("k", product); }},
      {"kernel @k { fusion f(%a: f32[n] shard(@q)) { %b = neg(%a) return %b } } program main() -> "
       "() { }",
       [&](ProgramBuilder& b) { b.kernel("k", sharded); }},
  });
}

// Each text is the body of a program with the inputs %x: f32[n], %s: f64 and mesh @m.
WrongProgram body(const std::string& text,
                  const std::function<void(ProgramBuilder&, SlotRef x, SlotRef s)>& build) {
  return {"mesh @m = [x=2] program main(%x: f32[n], %s: f64) -> () { " + text + " }",
          [build](ProgramBuilder& b) {
            rowMesh(b);
            const SlotRef x = floats(b);
            build(b, x, b.scalarInput("s", DType::F64));
          }};
}

TEST(ProgramBuilderErrors, InstructionErrorsEqualThoseOfTheText) {
  const auto collective = [](const std::string& text, CollectiveKind kind,
                             const CollectiveOptions& options) {
    return body("$t0 = communicate " + text,
                [=](ProgramBuilder& b, SlotRef x, SlotRef) { b.communicate(kind, x, x, options); });
  };
  expectSameErrors({
      body("check %s", [](auto& b, SlotRef, SlotRef s) { b.check(s); }),
      body("copy %x -> %x stream=64",
           [](auto& b, SlotRef x, SlotRef) { b.copy(x, x, StreamId(64)); }),
      body("copy %x -> %x stream=-1",
           [](auto& b, SlotRef x, SlotRef) { b.copy(x, x, StreamId(-1)); }),
      body("%x = evaluate 1", [](auto& b, SlotRef x, SlotRef) { b.evaluate(x, 1); }),
      body("%s = evaluate matmul(%s, %s)",
           [](auto& b, SlotRef, SlotRef s) {
             b.evaluate(s, "matmul", {s, s});
           }),
      body("%s = evaluate mul(%s)", [](auto& b, SlotRef, SlotRef s) { b.evaluate(s, "mul", {s}); }),
      body("if %s > 0 { }",
           [](auto& b, SlotRef, SlotRef s) { b.branch(s, Predicate::Compare::Gt, 0, {}); }),
      body("call_library neg(%x) -> (%x)",
           [](auto& b, SlotRef x, SlotRef) { b.callLibrary("neg", {x}, {x}); }),
      body("call_library cumsum(%x) -> (%x)",
           [](auto& b, SlotRef x, SlotRef) { b.callLibrary("cumsum", {x}, {x}); }),
      body("call_library cumsum(%x, axis=0, axis=0) -> (%x)",
           [](auto& b, SlotRef x, SlotRef) {
             b.callLibrary("cumsum", {x}, {x}, {.attrs = {{"axis", 0}, {"axis", 0}}});
           }),
      body("call_library matmul(%x, %x) -> (%x) spare_sms=65",
           [](auto& b, SlotRef x, SlotRef) {
             b.callLibrary("matmul", {x, x}, {x}, {.spare_sms = 65});
           }),
      collective("allreduce %x -> %x", CollectiveKind::Allreduce, {}),
      collective("allgather %x -> %x op=sum", CollectiveKind::Allgather, {.op = ReduceOp::Sum}),
      collective("broadcast %x -> %x root=rank", CollectiveKind::Broadcast, {.root = Size("rank")}),
      collective("all_to_all_v %x -> %x", CollectiveKind::AllToAllV, {}),
      collective("allgather %x -> %x ctas=65", CollectiveKind::Allgather, {.carrier = {65, 0}}),
      collective("allgather %x -> %x lane=5", CollectiveKind::Allgather, {.carrier = {0, 5}}),
      collective("allgather %x -> %x team=@m[y]", CollectiveKind::Allgather,
                 {.team = {MeshId(0), {MeshAxis::Y}}}),
      body("$t0 = communicate gather %x -> %x, %x -> %x root=0",
           [](auto& b, SlotRef x, SlotRef) {
             b.communicate(CollectiveKind::Gather, {{x, x}, {x, x}}, {.root = Size(0)});
           }),
  });
}

TEST(ProgramBuilderErrors, ErrorsOfTheCompleteProgramEqualThoseOfTheText) {
  expectSameErrors({
      body("%x = alias %x[i]",
           [](auto& b, SlotRef x, SlotRef) { b.alias(x, x, Alias::Index{"i"}); }),
      body("for rank in 0 .. 2 { }",
           [](auto& b, SlotRef, SlotRef) { b.loop("rank", 0, 2, [](const Index&) {}); }),
      body("for i in 0 .. 2 { for i in 0 .. 2 { } }",
           [](auto& b, SlotRef, SlotRef) {
             b.loop("i", 0, 2, [&](const Index&) { b.loop("i", 0, 2, [](const Index&) {}); });
           }),
      body("wait_event !e", [](auto& b, SlotRef, SlotRef) { b.waitEvent(b.event("e")); }),
      body("wait $t", [](auto& b, SlotRef, SlotRef) { b.wait(b.token("t")); }),
      body("group_begin check %x $t = group_end",
           [](auto& b, SlotRef x, SlotRef) { b.group([&] { b.check(x); }); }),
      body("group_begin group_begin $t = group_end $u = group_end",
           [](auto& b, SlotRef, SlotRef) { b.group([&] { b.group([] {}); }); }),
      body("group_begin send %x to=0 recv %x from=0 stream=1 $t = group_end",
           [](auto& b, SlotRef x, SlotRef) {
             b.group([&] {
               b.send(x, 0);
               b.recv(x, 0, {.stream = StreamId(1)});
             });
           }),
      body("group_begin $t = send %x to=0 $t = group_end",
           [](auto& b, SlotRef x, SlotRef) {
             const TokenRef t = b.token("t");
             b.group([&] { b.send(x, 0, {.token = t}); }, t);
           }),
  });
}

TEST(ProgramBuilderErrors, CallErrorsEqualThoseOfTheText) {
  const auto callee = [](size_t outputs) {
    ProgramBuilder b("f");
    for (size_t i = 0; i < outputs; ++i) b.output(floats(b, "x" + std::to_string(i)));
    return std::move(b).build();
  };
  const std::string two =
      "program f(%x0: f32[n]) -> (%x0) { } program f(%x0: f32[n], %x1: f32[n]) "
      "-> (%x0, %x1) { } program main() -> () { }";
  expectSameErrors({
      {"program f(%x0: f32[n]) -> (%x0) { } program main(%x: f32[n]) -> () { call @f() -> (%x) }",
       [&](ProgramBuilder& b) {
         const SlotRef x = floats(b);
         b.call(callee(1), {}, {x});
       }},
      {two,
       [&](ProgramBuilder& b) {
         const SlotRef x = floats(b);
         b.call(callee(1), {x}, {x});
         b.call(callee(2), {x, x}, {x, x});
       }},
  });
}

TEST(ProgramBuilderErrors, PositionIsTheDeclarationOrTheInstruction) {
  EXPECT_EQ(builderError([](ProgramBuilder& b) {
              b.tensor("a b", {DType::F32, {-2}});
            }),
            "slot %\"a b\": the extent -2 is negative");
  EXPECT_EQ(builderError([](ProgramBuilder& b) {
              const SlotRef x = floats(b);
              b.loop(2, [&](const Index&) { b.check(x); });
              b.callLibrary("neg", {x}, {x}, {.stream = StreamId(-7)});
            }).substr(0, 48),
            "instruction 2 (call_library): stream -7 is not i");
}

}  // namespace
}  // namespace heddle::host::program_builder_errors_test
