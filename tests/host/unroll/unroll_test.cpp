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

TEST(Unroll, ReshapeThatIsNoViewIsReported) {
  const Program program = programOf("(%x: f32[4, 6]) -> ()",
                                    "slot %p: f32[6, 4]\nslot %r: f32[24]\n"
                                    "%p = alias %x permute=[1, 0]\n%r = alias %p reshape\n");
  const std::string error = errorOf(program);
  EXPECT_NE(error.find("instruction 1 `%r = alias %p reshape`"), std::string::npos) << error;
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
  const std::string error =
      errorOf(programOf("(%x: f32[3], %n: i64 = 1) -> ()",
                        "slot %v: f32[3]\nif %n > 0 { %v = alias %x }\ncheck %v\n"));
  EXPECT_NE(error.find("decided at run time"), std::string::npos) << error;
}

// A scalar or list has a value after a branch if it had one before, or if both bodies give it one.
TEST(Unroll, ScalarsOfOneBranchAreUndefinedAfterIt) {
  const auto after = [](const std::string& branch) {
    return errorOf(
        programOf("(%x: i64[1], %n: i64 = 1) -> ()",
                  "slot %l: list i64[1]\nslot %s: i64\nslot %y: i64[1]\n%y = allocate\n" + branch +
                      "\n$t = communicate all_to_all_v %x -> %y send_counts=%l "
                      "recv_counts=%l\nwait $t\nif %s > 0 { }\nfree %y\n"));
  };
  const std::string list = "%l = read_back %x ", scalar = "%s = evaluate 1 ";
  const std::string missing = ": it was defined in a branch that is decided at run time";
  EXPECT_NE(
      after(scalar + "if %n > 0 { " + list + "}").find("%l is used before it is defined" + missing),
      std::string::npos);
  EXPECT_NE(after(list + "if %n > 0 { } else { " + scalar + "}")
                .find("%s is used before it is defined" + missing),
            std::string::npos);
  const std::string neither = after(scalar + "if %n > 0 { " + list + "} else { }");
  EXPECT_NE(neither.find("%l is used before it is defined" + missing), std::string::npos)
      << neither;
  const std::string inner = "if %n > 1 { " + list + "} else { " + list + "} ";
  EXPECT_EQ(after(scalar + "if %n > 0 { " + list + scalar + "} else { " + inner + "}"), "no error");
  EXPECT_EQ(after(scalar + list + "if %n > 0 { " + list + "}"), "no error");
  EXPECT_EQ(after(scalar + list + "if %n > 0 { } else { " + list + "}"), "no error");
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

TEST(Unroll, ErrorsNameTheInstruction) {
  const auto failsWith = [](const std::string& body, const std::string& expected) {
    const std::string error = errorOf(programOf("(%x: f32[3]) -> ()", body));
    EXPECT_NE(error.find(expected), std::string::npos) << error;
  };
  failsWith("slot %w: f32[]\n%w = alias %x[3]\n", "index 3 = 3 of %x");
  failsWith("slot %w: f32[3]\ncheck %w\n", "`check %w stream=0`: %w is used before it is defined");
  failsWith("$t = send %x to=rank + 1\n", "peer rank + 1 = 1 in a team of 1");
  failsWith("slot %w: f32[4]\n%w = allocate\ncopy %x -> %w\n",
            "a copy of [3] to [4]: the sizes must be equal");
  failsWith("slot %n: i64\nfor i in 0 .. 100000000 { %n = evaluate i }\n",
            "program main takes 200000000 steps on rank 0, and at most 1000000 are allowed");
  failsWith(
      "slot %p: i64[9*i + 1]\nslot %l: list i64[9*i + 1]\n"
      "for i in 0 .. 2 {\n%p = allocate\n%l = read_back %p\n}\n",
      "%l: a list of 10 elements here and of 1 before");
}

// Parses a program of one kernel @k. `kernel` is the signature and the body of the kernel.
Program launching(const std::string& kernel, const std::string& program) {
  return parseProgram("heddle 1\nkernel @k {\n  fusion k" + kernel + "\n}\nprogram main" + program);
}

// Launches a kernel that pads its operand of q elements and sums the result.
std::string padError(const std::string& attrs, const std::string& size) {
  return errorOf(launching("(%a: f32[q, 4]) {\n    %b = pad(%a, " + attrs +
                               ")\n    %c = sum(%b)\n"
                               "    return %c\n  }",
                           "(%x: f32[m, 4]) -> (%y) with m = " + size +
                               " {\n  slot %y: f32[]\n"
                               "  %y = allocate\n  launch @k(%x) -> (%y)\n}\n"));
}

TEST(Unroll, WrongSizesInsideAKernelAreReported) {
  const std::string where = "instruction 1 `launch @k(%x) -> (%y) stream=0`: kernel k: ";
  EXPECT_EQ(padError("lows=[-3, 0], highs=[-3, 0]", "6"), "no error");
  EXPECT_EQ(padError("lows=[-3, 0], highs=[-3, 0]", "4"),
            where + "axis 0 of %b at line 4 has the size q + (-3) + (-3) = -2");
  EXPECT_EQ(padError("lows=[9223372036854775807, 0], highs=[1, 0]", "4")
                .find(where + "axis 0 of %b at line 4: size 'q + 9223372036854775807' overflows"),
            0u);
  EXPECT_EQ(padError("lows=[9223372036854775800, 0], highs=[1, 0]", "4"),
            where + "%b at line 4 of [9223372036854775805, 4] does not fit in 64 bits");
}

// n*n*n is the size of the operand, and n of the program is not n of the kernel.
TEST(Unroll, KernelSymbolsAreNotThoseOfTheProgram) {
  EXPECT_EQ(errorOf(launching("(%a: f32[n*n*n]) {\n    %c = neg(%a)\n    return %c\n  }",
                              "(%x: f32[m], %b: f32[n]) -> (%y) with m = 8, n = 10000000 {\n"
                              "  slot %y: f32[m]\n  %y = allocate\n"
                              "  launch @k(%x) -> (%y)\n}\n")),
            "no error");
}

// The operands do not determine n and k, but n and k of the program give them the right size.
TEST(Unroll, SymbolsOfTheProgramAreUsedIfTheyFitTheOperands) {
  const std::string kernel =
      "(%a: f32[n*k]) {\n    %b = pad(%a, lows=[-3], highs=[-3])\n    %c = sum(%b)\n"
      "    return %c\n  }";
  const std::string error =
      errorOf(launching(kernel,
                        "(%x: f32[n*k]) -> (%y) with n = 2, k = 2 {\n  slot %y: f32[]\n"
                        "  %y = allocate\n  launch @k(%x) -> (%y)\n}\n"));
  EXPECT_NE(error.find("%b at line 4 has the size n*k + (-3) + (-3) = -2"), std::string::npos)
      << error;
}

TEST(Unroll, EveryNewSizeInsideAKernelIsChecked) {
  const std::string error =
      errorOf(launching("(%a: f32[q]) {\n    %b = pad(%a, lows=[-3], highs=[-3])\n"
                        "    %c = sum(%b)\n    return %c\n  }",
                        "(%x: f32[8]) -> (%y) {\n  slot %y: f32[]\n  slot %s: f32[8 - i]\n"
                        "  %y = allocate\n  for i in 0 .. 4 {\n"
                        "    %s = alias %x slice starts=[i] stops=[8]\n"
                        "    launch @k(%s) -> (%y)\n  }\n}\n"));
  EXPECT_NE(error.find("has the size q + (-3) + (-3) = -1"), std::string::npos) << error;
}

// The program declares the memory order of its input. It must apply even if the caller passes no
// descriptor of the input.
TEST(Unroll, ObservedOrderGivesTheStrides) {
  const Program program = programOf("(%x: f32[2, 3] order=[1, 0]) -> (%x)", "check %x\n");
  EXPECT_EQ(unroll(program, {{}, {}, 0, 1}).outputs[0].desc.strides, (std::vector<int64_t>{1, 2}));
}

}  // namespace
}  // namespace heddle::host::unroll_test
