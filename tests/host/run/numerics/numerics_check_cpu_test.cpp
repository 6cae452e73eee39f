// Tests the report of ExecutableOptions::check_numerics on programs whose results are known.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "host/device/cpu/cpu_device.h"
#include "host/device/null/null_device.h"
#include "host/fusion_executor.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"
#include "tests/host/on_ranks.h"

namespace heddle::host::numerics_check_cpu_test {
namespace {

using testing::deviceFloats;
using testing::programOf;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

constexpr const char* kLogThenSum = R"(
kernel @log {
  fusion log(%a: f32[n]) {
    %b = log(%a)
    return %b
  }
}
kernel @sum {
  fusion sum(%b: f32[n]) {
    %c = add(%b, %b)
    return %c
  }
}
program p(%x: f32[n]) -> (%z) with n = 4 {
  slot %y: f32[n]
  slot %z: f32[n]
  %y = allocate
  launch @log(%x) -> (%y)
  %z = allocate
  launch @sum(%y) -> (%z)
  free %y
}
)";

// Runs the program with one input, and returns the report.
std::string reportOf(const std::string& text, const std::vector<float>& x, bool checks = true) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = 7});
  ExecutableOptions options;
  options.check_numerics = checks;
  Executable executable(programOf(text), {device.get(), nullptr, nullptr}, options);
  const Tensor input = deviceFloats(*device, x, {static_cast<int64_t>(x.size())});
  const Outputs outputs = executable.run({input});
  outputs.wait();
  return outputs.numerics();
}

TEST(NumericsCheck, FirstInstructionThatMadeNanIsNamed) {
  EXPECT_EQ(reportOf(kLogThenSum, {1, -1, 2, 0}),
            "rank 0: instruction 1 (launch @log(%x) -> (%y) stream=0) wrote NaN or infinity to %y "
            "(op log): 2 of 4 elements (1 NaN, 1 infinite), the first at [1]; everything that it "
            "read was finite");
}

TEST(NumericsCheck, FiniteRunsAndRunsWithoutTheCheckReportNothing) {
  EXPECT_EQ(reportOf(kLogThenSum, {1, 2, 3, 4}), "");
  EXPECT_EQ(reportOf(kLogThenSum, {1, -1, 2, 0}, false), "");
}

// The second line names the instruction that made bad elements from finite ones.
TEST(NumericsCheck, BadInputsAreSeparatedFromBadResults) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = 7});
  ExecutableOptions options;
  options.check_numerics = true;
  Executable executable(programOf(R"(
kernel @double {
  fusion double(%a: f32[n]) {
    %b = add(%a, %a)
    return %b
  }
}
kernel @log {
  fusion log(%a: f32[n]) {
    %b = log(%a)
    return %b
  }
}
program p(%x: f32[n], %v: f32[n]) -> (%y, %z) with n = 3 {
  slot %y: f32[n]
  slot %z: f32[n]
  %y = allocate
  launch @double(%x) -> (%y)
  %z = allocate
  launch @log(%v) -> (%z)
}
)"),
                        {device.get(), nullptr, nullptr}, options);
  const auto reportOf = [&](const std::vector<float>& x, const std::vector<float>& v) {
    const Outputs outputs =
        executable.run({deviceFloats(*device, x, {3}), deviceFloats(*device, v, {3})});
    outputs.wait();
    return outputs.numerics();
  };
  const std::string passed_on =
      "rank 0: instruction 1 (launch @double(%x) -> (%y) stream=0) wrote NaN or infinity to %y (op "
      "add): 1 of 3 elements (0 NaN, 1 infinite), the first at [1]; bad before it: %x: 1 of 3 "
      "elements (0 NaN, 1 infinite), the first at [1]";
  EXPECT_EQ(reportOf({1, kInfinity, 3}, {1, 2, 3}), passed_on);
  EXPECT_EQ(reportOf({1, kInfinity, 3}, {1, 2, -3}),
            passed_on +
                "\nrank 0: instruction 3 (launch @log(%v) -> (%z) stream=0) wrote NaN or infinity "
                "to %z (op log): 1 of 3 elements (1 NaN, 0 infinite), the first at [2]; everything "
                "that it read was finite");
  EXPECT_EQ(reportOf({1, 2, 3}, {1, 2, 3}), "");
}

