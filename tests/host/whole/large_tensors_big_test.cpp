// Tests tensors of more than 2^31 elements on the CPU device and on a GPU. Each case holds at most
// 10 GiB. The test reads results back in pieces, or sums them on the device.
#include <gtest/gtest.h>

#include <cstring>

#include "host/device/cpu/cpu_device.h"
#include "host/fusion_executor.h"
#include "host/tensor.h"
#include "tests/host/executable_common.h"

namespace heddle::host::large_tensors_big_test {
namespace {

constexpr int64_t kTwo31 = int64_t{1} << 31;
constexpr int64_t kMany = kTwo31 + 4099;  // not a multiple of any tile

class LargeTensors : public ::testing::TestWithParam<DeviceKind> {
 protected:
  void SetUp() override {
    std::string why;
    if (GetParam() == DeviceKind::Cpu) {
      device_ = makeCpuDevice();
    } else if (cudaDeviceCount(why) == 0) {
      GTEST_SKIP() << why;
    } else {
      device_ = makeCudaDevice(0);
    }
  }

  // Runs the fusion and waits for it.
  Outputs run(Fusion fusion, const std::vector<Argument>& inputs) {
    FusionExecutor executor(std::move(fusion), {device_.get(), nullptr, nullptr});
    Outputs outputs = executor.run(inputs);
    outputs.wait();
    return outputs;
  }
  void finish(Stream stream) {
    const Event event = device_->createEvent();
    device_->recordEvent(event, stream);
    device_->synchronize(event);
    device_->destroyEvent(event);
  }
  Scalar at(const Argument& argument, const std::vector<int64_t>& index) {
    const auto& tensor = std::get<Tensor>(argument);
    int64_t offset = 0;
    for (size_t i = 0; i < index.size(); ++i) offset += index[i] * tensor.desc.strides[i];
    const int64_t size = sizeOf(tensor.desc.dtype);
    std::byte element[8] = {};
    device_->copy(element, static_cast<std::byte*>(tensor.data) + offset * size, size, nullptr, {});
    finish(nullptr);
    return loadElement(element, tensor.desc.dtype, 0);
  }
  Tensor upload(const HostTensor& host) {
    return toDevice(*device_, device_->allocator(), host, denseDesc(host.dtype, host.sizes));
  }
  // Returns a u8 tensor of these sizes. Element i in row-major order is i modulo 251.
  Outputs counted(std::vector<Size> sizes) {
    FusionBuilder b("counted");
    int64_t n = 1;
    for (const Size& size : sizes) n *= size.constant();
    const ValueId place = b.pointwise("fmod", {b.iota({Size(n)}, 0), b.constant(int64_t{251})});
    b.output(b.reshape(b.cast(place, DType::U8), std::move(sizes)));
    return run(std::move(b).build(), {});
  }

