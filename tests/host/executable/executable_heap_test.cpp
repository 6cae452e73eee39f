// Tests how much heap memory runs and plans allocate.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "host/device/null/null_device.h"
#include "host/fusion_executor.h"
#include "host/prepared_run.h"
#include "host/text/program_text.h"
#include "host/unroll/unroll.h"
#include "ir/base/check.h"
#include "tests/host/count_heap.h"
#include "tests/host/executable_common.h"

namespace heddle::host::executable_heap_test {
namespace {

using testing::heapAllocations;
using testing::nullTensor;
using testing::programOf;

// Counts the allocations of repeated runs. The program is a loop with this body and `trips`
// iterations.
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
  return testing::allocationsOfRepeatedRuns([&] { executable.run(inputs).wait(); });
}

void expectNone(const std::string& body) {
  EXPECT_EQ(allocationsOfARun(body, 10), 0) << body;
  EXPECT_EQ(allocationsOfARun(body, 200), 0) << body;
}

// Two buffers take turns as the donated input, so the addresses change in every run.
TEST(ExecutableHeap, RunWithDonatedInputsAllocatesNoHeapMemory) {
  const auto device = makeNullDevice();
  FusionBuilder b("step");
  const ValueId w = b.input("w", DType::F32, {Size::symbol("n")});
  const ValueId g = b.input("g", DType::F32, {Size::symbol("n")});
  b.output(b.pointwise("sub", {w, g}));
  FusionExecutor executor(std::move(b).build(), {device.get(), nullptr, nullptr});
  static std::byte memory[3][64];
  const auto tensor = [&](size_t i) {
    return Tensor{memory[i], denseDesc(DType::F32, {16}), nullptr};
  };
  const std::vector<std::vector<Argument>> inputs = {{tensor(0), tensor(2)},
                                                     {tensor(1), tensor(2)}};
  RunOptions options;
  options.donated = {0};
  size_t next = 0;
  EXPECT_EQ(testing::allocationsOfRepeatedRuns([&] {
              const Outputs outputs = executor.run(inputs[next++ % 2], options);
              outputs.wait();
              EXPECT_EQ(outputs.aliased(0), (AliasedTensor{true, 0}));
            }),
            0);
}

// A run must find the program and the plan of known sizes without heap memory. Therefore a run
// allocates no memory, whether the previous run had the same sizes or others.
TEST(ExecutableHeap, FindingAProgramAllocatesNoHeapMemory) {
  const auto device = makeNullDevice();
  FusionBuilder b("twice");
  const ValueId x = b.input("x", DType::F32, {Size::symbol("n"), Size::symbol("m")});
  b.output(b.pointwise("add", {x, x}));
  FusionExecutor executor(std::move(b).build(), {device.get(), nullptr, nullptr});
  const std::vector<std::vector<Argument>> inputs = {
      {nullTensor({8, 8})}, {nullTensor({4, 6})}, {nullTensor({16, 2})}};
  std::vector<int64_t> made;
  for (int round = 0; round < 20; ++round) {
    for (const std::vector<Argument>& each : inputs) {
      executor.run(each).wait();
      const int64_t before = heapAllocations();
      executor.run(each).wait();  // the same sizes as in the previous run
      const int64_t again = heapAllocations();
      if (round > 14) made.push_back(again - before);
    }
    const int64_t before = heapAllocations();
    executor.run(inputs[0]).wait();  // other sizes were run in between
    if (round > 14) made.push_back(heapAllocations() - before);
  }
  for (int64_t each : made) EXPECT_EQ(each, 0);
  EXPECT_EQ(executor.stats().plans, 3);
}

// Adds up `inputs` tensors, with and without a preallocated output.
TEST(ExecutableHeap, RepeatedRunAllocatesNoHeapMemory) {
  const auto device = makeNullDevice();
  for (int inputs : {1, 8}) {
    FusionBuilder b("sum");
    ValueId sum = b.input("x0", DType::F32, {Size::symbol("n"), Size::symbol("m")});
    for (int i = 1; i < inputs; ++i) {
      const ValueId x =
          b.input(fmt::format("x{}", i), DType::F32, {Size::symbol("n"), Size::symbol("m")});
      sum = b.pointwise("add", {sum, x});
    }
    b.output(b.pointwise("neg", {sum}));
    b.output(b.pointwise("exp", {sum}));
    const Fusion fusion = std::move(b).build();
    const std::vector<Argument> arguments(static_cast<size_t>(inputs), nullTensor({4, 8}));
    FusionExecutor executor(fusion, {device.get()});
    Executable executable(compile(fusion, 1), {device.get()});
    PreparedRun prepared = executor.prepareRun(arguments);
    alignas(16) static char memory[4 * 8 * sizeof(float)];
    RunOptions options;
    options.preallocated = {{memory, denseDesc(DType::F32, {4, 8}), nullptr}};
    const auto expectZero = [&](const auto& run, const char* what) {
      EXPECT_EQ(testing::allocationsOfRepeatedRuns(run), 0) << what << ", inputs: " << inputs;
    };
    expectZero([&] { executor.run(arguments); }, "executor");
    expectZero([&] { executor.run(arguments).wait(); }, "executor, with wait()");
    expectZero([&] { executable.run(arguments); }, "executable");
    expectZero([&] { prepared.run(); }, "prepared run");
    expectZero([&] { executor.run(arguments, options); }, "preallocated output");
    Outputs kept = executor.run(arguments);
    expectZero([&] { kept = executor.run(arguments); }, "outputs kept until the next run");
  }
}

// Each Outputs that the caller keeps needs memory. After the caller has destroyed them, later runs
// reuse this memory.
TEST(ExecutableHeap, KeptOutputsCostMemoryOnlyOnce) {
  const auto device = makeNullDevice();
  FusionBuilder b("twice");
  const ValueId x = b.input("x", DType::F32, {Size::symbol("n")});
  b.output(b.pointwise("add", {x, x}));
  FusionExecutor executor(std::move(b).build(), {device.get()});
  const std::vector<Argument> inputs{nullTensor({8})};
  std::vector<Outputs> kept;
  kept.reserve(100);
  const auto keep = [&] {
    const int64_t before = heapAllocations();
    while (kept.size() < 100) kept.push_back(executor.run(inputs));
    return heapAllocations() - before;
  };
  EXPECT_GT(keep(), 0);
  kept.clear();
  EXPECT_EQ(keep(), 0);
}

// Counts the allocations of unroll() for 10,000 launches of a kernel with `guards` size guards.
int64_t allocationsOfUnrolling(int guards) {
  std::string text = "heddle 1\nkernel @k {\n  fusion k(%x: f32[n]) {\n";
  for (int i = 0; i < guards; ++i) text += fmt::format("    guard {} <= n \"test\"\n", i);
  const Program program = parseProgram(text + R"(
    %y = neg(%x)
    return %y
  }
}
program p(%x: f32[m]) -> (%y) with m = 500 {
  slot %y: f32[m]
  %y = allocate
  for i in 0 .. 10000 {
    launch @k(%x) -> (%y)
  }
}
)");
  const int64_t before = heapAllocations();
  unroll(program, {});
  return heapAllocations() - before;
}

