#include <gtest/gtest.h>

#include "host/builder/program_builder.h"
#include "host/text/program_text.h"
#include "ir/base/error.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"

namespace heddle::host::program_builder_misuse_test {
namespace {

using testing::userErrorOf;

SlotRef integer(ProgramBuilder& b, const char* name = "n") { return b.scalar(name, DType::I64); }

TEST(ProgramBuilderMisuse, RefsOfAnotherBuilderAreRefused) {
  ProgramBuilder a, b;
  const SlotRef slot = integer(a);
  const MeshRef mesh = a.mesh({"m", {{MeshAxis::X, 2}}, {}});
  const TokenRef token = a.barrier();
  const EventRef event = a.recordEvent();
  const KernelRef kernel = a.kernel(
      "k", parseFusion("heddle 1\nfusion k(%x: f32[n]) {\n %y = neg(%x)\n return %y\n}\n"));
  integer(b);
  const auto errorOf = [](const auto& call) { return userErrorOf(call); };
  EXPECT_EQ(errorOf([&] { b.evaluate(slot, 1); }),
            "instruction 0 (evaluate): slot 0 belongs to another ProgramBuilder");
  EXPECT_EQ(errorOf([&] { b.wait(token); }),
            "instruction 0 (wait): token 0 belongs to another ProgramBuilder");
  EXPECT_EQ(errorOf([&] { b.barrier({.token = token}); }),
            "instruction 0 (communicate): token 0 belongs to another ProgramBuilder");
  EXPECT_EQ(errorOf([&] { b.waitEvent(event); }),
            "instruction 0 (wait_event): event 0 belongs to another ProgramBuilder");
  EXPECT_EQ(errorOf([&] { b.launch(kernel, {}, {}); }),
            "instruction 0 (launch): kernel 0 belongs to another ProgramBuilder");
  EXPECT_EQ(errorOf([&] { b.team(mesh); }), "mesh 0 belongs to another ProgramBuilder");
  EXPECT_EQ(errorOf([&] { b.shard(mesh, {}); }), "mesh 0 belongs to another ProgramBuilder");
  EXPECT_EQ(errorOf([&] { b.extent(mesh, MeshAxis::X); }),
            "mesh 0 belongs to another ProgramBuilder");
  EXPECT_EQ(errorOf([&] { b.on(mesh, [] {}); }), "mesh 0 belongs to another ProgramBuilder");
  EXPECT_EQ(errorOf([&] { b.output(slot); }), "slot 0 belongs to another ProgramBuilder");
}

TEST(ProgramBuilderMisuse, EmptyRefsAreRefused) {
  ProgramBuilder b;
  EXPECT_EQ(userErrorOf([&] { b.evaluate({}, 1); }),
            "instruction 0 (evaluate): a slot is missing: its Ref is empty");
  const SlotRef x = b.input("x", {DType::F32, {"n"}});
  TokenRef sent;
  b.group([&] { sent = b.send(x, 0); });
  EXPECT_EQ(userErrorOf([&] { b.wait(sent); }),
            "instruction 3 (wait): a token is missing: its Ref is empty (inside a group, only the "
            "group has a token)");
}

TEST(ProgramBuilderMisuse, LoopIndexOutsideOfItsLoopIsRefused) {
  ProgramBuilder b, other;
  const SlotRef n = integer(b), m = integer(other);
  Size saved;
  b.loop(2, [&](const Index& i) {
    saved = 2 * i;
    b.evaluate(n, saved);
    other.loop(2, [&](const Index&) {
      EXPECT_EQ(userErrorOf([&] { other.evaluate(m, saved); }),
                "instruction 1 (evaluate): the loop index i is used outside of the body of its "
                "loop");
    });
  });
  EXPECT_EQ(userErrorOf([&] { b.evaluate(n, saved); }),
            "instruction 2 (evaluate): the loop index i is used outside of the body of its loop");
  // The index of the second loop has the same name.
  b.loop(2, [&](const Index&) {
    EXPECT_EQ(userErrorOf([&] { b.evaluate(n, saved + 1); }),
              "instruction 3 (evaluate): the loop index i is used outside of the body of its loop");
  });
  EXPECT_EQ(userErrorOf([&] {
              b.tensor("y", {DType::F32, {saved}});
            }),
            "slot %y: the loop index i is used outside of the body of its loop");
  EXPECT_EQ(userErrorOf([&] { b.guardEqual(saved, 1, ""); }),
            "the loop index i is used outside of the body of its loop");
}

TEST(ProgramBuilderMisuse, KernelWithALoopIndexIsRefused) {
  ProgramBuilder b;
  b.loop(2, [&](const Index& i) {
    FusionBuilder fusion("f");
    fusion.output(fusion.pointwise("neg", {fusion.input("x", DType::F32, {i})}));
    EXPECT_EQ(userErrorOf([&] { b.kernel("k", std::move(fusion).build()); }),
              "kernel @k: a size contains the index of a loop");
  });
}

TEST(ProgramBuilderMisuse, KernelWithAnotherMeshIsRefused) {
  const Fusion segment = parseFusion(
      "heddle 1\nmesh @m = [x=2]\nfusion k(%x: f32[n] shard(@m)) {\n %y = neg(%x)\n return %y\n}");
  ProgramBuilder b;
  b.mesh({"m", {{MeshAxis::X, 3}}, {}});
  EXPECT_EQ(userErrorOf([&] { b.kernel("k", segment); }),
            "kernel @k: mesh @m = [x=2] differs from mesh @m = [x=3] of the program");
}

TEST(ProgramBuilderMisuse, RepeatedNameOfATokenOrEventIsRefused) {
  ProgramBuilder b;
  b.token("t");
  EXPECT_EQ(userErrorOf([&] { b.token("t"); }), "two tokens are called t");
  b.event("e");
  EXPECT_EQ(userErrorOf([&] { b.event("e"); }), "two events are called e");
}

TEST(ProgramBuilderMisuse, BuilderIsUnusableAfterBuild) {
  ProgramBuilder b;
  const SlotRef n = integer(b);
  b.evaluate(n, 1);
  std::move(b).build();
  EXPECT_EQ(userErrorOf([&] { b.evaluate(n, 1); }),
            "this ProgramBuilder has already built its program");
  EXPECT_EQ(userErrorOf([&] { std::move(b).build(); }),
            "this ProgramBuilder has already built its program");
}

TEST(ProgramBuilderMisuse, BuildInsideABodyIsRefused) {
  ProgramBuilder b;
  const MeshRef m = b.mesh({"m", {{MeshAxis::X, 2}}, {}});
  const auto build = [&] {
    EXPECT_EQ(userErrorOf([&] { std::move(b).build(); }),
              "program main: build() is called inside of a body");
  };
  b.loop(2, [&](const Index&) { build(); });
  b.group(build);
  b.on(m, build);
  EXPECT_EQ(countInstructions(std::move(b).build().body), 3);
}

TEST(ProgramBuilderMisuse, OnInsideOnIsRefused) {
  ProgramBuilder b;
  const MeshRef m = b.mesh({"m", {{MeshAxis::X, 2}}, {}});
  b.on(m, [&] {
    EXPECT_EQ(userErrorOf([&] { b.on(m, [] {}); }),
              "on @m: the body of another `on` cannot contain it");
  });
}

TEST(ProgramBuilderMisuse, ErrorInABodyDropsItsInstructions) {
  ProgramBuilder b;
  const SlotRef x = b.input("x", {DType::F32, {"n"}});
  const SlotRef n = integer(b, "count");
  const auto fail = [] { throw std::runtime_error("stop"); };
  EXPECT_THROW(b.loop(2,
                      [&](const Index&) {
                        b.check(x);
                        fail();
                      }),
               std::runtime_error);
  EXPECT_THROW(b.branch(
                   b.rank(), Predicate::Compare::Eq, 0, [&] { b.check(x); }, fail),
               std::runtime_error);
  EXPECT_THROW(b.group([&] {
    b.send(x, 0);
    fail();
  }),
               std::runtime_error);
  b.evaluate(n, 1);
  b.wait(b.send(x, 0));
  EXPECT_EQ(instructionTexts(std::move(b).build()),
            (std::vector<std::string>{"%count = evaluate 1", "$t0 = send %x to=0 stream=0",
                                      "wait $t0 stream=0"}));
}

TEST(ProgramBuilderMisuse, DeepNestingIsRefused) {
  ProgramBuilder b;
  std::function<void()> nest = [&] { b.loop(2, [&](const Index&) { nest(); }); };
  EXPECT_EQ(userErrorOf(nest), "bodies are nested deeper than 200");
}

}  // namespace
}  // namespace heddle::host::program_builder_misuse_test
