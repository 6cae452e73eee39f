#include <atomic>
#include <cstdlib>
#include <future>
#include <new>
#include <thread>

#include "comm/communicator.h"
#include "comm/in_process/worlds.h"
#include "ir/base/check.h"
#include "tests/host/gpu_device.h"

namespace heddle::host::cuda_device_gpu_test {
namespace {

constexpr const char* kKernels = R"(
struct Args { int* out; long long n; int value; int spins; };
extern "C" __global__ void store(const __grid_constant__ Args a) {
  long long start = clock64();
  while (clock64() - start < a.spins * 1000LL) {}
  long long i = (long long)(blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < a.n) a.out[i] = a.value + (int)i;
}
extern "C" __global__ void next(const __grid_constant__ Args a) {
  hd::awaitEarlierWork();
  const int before = a.out[0];
  long long start = clock64();
  while (clock64() - start < a.spins * 1000LL) {}
  if (threadIdx.x == 0) a.out[0] = before + a.value;
}
extern "C" __global__ void shared(const __grid_constant__ Args a) {
  extern __shared__ int memory[];
  for (int i = threadIdx.x; i < a.n; i += blockDim.x) memory[i] = a.value + i;
  __syncthreads();
  for (int i = threadIdx.x; i < a.n; i += blockDim.x) a.out[i] = memory[a.n - 1 - i];
}
)";

struct Args {
  int* out;
  long long n;
  int value;
  int spins;
};

class CudaDeviceGpu : public GpuDeviceFixture {
 protected:
  void launch(KernelHandle kernel, const Args& args, Stream stream, int64_t grid,
              int32_t grid_y = 1, int32_t shared_bytes = 0, bool starts_early = false) {
    codegen::LaunchStage stage;
    stage.starts_early = starts_early;
    stage.entry = "test";
    stage.args.resize(sizeof(Args));
    stage.grid = grid;
    stage.grid_y = grid_y;
    stage.block = 128;
    stage.shared_bytes = shared_bytes;
    device_->launch(kernel, stage, reinterpret_cast<const std::byte*>(&args), stream, {});
  }
  template <class Error, class Work>
  static std::string messageOf(Work work) {
    try {
      work();
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  }
};

TEST_F(CudaDeviceGpu, LaunchCoversBothGridAxes) {
  KernelHandle kernel = compile(kKernels, "store");
  constexpr size_t kCount = 128 * 100 * 3;
  auto* out = static_cast<int*>(allocate(kCount * 4));
  launch(kernel, {out, kCount, 5, 0}, stream_, 100, 3);
  const std::vector<int> values = download<int>(out, kCount, stream_);
  for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(values[i], 5 + static_cast<int>(i));
}

TEST_F(CudaDeviceGpu, GridMayExceed65535Blocks) {
  KernelHandle kernel = compile(kKernels, "store");
  constexpr size_t kCount = 128 * 100000;
  auto* out = static_cast<int*>(allocate(kCount * 4));
  launch(kernel, {out, kCount, 1, 0}, stream_, 100000);
  EXPECT_EQ(download<int>(out, kCount, stream_).back(), static_cast<int>(kCount));
  EXPECT_THROW(launch(kernel, {out, 0, 1, 0}, stream_, int64_t{1} << 31), InternalError);
  EXPECT_THROW(launch(kernel, {out, 0, 1, 0}, stream_, 0), InternalError);
}

TEST_F(CudaDeviceGpu, LaunchRaisesTheSharedMemoryLimit) {
  KernelHandle kernel = compile(kKernels, "shared");
  for (int count : {1000, 24000, 16000}) {
    auto* out = static_cast<int*>(allocate(count * 4));
    launch(kernel, {out, count, 7, 0}, stream_, 1, 1, count * 4);
    const std::vector<int> values = download<int>(out, static_cast<size_t>(count), stream_);
    for (int i = 0; i < count; ++i) ASSERT_EQ(values[i], 7 + count - 1 - i);
  }
  const auto too_much = [&] { launch(kernel, {nullptr, 0, 0, 0}, stream_, 1, 1, 10 << 20); };
  EXPECT_NE(messageOf<UserError>(too_much).find("cudaKernelSetAttributeForDevice"),
            std::string::npos);
}

TEST_F(CudaDeviceGpu, ResourcesOfALaunchAreKnown) {
  const KernelHandle kernel = compile(kKernels, "shared");
  codegen::LaunchStage stage;
  stage.entry = "shared";
  stage.block = 128;
  const std::optional<KernelResources> small = device_->resourcesOf(kernel, stage);
  ASSERT_TRUE(small.has_value());
  EXPECT_GT(small->registers, 0);
  EXPECT_EQ(small->local_bytes, 0);
  EXPECT_GT(small->occupancy, 0.5);
  EXPECT_LE(small->occupancy, 1);
  stage.shared_bytes = 64 << 10;
  const std::optional<KernelResources> large = device_->resourcesOf(kernel, stage);
  ASSERT_TRUE(large.has_value());
  EXPECT_EQ(large->shared_bytes, small->shared_bytes + stage.shared_bytes);
  EXPECT_GT(large->occupancy, 0);
  EXPECT_LT(large->occupancy, small->occupancy);
}

// The producer spins for a while, so a consumer that does not wait reads too early.
TEST_F(CudaDeviceGpu, EventsOrderStreams) {
  KernelHandle kernel = compile(kKernels, "store");
  Stream other = device_->createStream();
  Event event = device_->createEvent();
  auto* out = static_cast<int*>(allocate(512));
  device_->fill(out, 0, 512, stream_, {});
  for (int round = 0; round < 5; ++round) {
    launch(kernel, {out, 128, round * 1000, 50000}, stream_, 1);
    device_->recordEvent(event, stream_);
    device_->waitEvent(other, event);
    EXPECT_EQ(download<int>(out, 128, other)[127], round * 1000 + 127);
  }
  device_->destroyEvent(event);
  device_->destroyStream(other);
}

// Each kernel reads what the previous one wrote at its end. If hd::awaitEarlierWork() let the next
// kernel start but did not wait itself, kernels would read too early.
TEST_F(CudaDeviceGpu, KernelsThatStartEarlyWaitForEarlierWork) {
  KernelHandle next = compile(kKernels, "next");
  auto* out = static_cast<int*>(allocate(512));
  for (int round = 0; round < 5; ++round) {
    device_->fill(out, 0, 512, stream_, {});
    for (int i = 0; i < 100; ++i) launch(next, {out, 1, 1, 20}, stream_, 1, 1, 0, true);
    EXPECT_EQ(download<int>(out, 1, stream_)[0], 100);
  }
}

TEST_F(CudaDeviceGpu, EventIsDoneWhenItsWorkIsDone) {
  Event event = device_->createEvent();
  EXPECT_TRUE(device_->eventDone(event));
  device_->synchronize(event);
  std::promise<void> gate;
  std::shared_future<void> open = gate.get_future().share();
  std::vector<int> order;
  device_->hostTask(
      [&order, open] {
        open.wait();
        order.push_back(1);
      },
      stream_, {});
  device_->hostTask([&order] { order.push_back(2); }, stream_, {});
  device_->recordEvent(event, stream_);
  EXPECT_FALSE(device_->eventDone(event));
  gate.set_value();
  device_->synchronize(event);
  EXPECT_TRUE(device_->eventDone(event));
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  device_->destroyEvent(event);
}

TEST_F(CudaDeviceGpu, HostTaskErrorSkipsLaterWork) {
  ErrorSink errors;
  bool ran = false;
  device_->hostTask([] { userError("bad value"); }, stream_, {&errors, 4});
  device_->hostTask([&] { ran = true; }, stream_, {&errors, 5});
  finish(stream_);
  EXPECT_FALSE(ran);
  EXPECT_EQ(messageOf<UserError>([&] { errors.rethrow(); }), "instruction 4: bad value");
}

TEST_F(CudaDeviceGpu, CopyAndFillWriteTheirRanges) {
  auto* memory = static_cast<unsigned char*>(allocate(300));
  device_->fill(memory, 7, 300, stream_, {});
  device_->fill(memory + 100, 9, 100, stream_, {});
  device_->copy(memory + 250, memory + 150, 10, stream_, {});
  device_->copy(memory, nullptr, 0, stream_, {});
  const auto values = download<unsigned char>(memory, 300, stream_);
  EXPECT_EQ(values[99], 7);
  EXPECT_EQ(values[100], 9);
  EXPECT_EQ(values[255], 9);
  EXPECT_EQ(values[299], 7);
}

TEST_F(CudaDeviceGpu, OutOfMemoryNamesTheRequestedBytes) {
  const auto ask = [&] { device_->allocator().allocate(int64_t{1} << 46, stream_); };
  const std::string message = messageOf<std::bad_alloc>(ask);
  EXPECT_NE(message.find("cudaMallocAsync"), std::string::npos) << message;
  EXPECT_NE(message.find("70368744177664"), std::string::npos) << message;
  EXPECT_NE(allocate(1024), nullptr);
}

TEST_F(CudaDeviceGpu, MisuseIsReported) {
  EXPECT_NE(messageOf<UserError>([] { makeCudaDevice(1000); }).find("cuda:1000"),
            std::string::npos);
  EXPECT_THROW(compile(kKernels, "absent"), UserError);
  codegen::KernelImage garbage;
  garbage.bytes.assign(64, std::byte{1});
  const std::string message = messageOf<UserError>([&] { device_->load(garbage, "k"); });
  EXPECT_NE(message.find("cudaLibrary"), std::string::npos) << message;
}

TEST_F(CudaDeviceGpu, HostMemoryTransportIsRefused) {
  auto worlds = comm::makeInProcessWorlds(2);
  std::unique_ptr<comm::Communicator> communicators[2];
  std::thread other([&] { communicators[1] = worlds[1]->communicator({0, 1}); });
  communicators[0] = worlds[0]->communicator({0, 1});
  other.join();
  comm::Operation operation;
  const auto post = [&] {
    device_->communicate(*communicators[0], std::span(&operation, 1), stream_, {});
  };
  EXPECT_NE(messageOf<UserError>(post).find("host memory"), std::string::npos);
}

TEST_F(CudaDeviceGpu, TeamOfOneCopies) {
  auto world = comm::makeSingleWorld();
  auto communicator = world->communicator({0});
  const int* from = upload(std::vector<int>{1, 2, 3, 4});
  auto* to = static_cast<int*>(allocate(32));
  comm::Operation send{comm::CollectiveKind::Send, from, nullptr, 2, DType::F32, ReduceOp::Sum, 0};
  comm::Operation recv{
      comm::CollectiveKind::Recv, nullptr, to + 2, 2, DType::F32, ReduceOp::Sum, 0};
  comm::Operation sum{comm::CollectiveKind::Allreduce, from, to, 2, DType::F32, ReduceOp::Sum, -1};
  const comm::Operation group[] = {recv, send, sum};
  device_->communicate(*communicator, group, stream_, {});
  EXPECT_EQ(download<int>(to, 4, stream_), (std::vector<int>{1, 2, 1, 2}));
}

// After a failed kernel the process cannot use the device any more, so this test runs in a child
// process.
TEST_F(CudaDeviceGpu, LateErrorAppearsInSynchronize) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto fail_late = [&] {
    launch(compile(kKernels, "store"), {reinterpret_cast<int*>(8), 128, 0, 0}, stream_, 1);
    for (int time = 0; time < 2; ++time) {
      const std::string message = messageOf<UserError>([&] { finish(stream_); });
      if (message.rfind("cuda", 0) != 0) std::_Exit(1);
      if (message.find("the GPU is lost for this process") == std::string::npos) std::_Exit(2);
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(fail_late(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace heddle::host::cuda_device_gpu_test
