#include <cmath>
#include <limits>
#include <random>
#include <thread>

#include "host/device/load_module.h"
#include "host/job/worlds.h"
#include "ir/base/error.h"
#include "tests/host/gpu_device.h"

namespace heddle::host::reduce_kernel_gpu_test {
namespace {

class ReduceKernelGpu : public GpuDeviceFixture {
 protected:
  void SetUp() override {
    GpuDeviceFixture::SetUp();
    if (!IsSkipped()) reduce_ = cudaModule().makeReduce(0);
  }
  // Reduces the inputs of all ranks on the GPU. Returns the result.
  std::vector<Scalar> reduced(const std::vector<std::vector<Scalar>>& ranks, DType dtype,
                              ReduceOp op, bool in_place) {
    const size_t count = ranks[0].size();
    std::vector<const void*> srcs;
    for (const auto& values : ranks) {
      std::vector<std::byte> bytes(count * static_cast<size_t>(sizeOf(dtype)));
      for (size_t i = 0; i < count; ++i) {
        storeElement(bytes.data(), dtype, static_cast<int64_t>(i), values[i]);
      }
      srcs.push_back(upload(bytes));
    }
    const int64_t bytes = static_cast<int64_t>(count) * sizeOf(dtype);
    void* dst = in_place ? const_cast<void*>(srcs.back()) : allocate(bytes);
    reduce_(dst, srcs, static_cast<int64_t>(count), dtype, op, stream_);
    const auto out = download<std::byte>(dst, static_cast<size_t>(bytes), stream_);
    std::vector<Scalar> result;
    for (size_t i = 0; i < count; ++i) {
      result.push_back(loadElement(out.data(), dtype, static_cast<int64_t>(i)));
    }
    return result;
  }
  comm::DeviceReduce reduce_;
};

// Returns the expected value. The values are combined in the order of the ranks. f32 and bf16 are
// combined in f32, and bf16 is rounded once at the end.
double expected(const std::vector<double>& values, DType dtype, ReduceOp op) {
  const auto round = [&](double x) {
    return dtype == DType::F32 || dtype == DType::BF16 ? static_cast<float>(x) : x;
  };
  double total = values[0];
  for (size_t r = 1; r < values.size(); ++r) {
    const double x = values[r];
    const bool sum = op == ReduceOp::Sum || op == ReduceOp::Avg;
    if (sum) total = round(total + x);
    if (op == ReduceOp::Prod) total = round(total * x);
    if (op == ReduceOp::Min) total = std::isnan(x) || x < total ? x : total;
    if (op == ReduceOp::Max) total = std::isnan(x) || x > total ? x : total;
  }
  if (op == ReduceOp::Avg) total = round(total / static_cast<double>(values.size()));
  return toDouble(roundTo(dtype, total));
}

TEST_F(ReduceKernelGpu, FloatsMatchTheDefinitionBitForBit) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  for (DType dtype : {DType::F32, DType::F64, DType::BF16}) {
    for (ReduceOp op :
         {ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Min, ReduceOp::Max, ReduceOp::Avg}) {
      for (size_t ranks : {1U, 2U, 3U, 8U}) {
        std::vector<std::vector<Scalar>> inputs(ranks);
        constexpr size_t kCount = 1000;
        for (auto& values : inputs) {
          for (size_t i = 0; i < kCount; ++i) values.push_back(roundTo(dtype, normal(random)));
        }
        inputs.back()[3] = std::numeric_limits<double>::quiet_NaN();
        inputs.front()[4] = std::numeric_limits<double>::quiet_NaN();
        inputs.front()[5] = std::numeric_limits<double>::infinity();
        const auto result = reduced(inputs, dtype, op, ranks == 3);
        for (size_t i = 0; i < kCount; ++i) {
          std::vector<double> column;
          for (const auto& values : inputs) column.push_back(toDouble(values[i]));
          const double want = expected(column, dtype, op);
          const double got = toDouble(result[i]);
          ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want)))
              << name(dtype) << " " << name(op) << " of " << ranks << ": " << got << " != " << want;
        }
      }
    }
  }
}