  std::unique_ptr<Device> device_;
};

const std::vector<int64_t> kPlaces = {
    0,          1,          250,       251,           1000003,
    kTwo31 - 2, kTwo31 - 1, kTwo31,    kTwo31 + 1,    kTwo31 + 4000,
    kMany - 2,  kMany - 1,  kMany / 2, kMany / 2 + 1, kMany / 3};

// The expanded tensor would take 36 GB, and the tensor of indices 24 GB.
TEST_P(LargeTensors, GeneratedOperandsNeedNoMemory) {
  constexpr int64_t kRows = 3'000'000'000;
  FusionBuilder b("generated");
  const ValueId x = b.input("x", DType::F32, {Size(3)});
  const ValueId c = b.scalarInput("c", DType::I64);
  b.output(b.reduce("max", b.expand(x, {Size(kRows), Size(3)}), {0}));
  b.output(b.reduce("sum", b.pointwise("ge", {b.iota({Size(kRows)}, 0), c}), {0}));
  FusionExecutor executor(std::move(b).build(), {device_.get(), nullptr, nullptr});
  TrackingAllocator tracking(device_->allocator());
  RunOptions options;
  options.allocator = &tracking;
  const Tensor values = testing::deviceFloats(*device_, {-1, 2, 0.5}, {3});
  const Outputs outputs = executor.run({values, Scalar(kRows - kTwo31 - 5)}, options);
  outputs.wait();
  EXPECT_EQ(testing::floatsOf(*device_, outputs[0]), (std::vector<float>{-1, 2, 0.5}));
  EXPECT_EQ(toInt(at(outputs[1], {})), kTwo31 + 5);
  EXPECT_LE(tracking.peakBytes(), 1 << 20);
}

TEST_P(LargeTensors, PointwiseOpsAreRight) {
  const Outputs made = counted({Size(kMany)});
  FusionBuilder b("pointwise");
  const ValueId x = b.input("x", DType::U8, {Size::symbol("n")});
  b.output(b.pointwise("lt", {b.pointwise("add", {x, x}), b.constant(int64_t{200})}));
  const Outputs less = run(std::move(b).build(), {made[0]});
  for (int64_t i : kPlaces) {
    EXPECT_EQ(at(made[0], {i}), Scalar(i % 251)) << i;
    EXPECT_EQ(at(less[0], {i}), Scalar((i % 251 * 2) % 256 < 200)) << i;
  }
}

TEST_P(LargeTensors, FullReductionsAreRight) {
  const Outputs made = counted({Size(kMany)});
  FusionBuilder b("sums");
  const ValueId x = b.input("x", DType::U8, {Size::symbol("n")});
  b.output(b.reduce("sum", x, {0}));
  b.output(b.reduce("max", x, {0}));
  b.output(b.reduce("sum", b.pointwise("ge", {x, b.constant(int64_t{0})}), {0}));
  // Computes the largest index at which x is 7.
  const ValueId place = b.iota({Size::symbol("n")}, 0);
  const ValueId seven = b.pointwise("eq", {x, b.constant(int64_t{7})});
  b.output(b.reduce("max", b.pointwise("where", {seven, place, b.constant(int64_t{-1})}), {0}));
  const Outputs sums = run(std::move(b).build(), {made[0]});
  const int64_t whole = kMany / 251;
  const int64_t rest = kMany % 251;
  EXPECT_EQ(at(sums[0], {}), Scalar(whole * (250 * 251 / 2) + rest * (rest - 1) / 2));
  EXPECT_EQ(at(sums[1], {}), Scalar(int64_t{250}));
  EXPECT_EQ(at(sums[2], {}), Scalar(kMany));
  EXPECT_EQ(at(sums[3], {}), Scalar((kMany - 1 - 7) / 251 * 251 + 7));
}

TEST_P(LargeTensors, SumsAlongEachAxisAreRight) {
  constexpr int64_t kRows = 65537;
  constexpr int64_t kColumns = 32771;  // kRows * kColumns > 2^31
  const Outputs made = counted({Size(kRows), Size(kColumns)});
  FusionBuilder b("rows");
  const ValueId x = b.input("x", DType::U8, {Size::symbol("r"), Size::symbol("c")});
  b.output(b.reduce("sum", x, {1}));
  b.output(b.reduce("sum", x, {0}));
  const Outputs sums = run(std::move(b).build(), {made[0]});
  for (int64_t r : {int64_t{0}, int64_t{1}, kRows / 2, kRows - 2, kRows - 1}) {
    int64_t sum = 0;
    for (int64_t c = 0; c < kColumns; ++c) sum += (r * kColumns + c) % 251;
    EXPECT_EQ(at(sums[0], {r}), Scalar(sum)) << "row " << r;
  }
  for (int64_t c : {int64_t{0}, int64_t{17}, kColumns - 1}) {
    int64_t sum = 0;
    for (int64_t r = 0; r < kRows; ++r) sum += (r * kColumns + c) % 251;
    EXPECT_EQ(at(sums[1], {c}), Scalar(sum)) << "column " << c;
  }
}

TEST_P(LargeTensors, TransposedAndSteppedViewsAreRight) {
  constexpr int64_t kRows = 3;
  constexpr int64_t kColumns = kTwo31 / 3 + 77;
  const Outputs made = counted({Size(kRows), Size(kColumns)});
  FusionBuilder b("views");
  const ValueId x = b.input("x", DType::U8, {Size(kRows), Size::symbol("c")});
  const ValueId turned = b.permute(x, {1, 0});
  b.output(b.pointwise("bitwise_xor", {turned, b.constant(int64_t{255})}));
  b.output(b.cast(b.slice(x, {Size(0), Size(5)}, {Size(3), Size::symbol("c")}, {2, 1000003}),
                  DType::I32));
  const Outputs views = run(std::move(b).build(), {made[0]});
  for (int64_t c : {int64_t{0}, kColumns / 2, kColumns - 1}) {
    for (int64_t r = 0; r < kRows; ++r) {
      EXPECT_EQ(at(views[0], {c, r}), Scalar(((r * kColumns + c) % 251) ^ 255)) << c << ", " << r;
    }
  }
  for (int64_t i : {int64_t{0}, (kColumns - 6) / 1000003}) {
    for (int64_t r : {0, 1}) {
      EXPECT_EQ(at(views[1], {r, i}), Scalar((2 * r * kColumns + 5 + i * 1000003) % 251)) << i;
    }
  }
}

// The first tensor has few elements, and its two rows are more than 2^31 elements apart. The second
// has more than 2^31 elements, all at one address.
TEST_P(LargeTensors, StridesPastTwo31AndStrideZeroAreRight) {
  const Outputs made = counted({Size(kMany)});
  FusionBuilder b("far");
  const ValueId x = b.input("x", DType::U8, {Size(2), Size::symbol("n")});
  const ValueId one = b.input("one", DType::F32, {Size::symbol("m")});
  b.output(b.pointwise("add", {x, b.constant(int64_t{1})}));
  b.output(b.reduce("sum", b.pointwise("mul", {b.cast(one, DType::F64), b.constant(0.5)}), {0}));
  Tensor far = std::get<Tensor>(made[0]);
  far.desc = denseDesc(DType::U8, {2, 1000});
  far.desc.strides = {kTwo31 + 1000, 3};
  HostTensor half(DType::F32, {1});
  half.set(0, 0.5);
  Tensor spread = upload(half);
  spread.desc = denseDesc(DType::F32, {kMany});
  spread.desc.strides = {0};
  const Outputs results = run(std::move(b).build(), {far, spread});
  for (int64_t i : {0, 1, 999}) {
    EXPECT_EQ(at(results[0], {0, i}), Scalar(3 * i % 251 + 1)) << i;
    EXPECT_EQ(at(results[0], {1, i}), Scalar((kTwo31 + 1000 + 3 * i) % 251 + 1)) << i;
  }
  EXPECT_EQ(at(results[1], {}), Scalar(static_cast<double>(kMany) / 4));
}

TEST_P(LargeTensors, IndicesPastTwo31AreRight) {
  const Outputs made = counted({Size(kMany)});
  HostTensor index(DType::I64, {static_cast<int64_t>(kPlaces.size())});
  for (size_t i = 0; i < kPlaces.size(); ++i) index.set(static_cast<int64_t>(i), kPlaces[i]);
  FusionBuilder b("places");
  const ValueId x = b.input("x", DType::U8, {Size::symbol("n")});
  const ValueId at_places = b.input("at", DType::I64, {Size::symbol("k")});
  b.output(b.take(x, at_places, 0));
  b.output(b.flip(x, {0}));
  const Outputs results = run(std::move(b).build(), {made[0], upload(index)});
  for (size_t i = 0; i < kPlaces.size(); ++i) {
    const int64_t place = kPlaces[i];
    EXPECT_EQ(at(results[0], {static_cast<int64_t>(i)}), Scalar(place % 251)) << place;
    EXPECT_EQ(at(results[1], {place}), Scalar((kMany - 1 - place) % 251)) << place;
  }
}

// Tests a library call with more than 2^31 elements in lines of 8. Some lines begin after the first
// 2^31 elements.
TEST_P(LargeTensors, LibraryLinesAreRight) {
  constexpr int64_t kLines = kTwo31 / 8 + 5;
  const Outputs made = counted({Size(kLines), Size(8)});
  FusionBuilder b("lines");
  const ValueId x = b.input("x", DType::U8, {Size::symbol("n"), Size(8)});
  const ValueId index = b.input("at", DType::I64, {Size(1), Size(1)});
  const ValueId zeros = b.full(b.constant(int64_t{0}), {Size::symbol("n"), Size(1)}, DType::U8);
  const ValueId places = b.expand(index, {Size::symbol("n"), Size(1)});
  b.output(b.scatter(x, places, zeros, 1));
  HostTensor third(DType::I64, {1, 1});
  third.set(0, int64_t{3});
  const Outputs results = run(std::move(b).build(), {made[0], upload(third)});
  for (int64_t line : {int64_t{0}, kLines / 2, kLines - 1}) {
    for (int64_t i = 0; i < 8; ++i) {
      EXPECT_EQ(at(results[0], {line, i}), Scalar(i == 3 ? 0 : (line * 8 + i) % 251)) << line;
    }
  }
}

std::string kindName(const ::testing::TestParamInfo<DeviceKind>& info) {
  return std::string(name(info.param));
}

INSTANTIATE_TEST_SUITE_P(Devices, LargeTensors,
                         ::testing::Values(DeviceKind::Cpu, DeviceKind::Cuda), kindName);

}  // namespace
}  // namespace heddle::host::large_tensors_big_test
