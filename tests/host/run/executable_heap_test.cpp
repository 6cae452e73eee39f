// Tests that the number of heap allocations of a repeated run does not depend on the number of
// instructions.
#include <gtest/gtest.h>

#include "host/device/null/null_device.h"
#include "host/fusion_executor.h"
#include "tests/host/count_heap.h"
#include "tests/host/executable_common.h"

namespace heddle::host::executable_heap_test {
namespace {

using testing::heapAllocations;
using testing::nullTensor;
using testing::programOf;

// Counts the allocations of one run, after some earlier runs. The program is a loop with this body
// and `trips` iterations.
int64_t allocationsOfARun(const std::string& body, int trips) {
  const auto device = makeNullDevice();
  Executable executable(programOf(fmt::format(R"(
mesh @m = [x=1]
kernel @add {{
  fusion add(%y: f32[n, n], %s: f64) {{
    %z = add(%y, %s)
    return %z
  }}
}}
program p(%x: f32[n, n], %flag: i64[1]) -> (%y) with n = 4 {{
  slot %y: f32[n, n]
  slot %t: f32[n, n]
  slot %v: f32[n, n]
  slot %s: f64
  slot %d: f64
  slot %f: i64
  %y = allocate stream=0
  %t = allocate stream=0
  for i in 0 .. {} {{
    {}
  }}
  free %t stream=0
}}
)",
                                              trips, body)),
                        {device.get(), nullptr, nullptr});
  const std::vector<Argument> inputs{nullTensor({8, 8}), nullTensor({1}, DType::I64)};
  for (int i = 0; i < 3; ++i) executable.run(inputs).wait();
  const int64_t before = heapAllocations();
  executable.run(inputs).wait();
  return heapAllocations() - before;
}

void expectNoneAnInstruction(const std::string& body) {
  const int64_t few = allocationsOfARun(body, 10);
  EXPECT_EQ(allocationsOfARun(body, 200), few) << body;
  EXPECT_LT(few, 20) << body;
}

// A run must find the program and the plan of known sizes without heap memory. A run after other
// sizes therefore makes as many allocations as a run that repeats the sizes.
TEST(ExecutableHeap, FindingAProgramAllocatesNoHeapMemory) {
  const auto device = makeNullDevice();
  FusionBuilder b("twice");
  const ValueId x = b.input("x", DType::F32, {Size::symbol("n"), Size::symbol("m")});
  b.output(b.pointwise("add", {x, x}));
  FusionExecutor executor(std::move(b).build(), {device.get(), nullptr, nullptr});
  const std::vector<std::vector<Argument>> inputs = {
      {nullTensor({8, 8})}, {nullTensor({4, 6})}, {nullTensor({16, 2})}};
  std::vector<int64_t> made;
  for (int round = 0; round < 4; ++round) {
    for (const std::vector<Argument>& each : inputs) {
      executor.run(each).wait();
      const int64_t before = heapAllocations();
      executor.run(each).wait();  // the same sizes as in the previous run
      const int64_t again = heapAllocations();
      if (round > 1) made.push_back(again - before);
    }
    const int64_t before = heapAllocations();
    executor.run(inputs[0]).wait();  // other sizes were run in between
    if (round > 1) made.push_back(heapAllocations() - before);
  }
  for (int64_t each : made) EXPECT_EQ(each, made.front());
  EXPECT_LT(made.front(), 20);
  EXPECT_EQ(executor.stats().plans, 3);
}

TEST(ExecutableHeap, CounterCountsAllocations) {
  const int64_t before = heapAllocations();
  // The pointer is volatile, because a compiler may remove an unused pair of new and delete.
  int* volatile kept = new int(1);
  delete kept;
  EXPECT_EQ(heapAllocations() - before, 1);
}

TEST(ExecutableHeap, InstructionsAllocateNoHeapMemory) {
  expectNoneAnInstruction("%s = evaluate 2*i + 1  launch @add(%y, %s) -> (%y) stream=0");
  expectNoneAnInstruction("%s = evaluate 2*i + 1  %d = evaluate mul(%s, %s)");
  expectNoneAnInstruction("call_library matmul(%x, %y) -> (%t) stream=0");
  expectNoneAnInstruction("copy %x -> %y stream=0");
  expectNoneAnInstruction(
      "$t = communicate allreduce %y -> %y team=@m op=sum stream=0  "
      "wait $t stream=0");
  expectNoneAnInstruction(
      "!e = record_event stream=0  wait_event !e stream=1  "
      "!b = record_event stream=1  wait_event !b stream=0");
  expectNoneAnInstruction("%v = alias %x permute=[1, 0]  copy %x -> %y stream=0");
  expectNoneAnInstruction(
      "%f = read_back %flag stream=0  "
      "if %f > 0 { copy %x -> %y stream=0 }");
}

}  // namespace
}  // namespace heddle::host::executable_heap_test