// The check of one guard allocates memory. The launches of a kernel with the same sizes must check
// each guard once, not 10,000 times.
TEST(ExecutableHeap, LaunchesWithTheSameSizesCheckGuardsOnce) {
  const int64_t first = allocationsOfUnrolling(1);
  EXPECT_GT(allocationsOfUnrolling(400), first + 399);
  EXPECT_LT(allocationsOfUnrolling(400), first + 10000);
}

TEST(ExecutableHeap, CounterCountsAllocations) {
  const int64_t before = heapAllocations();
  // The pointer is volatile, because a compiler may remove an unused pair of new and delete.
  int* volatile kept = new int(1);
  delete kept;
  EXPECT_EQ(heapAllocations() - before, 1);
}

TEST(ExecutableHeap, InstructionsAllocateNoHeapMemory) {
  expectNone("%s = evaluate 2*i + 1  launch @add(%y, %s) -> (%y) stream=0");
  expectNone("%s = evaluate 2*i + 1  %d = evaluate mul(%s, %s)");
  expectNone("call_library matmul(%x, %y) -> (%t) stream=0");
  expectNone("copy %x -> %y stream=0");
  expectNone(
      "$t = communicate allreduce %y -> %y team=@m op=sum stream=0  "
      "wait $t stream=0");
  expectNone(
      "!e = record_event stream=0  wait_event !e stream=1  "
      "!b = record_event stream=1  wait_event !b stream=0");
  expectNone("%v = alias %x permute=[1, 0]  copy %x -> %y stream=0");
  expectNone(
      "%f = read_back %flag stream=0  "
      "if %f > 0 { copy %x -> %y stream=0 }");
}

}  // namespace
}  // namespace heddle::host::executable_heap_test
