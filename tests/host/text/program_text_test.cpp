#include "host/text/program_text.h"

#include <gtest/gtest.h>

#include "ir/base/error.h"
#include "tests/host/example_files.h"

namespace heddle::host::program_text_test {
namespace {

constexpr const char* kAll = R"(heddle 1
program other(%a: f32[u]) -> (%b) {
  slot %b: f32[u]
  %b = allocate stream=0
  copy %a -> %b stream=0
}
mesh @m = [y=2, x=ranks]
kernel @k0 {
  fusion k0(%x: f32[t, h], %s: f64) {
    %y = mul(%x, %s)
    return %y
  }
}
program main(%x: f32[t, h], %s: f64 = 1.0) -> (%y)
    with t = 4, h = 8 {
  guard t == 4 "a \"quoted\" source"
  slot %y: f32[t, h]
  slot %z: f32[t, h] shard(@m, 0: [y, x]) alloc=[ceildiv(t, 2), h]
  slot %n: i64
  slot %c: f64
  slot %f: f32[4*h]
  %y = allocate stream=0
  launch @k0(%x, %s) -> (%y) stream=3
  %f = alias %y reshape
  %f = alias %y permute=[1, 0]
  %f = alias %y slice starts=[0, 1] stops=[t, h - 1]
  %f = alias %y slice starts=[0, 1] stops=[t, h] steps=[1, 2]
  %f = alias %y[(n + 1) % 2]
  %z = alias %y shard
  %z = alias %y unpad
  %z = alias %y
  %n = evaluate i64(-3)
  %n = evaluate -3
  %c = evaluate -inf
  %c = evaluate 0.1
  %c = evaluate mul(%c, %s)
  call_library matmul(%x, %x) -> (%y) stream=0
  copy %x -> %y stream=0
  $t0 = communicate allgather %x -> %y team=@m[y, x] stream=1
  $t0 = communicate reduce_scatter %x -> %y op=max ctas=16 lane=2 stream=1
  group_begin
  send %x to=(rank + 1) % ranks team=@m[x] stream=1
  recv %y from=0 team=@m stream=1
  $"odd name" = group_end
  wait $t0 stream=0
  !e0 = record_event stream=0
  wait_event !e0 stream=1
  %n = read_back %x stream=0
  for i in 0 .. ranks - 1 {
    if %n >= 3 {
      check %y stream=0
    } else {
      print %y stream=0
    }
  }
  call @other(%f) -> (%f)
  on @m: free %y stream=0
}
)";

TEST(ProgramText, TextRoundTrips) {
  const Program program = parseProgram(kAll);
  EXPECT_EQ(print(program), kAll);
  EXPECT_TRUE(sameProgram(parseProgram(print(program)), program));
}

TEST(ProgramText, ExamplesRoundTrip) {
  for (const char* name : {"ring_allgather.hostir", "in_place_loop.hostir"}) {
    const Program program = testing::programExample(name);
    const std::string text = print(program);
    EXPECT_EQ(print(parseProgram(text)), text) << name;
    EXPECT_TRUE(sameProgram(parseProgram(text), program)) << name;
  }
}

TEST(ProgramText, DifferentProgramsAreNotTheSame) {
  const Program program = parseProgram(kAll);
  Program other = program;
  std::get<LaunchKernel>(other.body[1].op).stream = StreamId(2);
  EXPECT_FALSE(sameProgram(program, other));
  other = program;
  other.slots.back().tensor.dtype = DType::BF16;
  EXPECT_FALSE(sameProgram(program, other));
  other = program;
  other.body.front().line += 7;
  EXPECT_TRUE(sameProgram(program, other));
}

TEST(ProgramText, InstructionTextsFollowTheInstructionIndex) {
  const Program program = parseProgram(kAll);
  const std::vector<std::string> texts = instructionTexts(program);
  ASSERT_EQ(texts.size(), static_cast<size_t>(countInstructions(program.body)));
  EXPECT_EQ(texts[0], "%y = allocate stream=0");
  EXPECT_EQ(texts[28], "if %n >= 3");
  EXPECT_EQ(texts.back(), "on @m: free %y stream=0");
}

std::string errorOf(const std::string& text) {
  try {
    parseProgram(text, "f");
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ProgramText, DeepNestingIsRefused) {
  std::string text = "heddle 1\nprogram main() -> () {\n";
  for (int i = 0; i < 5000; ++i) text += "if 1 == 1 {\n";
  EXPECT_NE(errorOf(text).find("nested deeper than"), std::string::npos);
}

TEST(ProgramText, TruncatedTextIsRefused) {
  const std::string text = kAll;
  // The text is truncated at positions after `mesh`. A shorter text could be the first program
  // alone, which is a complete file.
  for (size_t n = text.find("mesh") + 1; n + 2 < text.size(); n += 3)
    EXPECT_NE(errorOf(text.substr(0, n)), "no error");
}

TEST(ProgramText, FileHoldsAFusionOrAProgram) {
  EXPECT_TRUE(std::holds_alternative<Program>(parseFile(kAll, "f")));
  const auto fusion =
      parseFile("heddle 1\nmesh @m = [x=2]\nfusion f(%x: f32[t]) {\n return %x\n}\n", "f");
  EXPECT_TRUE(std::holds_alternative<Fusion>(fusion));
}

}  // namespace
}  // namespace heddle::host::program_text_test