TEST(NumericsCheck, BadResultOfALoopNamesTheExecution) {
  // Each iteration squares the first element: 1e5 becomes 1e10, 1e20 and infinity. Only the third
  // execution writes infinity although it reads finite values.
  const std::string report = reportOf(R"(
kernel @square {
  fusion square(%a: f32[n]) {
    %b = mul(%a, %a)
    return %b
  }
}
program p(%x: f32[n]) -> (%y) with n = 2 {
  slot %y: f32[n]
  slot %z: f32[n]
  %y = allocate
  %z = allocate
  copy %x -> %y
  for i in 0 .. 4 {
    launch @square(%y) -> (%z)
    copy %z -> %y
  }
  free %z
}
)",
                                      {1e5F, 1});
  EXPECT_EQ(report,
            "rank 0: instruction 4 (launch @square(%y) -> (%z) stream=0), execution 3, wrote NaN "
            "or infinity to %z (op mul): 1 of 2 elements (0 NaN, 1 infinite), the first at [0]; "
            "everything that it read was finite");
}

TEST(NumericsCheck, RanksReportWhatTheyContributedAndReceived) {
  const Program program = programOf(R"(
mesh @m = [x=ranks]
program p(%x: f32[n]) -> (%y) with n = 2 {
  slot %y: f32[n]
  %y = allocate
  $t = communicate allreduce %x -> %y team=@m[x] op=sum
  wait $t
}
)");
  std::vector<std::string> reports(3);
  const auto errors = testing::onRanks(3, [&](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = 7});
    ExecutableOptions options;
    options.check_numerics = true;
    Executable executable(program, {device.get(), &world, nullptr}, options);
    const Tensor input = deviceFloats(*device, {1, world.rank() == 1 ? kNan : 1.0F}, {2});
    const Outputs outputs = executable.run({input});
    outputs.wait();
    reports[static_cast<size_t>(world.rank())] = outputs.numerics();
    world.barrier();
  });
  EXPECT_EQ(errors, std::vector<std::string>(3));
  const auto expected = [](int rank, const std::string& end) {
    return "rank " + std::to_string(rank) +
           ": instruction 1 ($t = communicate allreduce %x -> %y team=@m[x] op=sum stream=0) wrote "
           "NaN or infinity to %y: 1 of 2 elements (1 NaN, 0 infinite), the first at [1]; " +
           end;
  };
  const std::string received = "what this rank contributed was finite";
  EXPECT_EQ(reports[0], expected(0, received));
  EXPECT_EQ(reports[1], expected(1,
                                 "bad before it: %x: 1 of 2 elements (1 NaN, 0 infinite), the "
                                 "first at [1]"));
  EXPECT_EQ(reports[2], expected(2, received));
}

// The inspection runs before the check of the counts, and must not read outside of the buffer.
TEST(NumericsCheck, CountsThatDoNotFitAreReportedWithoutReadingTheBuffer) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = 7});
  ExecutableOptions options;
  options.check_numerics = true;
  Executable executable(programOf(R"(
mesh @m = [x=ranks]
program p(%x: f32[n], %s: i64[@m.x], %r: i64[@m.x]) -> (%y) with n = 4 {
  slot %sends: list i64[@m.x]
  slot %receives: list i64[@m.x]
  slot %y: f32[n]
  %sends = read_back %s
  %receives = read_back %r
  %y = allocate
  copy %x -> %y
  $t = communicate all_to_all_v %x -> %y team=@m[x] send_counts=%sends recv_counts=%receives
  wait $t
}
)"),
                        {device.get(), nullptr, nullptr}, options);
  const auto one = [&](int64_t value) {
    HostTensor tensor(DType::I64, {1});
    tensor.set(0, Scalar(value));
    return toDevice(*device, device->allocator(), tensor, denseDesc(DType::I64, {1}));
  };
  const auto errorOf = [&](int64_t sends, int64_t receives) {
    return testing::userErrorOf([&] {
      executable.run({deviceFloats(*device, {1, 2, 3, 4}, {4}), one(sends), one(receives)}).wait();
    });
  };
  EXPECT_EQ(errorOf(3, 3), "");
  for (const int64_t count : {int64_t{-1}, int64_t{5}, int64_t{1} << 40, int64_t{1} << 62}) {
    const std::string error =
        std::to_string(count) +
        " elements for rank 0 of the team, but only 4 of the 4 elements of the buffer are left";
    EXPECT_TRUE(errorOf(count, 3).ends_with(": sends " + error)) << errorOf(count, 3);
    EXPECT_TRUE(errorOf(3, count).ends_with(": receives " + error)) << errorOf(3, count);
  }
}

