// Tests the list of values that a run finds out only when it starts.
#include "host/unroll/late_values.h"

#include <gtest/gtest.h>

#include "tests/host/executable_common.h"

namespace heddle::host::late_values_test {
namespace {

std::string lateValuesOf(const std::string& text, const SizeBindings& sizes) {
  const Program program = testing::programOf(text);
  UnrollRequest request{sizes, {}, 0, 1};
  request.late = lateInputsOf(program);
  return describeLateValues(program, unroll(program, request));
}

// Returns the words of each line, so that the test does not depend on the columns.
std::string withSingleSpaces(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c != ' ' || (!result.empty() && result.back() != ' ')) result += c;
  }
  return result;
}

TEST(LateValues, AddressesScalarsAndOutputsAreListed) {
  const std::string text = lateValuesOf(R"(
kernel @k {
  fusion k(%row: f32[1, n], %seed: i64) {
    %y = mul(%row, %seed)
    return %y
  }
}
program p(%cache: f32[t, n], %i: i64, %seed: i64) -> (%y, %row, %first, %seed) with t = 8, n = 3 {
  slot %row: f32[1, n]
  slot %first: f32[1, n]
  slot %y: f32[1, n]
  %row = alias %cache slice starts=[%i, 0] stops=[%i + 1, n]
  %first = alias %cache slice starts=[2, 0] stops=[3, n]
  %y = allocate stream=0
  launch @k(%row, %seed) -> (%y) stream=0
}
)",
                                        {{"t", 8}, {"n", 3}, {"%i", 4}, {"%seed", 1}});
  EXPECT_EQ(withSingleSpaces(text),
            "address %cache input 0\n"
            "address view %cache + 12 bytes * %i\n"
            "scalar %i input 1, from 0 to 7\n"
            "scalar %seed input 2\n"
            "output %y allocated, 12 bytes\n"
            "output %row in the memory of input 0: %cache + 12 bytes * %i\n"
            "output %first in the memory of input 0: %cache + 24 bytes\n"
            "output %seed scalar\n");
}

// The host reads the value of a tensor without axes, so the run passes no address of it.
TEST(LateValues, TensorsOnTheHostAreScalars) {
  const std::string text = lateValuesOf(R"(
program p(%x: f32[t, u], %i: i64[], %n: i32[]) -> (%row, %head) with t = 8, u = 3 {
  slot %row: f32[1, u]
  slot %head: f32[%n, u]
  %row = alias %x slice starts=[%i, 0] stops=[%i + 1, u]
  %head = alias %x slice starts=[0, 0] stops=[%n, u]
}
)",
                                        {{"t", 8}, {"u", 3}, {"%i", 4}, {"%n", 2}});
  EXPECT_EQ(withSingleSpaces(text),
            "address %x input 0\n"
            "address view %x + 12 bytes * %i\n"
            "scalar %i input 1, from 0 to 7\n"
            "scalar %n input 2, decides a size: a new value needs a new plan\n"
            "output %row in the memory of input 0: %x + 12 bytes * %i\n"
            "output %head in the memory of input 0: %x\n");
}

TEST(LateValues, ScalarThatDecidesASizeIsNotLate) {
  const std::string text = lateValuesOf(R"(
program p(%x: f32[t], %i: i64) -> (%head) with t = 8 {
  slot %head: f32[%i]
  %head = alias %x slice starts=[0] stops=[%i]
}
)",
                                        {{"t", 8}, {"%i", 4}});
  EXPECT_EQ(withSingleSpaces(text),
            "address %x input 0\n"
            "scalar %i input 1, decides a size: a new value needs a new plan\n"
            "output %head in the memory of input 0: %x\n");
}

// A kernel writes the row, which has one element per column, whatever the value of %i is.
TEST(LateValues, OffsetThatAKernelWritesIsLate) {
  const std::string text = lateValuesOf(R"(
kernel @k {
  fusion k(%x: f32[1, n]) {
    %y = neg(%x)
    return %y
  }
}
program p(%cache: f32[t, n], %x: f32[1, n], %i: i64) -> (%cache) with t = 8, n = 3 {
  slot %row: f32[1, n]
  %row = alias %cache slice starts=[%i, 0] stops=[%i + 1, n]
  launch @k(%x) -> (%row) stream=0
}
)",
                                        {{"t", 8}, {"n", 3}, {"%i", 4}});
  EXPECT_EQ(withSingleSpaces(text),
            "address %cache input 0\n"
            "address %x input 1\n"
            "address view %cache + 12 bytes * %i\n"
            "scalar %i input 2, from 0 to 7\n"
            "output %cache in the memory of input 0: %cache\n");
}

// The distance of the rows would decide whether the kernel overwrites elements before it reads
// them.
TEST(LateValues, OffsetsOfReadAndWrittenRowsOfOneBufferNeedPlans) {
  const std::string text = lateValuesOf(R"(
kernel @k {
  fusion k(%x: f32[1, n]) {
    %y = neg(%x)
    return %y
  }
}
program p(%cache: f32[t, n], %i: i64) -> (%cache) with t = 8, n = 3 {
  slot %row: f32[1, n]
  slot %next: f32[1, n]
  %row = alias %cache slice starts=[%i, 0] stops=[%i + 1, n]
  %next = alias %cache slice starts=[7, 0] stops=[8, n]
  launch @k(%row) -> (%next) stream=0
}
)",
                                        {{"t", 8}, {"n", 3}, {"%i", 4}});
  EXPECT_NE(withSingleSpaces(text).find("scalar %i input 1, decides an offset"), std::string::npos)
      << text;
}

// The address is no linear expression of %i.
TEST(LateValues, SquareOfAScalarNeedsPlans) {
  const std::string text = lateValuesOf(
      "program p(%x: f32[t], %i: i64) -> (%y) with t = 8 {\n  slot %y: f32[2]\n"
      "  %y = alias %x slice starts=[%i * %i] stops=[%i * %i + 2]\n}\n",
      {{"t", 8}, {"%i", 2}});
  EXPECT_NE(withSingleSpaces(text).find(
                "scalar %i input 1, decides an offset or an index: a new value needs a new plan\n"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace heddle::host::late_values_test