TEST_F(ReduceKernelGpu, IntegersAndBoolsMatchTheDefinition) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const std::vector<std::vector<Scalar>> numbers = {{int64_t{3}, kMost}, {int64_t{-5}, int64_t{1}}};
  const auto first = [&](ReduceOp op) { return toInt(reduced(numbers, DType::I64, op, false)[0]); };
  EXPECT_EQ(first(ReduceOp::Sum), -2);
  EXPECT_EQ(first(ReduceOp::Prod), -15);
  EXPECT_EQ(first(ReduceOp::Min), -5);
  EXPECT_EQ(first(ReduceOp::Max), 3);
  EXPECT_EQ(toInt(reduced(numbers, DType::I64, ReduceOp::Sum, true)[1]),
            std::numeric_limits<int64_t>::min());
  const std::vector<std::vector<Scalar>> flags = {{true, false, true}, {true, false, false}};
  const auto both = [&](ReduceOp op) {
    std::vector<int64_t> result;
    for (const Scalar& x : reduced(flags, DType::Bool, op, false)) result.push_back(toInt(x));
    return result;
  };
  EXPECT_EQ(both(ReduceOp::Sum), (std::vector<int64_t>{1, 0, 1}));
  EXPECT_EQ(both(ReduceOp::Prod), (std::vector<int64_t>{1, 0, 0}));
  EXPECT_EQ(both(ReduceOp::Max), (std::vector<int64_t>{1, 0, 1}));
  EXPECT_EQ(both(ReduceOp::Min), (std::vector<int64_t>{1, 0, 0}));
}

TEST_F(ReduceKernelGpu, WrongCallsAreRefused) {
  int* memory = upload(std::vector<int>{1, 2});
  const void* srcs[] = {memory};
  EXPECT_THROW(reduce_(memory, srcs, 1, DType::I64, ReduceOp::Avg, stream_), UserError);
  EXPECT_THROW(reduce_(memory, {}, 1, DType::F32, ReduceOp::Sum, stream_), UserError);
  const std::vector<const void*> many(65, memory);
  EXPECT_THROW(reduce_(memory, many, 1, DType::F32, ReduceOp::Sum, stream_), UserError);
  reduce_(memory, srcs, 0, DType::F32, ReduceOp::Sum, stream_);
}

// Three ranks, each with its own Device on the same GPU, communicate by Device::communicate.
TEST_F(ReduceKernelGpu, InProcessRanksReduceOnOneGpu) {
  constexpr int kRanks = 3;
  auto worlds = makeInProcessWorldsFor(DeviceKind::Cuda, kRanks);
  std::vector<std::vector<float>> results(kRanks);
  const auto rank = [&](int r) {
    auto device = makeCudaDevice(0);
    auto communicator = worlds[r]->communicator({0, 1, 2});
    Stream stream = device->createStream();
    std::vector<float> values(1000, static_cast<float>(r + 1));
    auto* memory = static_cast<float*>(device->allocator().allocate(4000, stream));
    device->copy(memory, values.data(), 4000, stream, {});
    comm::Operation sum{
        comm::CollectiveKind::Allreduce, memory, memory, 1000, DType::F32, ReduceOp::Sum, -1};
    for (int i = 0; i < 3; ++i) device->communicate(*communicator, std::span(&sum, 1), stream, {});
    device->copy(values.data(), memory, 4000, stream, {});
    Event event = device->createEvent();
    device->recordEvent(event, stream);
    device->synchronize(event);
    results[r] = values;
    device->destroyEvent(event);
    device->allocator().deallocate(memory, 4000, stream);
    device->destroyStream(stream);
  };
  std::vector<std::thread> threads;
  for (int r = 0; r < kRanks; ++r) threads.emplace_back(rank, r);
  for (std::thread& thread : threads) thread.join();
  for (const auto& values : results) EXPECT_EQ(values, std::vector<float>(1000, 54.0F));
}

}  // namespace
}  // namespace heddle::host::reduce_kernel_gpu_test
