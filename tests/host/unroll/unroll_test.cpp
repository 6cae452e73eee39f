#include "host/unroll/unroll.h"

#include <gtest/gtest.h>

#include "host/text/program_text.h"
#include "ir/base/check.h"

namespace heddle::host::unroll_test {
namespace {

Program programOf(const std::string& head, const std::string& body) {
  return parseProgram("heddle 1\nmesh @m = [x=ranks]\nprogram main" + head + " {\n" + body + "}\n");
}

std::string errorOf(const Program& program, const UnrollRequest& request = {}) {
  try {
    unroll(program, request);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Unroll, AliasesResolveToByteOffsets) {
  const Program program = programOf("(%x: f32[4, 6] shard(@m)) -> ()", R"(
    slot %p: f32[6, 4]
    slot %s: f32[2, 3]
    slot %r: f32[24]
    slot %i: f32[6]
    slot %d: f32[4, 6] shard(@m, 0: x)
    %p = alias %x permute=[1, 0]
    %s = alias %x slice starts=[1, 2] stops=[3, 5]
    %r = alias %x reshape
    %i = alias %x[3]
    %d = alias %x shard
)");
  // The three ranks have blocks of 2, 2 and 0 rows.
  const Unrolled out = unroll(program, {{}, {}, 2, 3});
  ASSERT_EQ(out.steps.size(), 5u);
  const auto view = [&](size_t i) { return out.steps[i].outputs[0]; };
  EXPECT_EQ(view(0).desc.strides, (std::vector<int64_t>{1, 6}));
  EXPECT_EQ(view(1).byte_offset, (1 * 6 + 2) * 4);
  EXPECT_EQ(view(1).desc.strides, (std::vector<int64_t>{6, 1}));
  EXPECT_EQ(view(2).desc.sizes, (std::vector<int64_t>{24}));
  EXPECT_EQ(view(3).byte_offset, 3 * 6 * 4);
  EXPECT_EQ(view(4).desc.sizes, (std::vector<int64_t>{0, 6}));
  const Unrolled second = unroll(program, {{}, {}, 1, 3});
  EXPECT_EQ(second.steps[4].outputs[0].byte_offset, 2 * 6 * 4);
}

TEST(Unroll, LoopsAreExpandedForOneRank) {
  const Program program = programOf("(%x: f32[2, 3]) -> (%n)", R"(
    slot %n: i64
    slot %w: f32[3]
    for i in 0 .. 3 {
      %w = alias %x[i % 2]
      if rank == 1 { %n = evaluate 2*i + 1 } else { %n = evaluate 0 }
    }
)");
  const Unrolled out = unroll(program, {{}, {}, 1, 2});
  ASSERT_EQ(out.steps.size(), 6u);
  EXPECT_EQ(out.steps[2].outputs[0].byte_offset, 12);
  EXPECT_EQ(out.steps[4].outputs[0].byte_offset, 0);
  EXPECT_EQ(out.steps[5].known, Scalar(int64_t{5}));
  // Instructions are numbered in text order: for 0, alias 1, if 2, then branch 3.
  EXPECT_EQ(out.steps[5].index, 3);
  EXPECT_EQ(unroll(program, {{}, {}, 0, 2}).steps[5].index, 4);
}

TEST(Unroll, RunTimeBranchBecomesJumps) {
  const Program program = programOf("(%x: f32[3], %n: i64 = 1) -> ()", R"(
    if %n > 0 { check %x } else { print %x print %x }
    check %x
)");
  const Unrolled out = unroll(program, {});
  ASSERT_EQ(out.steps.size(), 6u);
  EXPECT_EQ(out.steps[0].jump, 3);
  EXPECT_EQ(out.steps[2].instruction, nullptr);
  EXPECT_EQ(out.steps[2].jump, 5);
}

TEST(Unroll, CallsAreInlinedWithTheCallersSizes) {
  const Program program = parseProgram(R"(heddle 1
program twice(%a: f32[u]) -> (%b) {
  slot %b: f32[u]
  %b = allocate
  copy %a -> %b
}
program main(%x: f32[2*t]) -> (%y) {
  slot %y: f32[2*t]
  call @twice(%x) -> (%y)
}
)");
  const Unrolled out = unroll(program, {{{"t", 5}}, {}, 0, 1});
  ASSERT_NE(out.inlined, nullptr);
  EXPECT_EQ(out.buffers.at(BufferId(1)).bytes, 40);
  EXPECT_EQ(out.outputs[0].buffer, BufferId(1));
}

TEST(Unroll, PaddedBlocksAllocateTheRoundedUpSize) {
  const Program program = programOf("(%x: f32[5] shard(@m, 0: x)) -> ()", "check %x\n");
  const TensorDesc desc = describe(program.slots.front(), program.meshes, {}, 1, 2);
  EXPECT_EQ(desc.sizes, (std::vector<int64_t>{2}));
  EXPECT_EQ(desc.alloc, (std::vector<int64_t>{3}));
  EXPECT_EQ(desc.offset, (std::vector<int64_t>{3}));
  TensorDesc wrong = desc;
  wrong.sizes = {3};
  EXPECT_NE(errorOf(program, {{}, {wrong}, 1, 2}).find("input %x has the local sizes [2], got [3]"),
            std::string::npos);
}

// The program declares the memory order of its input. It must apply even if the caller passes no
// descriptor of the input.
TEST(Unroll, ObservedOrderGivesTheStrides) {
  const Program program = programOf("(%x: f32[2, 3] order=[1, 0]) -> (%x)", "check %x\n");
  EXPECT_EQ(unroll(program, {{}, {}, 0, 1}).outputs[0].desc.strides, (std::vector<int64_t>{1, 2}));
}

}  // namespace
}  // namespace heddle::host::unroll_test