// Rank 0 sends two tensors in one group. The received tensors are inspected after the group.
TEST(NumericsCheck, ReceivesOfAGroupAreInspected) {
  const Program program = programOf(R"(
mesh @m = [x=2]
program p(%x: f32[n]) -> (%y) with n = 2 {
  slot %y: f32[n]
  %y = allocate
  copy %x -> %y
  group_begin
  if rank == 0 {
    send %x to=1 team=@m[x]
  } else {
    recv %y from=0 team=@m[x]
  }
  $t = group_end
  wait $t
}
)");
  std::vector<std::string> reports(2);
  const auto errors = testing::onRanks(2, [&](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = 7});
    ExecutableOptions options;
    options.check_numerics = true;
    Executable executable(program, {device.get(), &world, nullptr}, options);
    const Tensor input = deviceFloats(*device, {1, world.rank() == 0 ? kNan : 1.0F}, {2});
    const Outputs outputs = executable.run({input});
    outputs.wait();
    reports[static_cast<size_t>(world.rank())] = outputs.numerics();
    world.barrier();
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  EXPECT_TRUE(reports[0].starts_with("rank 0: instruction 1 (copy %x -> %y stream=0) wrote NaN"))
      << reports[0];
  EXPECT_NE(reports[1].find("($t = group_end) wrote NaN or infinity to %y: 1 of 2 elements (1 NaN, "
                            "0 infinite), the first at [1]; what this rank contributed was finite"),
            std::string::npos)
      << reports[1];
}

TEST(NumericsCheck, FusionExecutorAndEnvironmentTurnTheCheckOn) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = 7});
  const Fusion fusion = parseFusion(
      "heddle 1\nfusion f(%x: f32[n], %s: f32) {\n  %y = mul(%x, %s)\n  return %y\n}\n");
  const auto reportWith = [&](const CompileOptions& options) {
    FusionExecutor executor(fusion, {device.get(), nullptr, nullptr}, options);
    const Outputs outputs =
        executor.run({deviceFloats(*device, {1, 2}, {2}), Scalar(double{kInfinity})});
    outputs.wait();
    return outputs.numerics();
  };
  CompileOptions checking;
  checking.check_numerics = true;
  const std::string report = reportWith(checking);
  EXPECT_NE(report.find("%y (op mul): 2 of 2 elements (0 NaN, 2 infinite)"), std::string::npos)
      << report;
  EXPECT_NE(report.find("bad before it: %s: 1 of 1 element (0 NaN, 1 infinite)"), std::string::npos)
      << report;
  EXPECT_EQ(reportWith({}), "");
  setenv("HEDDLE_CHECK_NUMERICS", "1", 1);
  EXPECT_EQ(reportWith({}), report);
  setenv("HEDDLE_CHECK_NUMERICS", "0", 1);
  EXPECT_EQ(reportWith({}), "");
  unsetenv("HEDDLE_CHECK_NUMERICS");
}

// The null device counts the calls of a run.
TEST(NumericsCheck, RunWithoutTheCheckCallsNothingMore) {
  const auto tasksOf = [](bool checks) {
    const auto counts = std::make_shared<NullCounts>();
    const auto device = makeNullDevice(counts);
    ExecutableOptions options;
    options.check_numerics = checks;
    Executable executable(programOf(kLogThenSum), {device.get(), nullptr, nullptr}, options);
    executable.run({testing::nullTensor({4})}).wait();
    EXPECT_EQ(counts->launch, 2);
    EXPECT_EQ(counts->copy, 0);
    return static_cast<int64_t>(counts->host_task);
  };
  EXPECT_EQ(tasksOf(false), 0);
  EXPECT_EQ(tasksOf(true), 4);  // two kernels, each with one tensor before and one after
}

}  // namespace
}  // namespace heddle::host::numerics_check_cpu_test
