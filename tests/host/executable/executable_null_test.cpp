// Counts the calls that an Executable makes to its device. The null device touches no memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "host/device/null/null_device.h"
#include "host/fusion_executor.h"
#include "host/run/run_state.h"
#include "ir/base/error.h"
#include "tests/host/executable_common.h"

namespace heddle::host::executable_null_test {
namespace {

using testing::nullTensor;
using testing::programOf;
using testing::userErrorOf;

// Uses two streams and two allocations, of which one is freed.
const char* const kTwoStreams = R"(
program two(%x: f32[n, n]) -> (%z) with n = 4 {
  slot %y: f32[n, n]
  slot %z: f32[n, n]
  %y = allocate stream=0
  !ready = record_event stream=0
  wait_event !ready stream=1
  call_library matmul(%x, %x) -> (%y) stream=1
  !done = record_event stream=1
  wait_event !done stream=0
  %z = allocate stream=0
  call_library matmul(%y, %y) -> (%z) stream=0
  free %y stream=0
}
)";

struct ExecutableNull : ::testing::Test {
  std::shared_ptr<NullCounts> counts = std::make_shared<NullCounts>();
  std::unique_ptr<Device> device = makeNullDevice(counts);
  Context context{device.get(), nullptr, nullptr};
};

TEST_F(ExecutableNull, SteadyRunCreatesNoEventsAndStreams) {
  Executable executable(programOf(kTwoStreams), context);
  const std::vector<Argument> inputs{nullTensor({8, 8})};
  for (int i = 0; i < 40; ++i) executable.run(inputs).wait();
  const int64_t events = counts->create_event;
  const int64_t streams = counts->create_stream;
  for (int i = 0; i < 50; ++i) executable.run(inputs).wait();
  EXPECT_EQ(counts->create_event, events);
  EXPECT_EQ(counts->create_stream, streams);
  EXPECT_EQ(counts->allocate, 2 * 90);
  EXPECT_EQ(counts->deallocate, counts->allocate);
  EXPECT_EQ(counts->matmul, 2 * 90);
  EXPECT_EQ(executable.stats().plans, 1);
  EXPECT_EQ(executable.stats().runs, 90);
  EXPECT_EQ(executable.stats().held_bytes, 0);
}

// Stream 1 communicates, stream 2 computes and communicates, stream 3 computes. Only stream 1 may
// be urgent.
TEST_F(ExecutableNull, OnlyCommunicatingStreamsAreUrgent) {
  Executable executable(programOf(R"(
mesh @m = [x=1]
program four(%x: f32[4, 4]) -> (%z) {
  slot %y: f32[4, 4]
  slot %z: f32[4, 4]
  %y = allocate stream=0
  %z = allocate stream=0
  !ready = record_event stream=0
  wait_event !ready stream=1
  $a = communicate allreduce %x -> %y team=@m[x] op=sum stream=1
  wait $a stream=2
  call_library matmul(%y, %y) -> (%z) stream=2
  $b = communicate allreduce %z -> %y team=@m[x] op=sum stream=2
  wait $b stream=3
  call_library matmul(%y, %y) -> (%z) stream=3
  !done = record_event stream=3
  wait_event !done stream=0
  free %y stream=0
}
)"),
                        context);
  executable.run({nullTensor({4, 4})}).wait();
  EXPECT_EQ(counts->create_urgent_stream, 1);
  EXPECT_EQ(counts->create_stream, 4);  // includes the stream of the run
}

// Handle 2 is the per-thread stream of CUDA, which is a different stream for each thread. A run
// must therefore not reuse the state of an unfinished run. The memory of the output is released
// after the run, by any thread.
TEST_F(ExecutableNull, PerThreadStreamIsNotTreatedAsOneStream) {
  Executable executable(programOf(kTwoStreams), context);
  RunOptions options;
  options.stream = reinterpret_cast<Stream>(uintptr_t{2});
  std::optional<Outputs> outputs = executable.run({nullTensor({8, 8})}, options);
  const int64_t waits = counts->wait_event;
  outputs.reset();
  EXPECT_EQ(counts->wait_event, waits + 1);
}

// For y = x * s with s by value, nothing is copied and only y is allocated.
TEST_F(ExecutableNull, ByValueInputNeedsNoMemoryAndNoCopy) {
  FusionBuilder b("scale");
  const ValueId x = b.input("x", DType::F32, {Size::symbol("n")});
  b.output(b.pointwise("mul", {x, b.input("s", DType::F32, {})}));
  FusionExecutor executor(std::move(b).build(), context);
  float value = 2;
  Tensor s{&value, denseDesc(DType::F32, {}), nullptr};
  s.in_host_memory = true;
  executor.run({nullTensor({8}), s}).wait();
  EXPECT_EQ(counts->allocate, 1);
  EXPECT_EQ(counts->copy, 0);
  EXPECT_EQ(counts->launch, 1);
}

// Each memory order of the five axes needs its own program.
TEST_F(ExecutableNull, CachedProgramsOfAFusionAreBounded) {
  FusionBuilder b("twice");
  std::vector<Size> sizes;
  for (const char* axis : {"a", "b", "c", "d", "e"}) sizes.push_back(Size::symbol(axis));
  const ValueId x = b.input("x", DType::F32, sizes);
  b.output(b.pointwise("add", {x, x}));
  FusionExecutor executor(std::move(b).build(), context);
  Tensor input = nullTensor({2, 2, 2, 2, 2});
  AxisOrder order = rowMajor(5);
  int64_t runs = 0;
  do {
    input.desc.strides = stridesFor(input.desc.sizes, order);
    executor.run({input}).wait();
    ++runs;
  } while (std::next_permutation(order.begin(), order.end()));
  executor.run({input}).wait();
  EXPECT_EQ(executor.stats().programs, static_cast<int64_t>(CacheLimits().programs));
  EXPECT_EQ(executor.stats().plans, runs);
  EXPECT_EQ(executor.stats().runs, runs + 1);
}

TEST_F(ExecutableNull, EachShapeHasOnePlan) {
  Executable executable(programOf(kTwoStreams), context);
  for (int round = 0; round < 3; ++round) {
    for (int64_t n : {2, 3, 5}) executable.run({nullTensor({n, n})}).wait();
  }
  EXPECT_EQ(executable.stats().plans, 3);
  EXPECT_EQ(executable.stats().peak_bytes, 2 * 5 * 5 * 4);
}

TEST_F(ExecutableNull, CallersStreamIsOrderedAfterTheWork) {
  Executable executable(programOf(kTwoStreams), context);
  const Stream stream = device->createStream();
  RunOptions options;
  options.stream = stream;
  executable.run({nullTensor({8, 8})}, options).wait();
  // The recorded events are fork, !ready, !done, join and the end of the run. A stream waits for
  // all of them except the last one.
  EXPECT_EQ(counts->record_event, 5);
  EXPECT_EQ(counts->wait_event, 4);
}

TEST_F(ExecutableNull, TokenOnOneStreamNeedsNoEvent) {
  Executable executable(programOf(R"(
mesh @m = [x=1]
program p(%x: f32[n]) -> (%y) with n = 4 {
  slot %y: f32[n]
  %y = allocate stream=0
  $t = communicate allreduce %x -> %y team=@m op=sum stream=0
  wait $t stream=0
}
)"),
                        context);
  executable.run({nullTensor({4})}).wait();
  EXPECT_EQ(counts->communicate, 1);
  EXPECT_EQ(counts->record_event, 1);  // the end of the run
  EXPECT_EQ(counts->wait_event, 0);
}

TEST_F(ExecutableNull, WrongInputsAreRefused) {
  Executable executable(programOf(R"(
program p(%a: f32[n, 4], %b: f32[n], %s: f64) -> (%a) with n = 4 {
}
)"),
                        context);
  const Tensor a = nullTensor({3, 4});
  const Tensor b = nullTensor({3});
  const auto messageOf = [&](std::vector<Argument> inputs) {
    return userErrorOf([&] { executable.run(inputs); });
  };
  EXPECT_EQ(messageOf({a, b, Scalar(1.0)}), "");
  const auto expect = [&](std::vector<Argument> inputs, const std::vector<std::string>& words) {
    const std::string message = messageOf(std::move(inputs));
    for (const std::string& word : words) {
      EXPECT_NE(message.find(word), std::string::npos) << word << " in: " << message;
    }
  };
  expect({a, b}, {"3 inputs", "got 2"});
  expect({a, b, a}, {"%s", "scalar", "tensor"});
  expect({Scalar(1.0), b, Scalar(1.0)}, {"%a", "scalar", "tensor"});
  expect({nullTensor({3, 4}, DType::F64), b, Scalar(1.0)}, {"%a", "f32", "f64"});
  expect({nullTensor({3}), b, Scalar(1.0)}, {"%a", "2 axes", "1 axes"});
  expect({nullTensor({3, 5}), b, Scalar(1.0)}, {"axis 1 of %a", "5", "4"});
  expect({a, nullTensor({7}), Scalar(1.0)}, {"n is 3", "axis 0 of %a", "7", "axis 0 of %b"});
  Tensor none = b;
  none.data = nullptr;
  expect({a, none, Scalar(1.0)}, {"%b", "no data"});
}

TEST_F(ExecutableNull, ScalarsAreComputedOnTheHost) {
  Executable executable(programOf(R"(
program p(%x: f32[n], %a: i64, %b: f64 = 2.5) -> (%sum, %quotient, %size, %less) with n = 4 {
  slot %sum: f64
  slot %quotient: f32
  slot %size: i64
  slot %less: bool
  %sum = evaluate add(%a, %b)
  %quotient = evaluate div(%a, %b)
  %size = evaluate 2*n + 1
  %less = evaluate lt(%a, %b)
}
)"),
                        context);
  const Outputs given = executable.run({nullTensor({6}), Scalar(int64_t{7}), Scalar(0.5)});
  EXPECT_EQ(toDouble(std::get<Scalar>(given[0])), 7.5);
  EXPECT_EQ(toDouble(std::get<Scalar>(given[1])), 14.0);
  EXPECT_EQ(toInt(std::get<Scalar>(given[2])), 13);
  EXPECT_EQ(toInt(std::get<Scalar>(given[3])), 0);
  const Outputs by_default = executable.run({nullTensor({6}), Scalar(int64_t{2})});
  EXPECT_EQ(toDouble(std::get<Scalar>(by_default[0])), 4.5);
  EXPECT_EQ(toDouble(std::get<Scalar>(by_default[1])), static_cast<double>(2.0f / 2.5f));
  EXPECT_EQ(toInt(std::get<Scalar>(by_default[3])), 1);
}

TEST_F(ExecutableNull, BranchIsDecidedAtRunTime) {
  Executable executable(programOf(R"(
program p(%x: f32[n, n], %which: i64) -> (%x) with n = 4 {
  slot %y: f32[n, n]
  if %which > 0 {
    %y = allocate stream=0
    call_library matmul(%x, %x) -> (%y) stream=0
    call_library matmul(%x, %x) -> (%y) stream=0
    free %y stream=0
  } else {
    %y = allocate stream=0
    call_library matmul(%x, %x) -> (%y) stream=0
    free %y stream=0
  }
}
)"),
                        context);
  executable.run({nullTensor({4, 4}), Scalar(int64_t{1})}).wait();
  EXPECT_EQ(counts->matmul, 2);
  executable.run({nullTensor({4, 4}), Scalar(int64_t{0})}).wait();
  EXPECT_EQ(counts->matmul, 3);
  EXPECT_EQ(counts->allocate, 2);
  EXPECT_EQ(counts->deallocate, 2);
  EXPECT_EQ(executable.stats().plans, 1);
}

TEST_F(ExecutableNull, OutputThatIsAnInputIsTheCallersTensor) {
  Executable executable(programOf(R"(
program p(%x: f32[n, m]) -> (%y, %x) with n = 4, m = 4 {
  slot %y: f32[m, n]
  %y = alias %x permute=[1, 0]
}
)"),
                        context);
  Tensor x = nullTensor({2, 3});
  x.owner = std::make_shared<int>(1);
  const Outputs outputs = executable.run({x});
  const Tensor& y = std::get<Tensor>(outputs[0]);
  EXPECT_EQ(y.data, x.data);
  EXPECT_EQ(y.owner, x.owner);
  EXPECT_EQ(y.desc.sizes, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(y.desc.strides, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(std::get<Tensor>(outputs[1]).desc, x.desc);
  EXPECT_EQ(counts->allocate, 0);
}

TEST_F(ExecutableNull, MeshLargerThanTheJobIsRefused) {
  const std::string message = userErrorOf([&] {
    Executable executable(programOf("mesh @m = [x=4]\nprogram p(%x: f32[n]) -> (%x) {\n}\n"),
                          context);
  });
  EXPECT_NE(message.find("needs 4 ranks, the job has 1"), std::string::npos) << message;
}

// A transport whose collectives complete on the device, so the host must probe it for failures.
class ProbedTransport : public comm::Communicator {
 public:
  explicit ProbedTransport(int& probes) : probes_(probes) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  bool isStreamOrdered() const override { return true; }
  comm::Ticket post(std::span<const comm::Operation>, void*) override { return 0; }
  bool test(comm::Ticket) override { return true; }
  void probe() override {
    ++probes_;
    if (!why.empty()) throw UserError(why);
  }
  std::string why;

 private:
  int& probes_;
};

// When the device has finished, the run must probe the transport once before it counts as
// successful. After that it must not use the transport, which may no longer exist: Outputs may
// outlive the Executable.
TEST_F(ExecutableNull, RunCompletesAfterItsTransportWasProbed) {
  int probes = 0;
  auto transport = std::make_unique<ProbedTransport>(probes);
  auto plan = std::make_shared<Plan>();
  plan->stream_ordered = {transport.get()};
  const auto resources =
      std::make_shared<RunResources>(*device, std::vector<std::string>{}, nullptr);
  Completion well(resources), bad(resources);
  well.plan = bad.plan = plan;
  EXPECT_TRUE(well.done());
  EXPECT_FALSE(well.errors.failed());
  transport->why = "rank 2 has given up";
  EXPECT_TRUE(bad.done());
  EXPECT_TRUE(bad.errors.failed());
  EXPECT_EQ(probes, 2);
  transport.reset();
  well.wait();
  EXPECT_TRUE(well.done());
  const std::string message = userErrorOf([&] { bad.wait(); });
  EXPECT_NE(message.find("rank 2 has given up"), std::string::npos) << message;
  EXPECT_EQ(probes, 2);
}

}  // namespace
}  // namespace heddle::host::executable_null_test
