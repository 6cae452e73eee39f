// Tests the exchange of tensors in CPU memory through both structs of DLPack
// (host/dlpack/dlpack.h).
#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <thread>

#include "host/device/null/null_device.h"
#include "host/fusion_executor.h"
#include "tests/host/dlpack_producer.h"
#include "tests/host/executable_common.h"
#include "tests/host/faulty_device.h"

namespace heddle::host::dlpack_cpu_test {
namespace {

using testing::deviceFloats;
using testing::exported;
using testing::FaultyDevice;
using testing::floatsOf;
using testing::Producer;
using testing::ramp;
using testing::release;
using testing::userErrorOf;

template <class Managed>
struct DLPackStruct : ::testing::Test {
  DLPackStruct() { std::iota(values.begin(), values.end(), 0.0f); }
  // Returns the error of an import, or nullopt if there is none. The caller must still own the
  // managed tensor after an error.
  std::optional<ErrorCode> errorOf(Producer<Managed>& producer, Device& on) {
    try {
      fromDLPack(on, &producer.managed);
    } catch (const UserError& e) {
      message = e.what();
      EXPECT_EQ(producer.deleted, 0) << message;
      return e.code();
    }
    return std::nullopt;
  }
  std::unique_ptr<Device> device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  std::vector<float> values = std::vector<float>(24);
  std::string message;
};

using Structs = ::testing::Types<DLManagedTensor, DLManagedTensorVersioned>;
TYPED_TEST_SUITE(DLPackStruct, Structs);

TYPED_TEST(DLPackStruct, RoundTripKeepsAddressSizesAndStrides) {
  Producer<TypeParam> producer(this->values.data(), {2, 3, 2});
  producer.setStrides({2, 4, 1});
  {
    const Tensor tensor = fromDLPack(*this->device, &producer.managed);
    EXPECT_EQ(tensor.data, this->values.data());
    EXPECT_EQ(tensor.desc.global, producer.sizes);
    EXPECT_EQ(tensor.desc.alloc, producer.sizes);
    TypeParam* managed = exported<TypeParam>(*this->device, tensor);
    const DLTensor& out = managed->dl_tensor;
    EXPECT_EQ(out.data, this->values.data());
    EXPECT_EQ(out.byte_offset, 0u);
    EXPECT_EQ(out.device.device_type, dlpack::kCpu);
    EXPECT_EQ(out.device.device_id, 0);
    EXPECT_EQ(std::vector(out.shape, out.shape + out.ndim), producer.sizes);
    EXPECT_EQ(std::vector(out.strides, out.strides + out.ndim), producer.strides);
    release(managed);
    EXPECT_EQ(producer.deleted, 0);
  }
  EXPECT_EQ(producer.deleted, 1);
}

TYPED_TEST(DLPackStruct, PermutedTensorWithOffsetIsRead) {
  Producer<TypeParam> producer(this->values.data(), {3, 2});
  producer.setStrides({1, 4});
  producer.managed.dl_tensor.byte_offset = 8;
  const Tensor tensor = fromDLPack(*this->device, &producer.managed);
  EXPECT_EQ(floatsOf(*this->device, tensor), (std::vector<float>{2, 6, 3, 7, 4, 8}));
}

TYPED_TEST(DLPackStruct, MissingStridesAreRowMajor) {
  Producer<TypeParam> producer(this->values.data(), {2, 3, 4});
  const Tensor tensor = fromDLPack(*this->device, &producer.managed);
  EXPECT_EQ(tensor.desc.strides, (std::vector<int64_t>{12, 4, 1}));
  EXPECT_EQ(floatsOf(*this->device, tensor), this->values);
}

TYPED_TEST(DLPackStruct, BroadcastAxisKeepsStrideZero) {
  Producer<TypeParam> producer(this->values.data(), {3, 2});
  producer.setStrides({0, 1});
  const Tensor tensor = fromDLPack(*this->device, &producer.managed);
  EXPECT_EQ(floatsOf(*this->device, tensor), (std::vector<float>{0, 1, 0, 1, 0, 1}));
}

TYPED_TEST(DLPackStruct, TensorWithoutAxesIsOneElement) {
  Producer<TypeParam> producer(&this->values[5], {});
  producer.managed.dl_tensor.shape = nullptr;
  const Tensor tensor = fromDLPack(*this->device, &producer.managed);
  EXPECT_EQ(floatsOf(*this->device, tensor), (std::vector<float>{5}));
  TypeParam* managed = exported<TypeParam>(*this->device, tensor);
  EXPECT_EQ(managed->dl_tensor.ndim, 0);
  EXPECT_EQ(managed->dl_tensor.data, &this->values[5]);
  release(managed);
}

TYPED_TEST(DLPackStruct, TensorWithoutElementsNeedsNoData) {
  Producer<TypeParam> producer(nullptr, {3, 0, 2});
  producer.setStrides({-1, -1, -1});
  const Tensor tensor = fromDLPack(*this->device, &producer.managed);
  EXPECT_EQ(tensor.data, nullptr);
  TypeParam* managed = exported<TypeParam>(*this->device, tensor);
  EXPECT_EQ(managed->dl_tensor.data, nullptr);
  EXPECT_EQ(managed->dl_tensor.shape[1], 0);
  release(managed);
}

TYPED_TEST(DLPackStruct, EveryDTypeIsKept) {
  alignas(8) std::array<std::byte, 16> bytes{};
  for (const DType dtype : kAllDTypes) {
    Tensor tensor{bytes.data(), denseDesc(dtype, {2}), nullptr};
    TypeParam* managed = exported<TypeParam>(*this->device, tensor);
    EXPECT_EQ(managed->dl_tensor.dtype.bits, 8 * sizeOf(dtype)) << name(dtype);
    EXPECT_EQ(managed->dl_tensor.dtype.lanes, 1) << name(dtype);
    const Tensor back = fromDLPack(*this->device, managed);
    EXPECT_EQ(back.desc, tensor.desc) << name(dtype);
    EXPECT_EQ(back.data, tensor.data) << name(dtype);
  }
}

TYPED_TEST(DLPackStruct, OtherElementsAreRefused) {
  const std::pair<DLDataType, const char*> kOthers[] = {
      {{dlpack::kComplex, 64, 1}, "complex64"},
      {{dlpack::kUInt, 16, 1}, "uint16"},
      {{dlpack::kFloat, 32, 4}, "float32 with 4 lanes"},
      {{dlpack::kBool, 1, 1}, "bool1"},
      {{dlpack::kFloat, 128, 1}, "float128"},
      {{8, 8, 1}, "type code 8 with 8 bits"},
  };
  for (const auto& [type, text] : kOthers) {
    Producer<TypeParam> producer(this->values.data(), {2}, type);
    EXPECT_EQ(this->errorOf(producer, *this->device), ErrorCode::Type);
    EXPECT_EQ(this->message, std::string("a DLPack tensor has elements of type ") + text +
                                 ", expected one of bool, u8, i8, i32, i64, f8e4m3, f8e5m2, f16, "
                                 "bf16, f32, f64 with one lane: cast the tensor first");
  }
}

TYPED_TEST(DLPackStruct, WrongShapesAreRefused) {
  Producer<TypeParam> reversed(this->values.data() + 23, {4, 6});
  reversed.setStrides({6, -1});
  EXPECT_EQ(this->errorOf(reversed, *this->device), ErrorCode::ShapeMismatch);
  EXPECT_EQ(this->message,
            "axis 1 of a DLPack tensor with the sizes [4, 6] has the negative stride -1, expected "
            "0 or more: copy the tensor first");
  Producer<TypeParam> negative(this->values.data(), {4, -2});
  EXPECT_EQ(this->errorOf(negative, *this->device), ErrorCode::ShapeMismatch);
  EXPECT_EQ(this->message, "axis 1 of a DLPack tensor has the negative size -2");
  Producer<TypeParam> without(this->values.data(), {4});
  without.managed.dl_tensor.shape = nullptr;
  EXPECT_EQ(this->errorOf(without, *this->device), ErrorCode::ShapeMismatch);
  Producer<TypeParam> minus(this->values.data(), {});
  minus.managed.dl_tensor.ndim = -1;
  EXPECT_EQ(this->errorOf(minus, *this->device), ErrorCode::ShapeMismatch);
}

TYPED_TEST(DLPackStruct, NegativeStrideOfOneElementIsIgnored) {
  Producer<TypeParam> producer(this->values.data(), {1, 3});
  producer.setStrides({-3, 1});
  EXPECT_EQ(fromDLPack(*this->device, &producer.managed).desc, denseDesc(DType::F32, {1, 3}));
}

TYPED_TEST(DLPackStruct, WrongAddressesAreRefused) {
  Producer<TypeParam> missing(nullptr, {2});
  EXPECT_EQ(this->errorOf(missing, *this->device), ErrorCode::InvalidArgument);
  EXPECT_EQ(this->message, "a DLPack tensor with the sizes [2] has no data");
  Producer<TypeParam> odd(this->values.data(), {2});
  odd.managed.dl_tensor.byte_offset = 2;
  EXPECT_EQ(this->errorOf(odd, *this->device), ErrorCode::InvalidArgument);
  EXPECT_NE(this->message.find("expected a multiple of 4 bytes for f32"), std::string::npos);
  TypeParam* const null = nullptr;
  EXPECT_EQ(userErrorOf([&] { fromDLPack(*this->device, null); }),
            "fromDLPack: the managed tensor is a null pointer");
}

TYPED_TEST(DLPackStruct, OtherDevicesAreRefused) {
  Producer<TypeParam> producer(this->values.data(), {2});
  DLDevice& on = producer.managed.dl_tensor.device;
  for (const auto& [found, text] : {std::pair<DLDevice, const char*>{{dlpack::kCuda, 1}, "cuda:1"},
                                    {{dlpack::kCudaManaged, 0}, "CUDA managed memory"},
                                    {{10, 2}, "device 2 of type 10"}}) {
    on = found;
    EXPECT_EQ(this->errorOf(producer, *this->device), ErrorCode::Unsupported);
    EXPECT_EQ(this->message, std::string("a DLPack tensor is on ") + text + ", but the device " +
                                 this->device->description() +
                                 " needs a tensor on the CPU: copy the tensor first");
  }
  on = {dlpack::kCudaHost, 0};
  EXPECT_EQ(fromDLPack(*this->device, &producer.managed).data, this->values.data());
}

TYPED_TEST(DLPackStruct, NullDeviceTakesTensorsButGivesNone) {
  const std::unique_ptr<Device> null = makeNullDevice();
  Producer<TypeParam> producer(this->values.data(), {2});
  const Tensor tensor = fromDLPack(*null, &producer.managed);
  EXPECT_EQ(tensor.data, this->values.data());
  EXPECT_EQ(userErrorOf([&] { exported<TypeParam>(*null, tensor); }),
            "a null device has no memory for a DLPack tensor");
}

// A device that looks like GPU 3.
struct FakeGpu : FaultyDevice {
  DeviceKind kind() const override { return DeviceKind::Cuda; }
  std::string description() const override { return "cuda:3"; }
  Current makeCurrent() override { return {std::exchange(current, 3), -1}; }
  void restoreCurrent(const Current& before) noexcept override { current = before.device; }
  int current = 0;
};

TYPED_TEST(DLPackStruct, NumberOfTheGpuIsKept) {
  FakeGpu gpu;
  Producer<TypeParam> producer(this->values.data(), {2});
  DLDevice& on = producer.managed.dl_tensor.device;
  on = {dlpack::kCuda, 2};
  EXPECT_EQ(this->errorOf(producer, gpu), ErrorCode::Unsupported);
  EXPECT_EQ(this->message,
            "a DLPack tensor is on cuda:2, but the device cuda:3 needs a tensor on cuda:3: copy "
            "the tensor first");
  on = {dlpack::kCpu, 0};
  EXPECT_EQ(this->errorOf(producer, gpu), ErrorCode::Unsupported);
  on = {dlpack::kCuda, 3};
  Tensor tensor = fromDLPack(gpu, &producer.managed);
  TypeParam* managed = exported<TypeParam>(gpu, tensor);
  EXPECT_EQ(managed->dl_tensor.device.device_type, dlpack::kCuda);
  EXPECT_EQ(managed->dl_tensor.device.device_id, 3);
  release(managed);
  tensor.in_host_memory = true;
  managed = exported<TypeParam>(gpu, tensor);
  EXPECT_EQ(managed->dl_tensor.device.device_type, dlpack::kCpu);
  release(managed);
  EXPECT_EQ(gpu.current, 0);
}

TYPED_TEST(DLPackStruct, LastCopyCallsTheDeleterOnItsThread) {
  Producer<TypeParam> producer(this->values.data(), {2});
  Tensor tensor = fromDLPack(*this->device, &producer.managed);
  std::thread::id thread;
  std::thread other([&, copy = tensor]() mutable {
    thread = std::this_thread::get_id();
    tensor = {};
    EXPECT_EQ(producer.deleted, 0);
    copy = {};
  });
  other.join();
  EXPECT_EQ(producer.deleted, 1);
  EXPECT_EQ(producer.deleted_on, thread);
}

TYPED_TEST(DLPackStruct, MissingDeleterIsNotCalled) {
  Producer<TypeParam> producer(this->values.data(), {2});
  producer.managed.deleter = nullptr;
  EXPECT_EQ(fromDLPack(*this->device, &producer.managed).data, this->values.data());
}

TYPED_TEST(DLPackStruct, UnusableTensorsAreNotExported) {
  Tensor outside = deviceFloats(*this->device, {1, 2}, {2});
  outside.desc.held = false;
  EXPECT_EQ(userErrorOf([&] { exported<TypeParam>(*this->device, outside); }),
            "this rank holds no part of the tensor for DLPack");
  const Tensor missing{nullptr, denseDesc(DType::F32, {2}), nullptr};
  EXPECT_EQ(userErrorOf([&] { exported<TypeParam>(*this->device, missing); }),
            "the tensor f32[2] for DLPack has no data");
}

TYPED_TEST(DLPackStruct, MissingStridesAreExportedForTheAllocation) {
  Tensor padded = deviceFloats(*this->device, ramp(8, 0, 1), {2, 4});
  padded.desc.sizes = {2, 3};
  padded.desc.strides.clear();
  TypeParam* managed = exported<TypeParam>(*this->device, padded);
  EXPECT_EQ(managed->dl_tensor.shape[1], 3);
  EXPECT_EQ(managed->dl_tensor.strides[0], 4);
  EXPECT_EQ(managed->dl_tensor.strides[1], 1);
  release(managed);
}

// Returns the fusion y = x + x.
Fusion doubled() {
  FusionBuilder b("doubled");
  const ValueId x = b.input("x", DType::F32, {Size::symbol("n"), Size::symbol("m")});
  b.output(b.pointwise("add", {x, x}));
  return std::move(b).build();
}

TYPED_TEST(DLPackStruct, OutputOutlivesItsRun) {
  TrackingAllocator tracking(this->device->allocator());
  Producer<TypeParam> producer(this->values.data(), {4, 6});
  TypeParam* managed = nullptr;
  {
    FusionExecutor executor(doubled(), Context{this->device.get(), nullptr, nullptr});
    RunOptions options;
    options.allocator = &tracking;
    const Outputs outputs = executor.run({fromDLPack(*this->device, &producer.managed)}, options);
    outputs.wait();
    EXPECT_EQ(producer.deleted, 1);
    const Tensor& y = std::get<Tensor>(outputs[0]);
    managed = exported<TypeParam>(*this->device, y);
    EXPECT_EQ(managed->dl_tensor.data, y.data);
  }
  EXPECT_EQ(tracking.heldBytes(), 4 * 24);
  const auto* data = static_cast<const float*>(managed->dl_tensor.data);
  for (size_t i = 0; i < 24; ++i) EXPECT_EQ(data[i], 2 * this->values[i]);
  std::thread([&] { release(managed); }).join();
  EXPECT_EQ(tracking.heldBytes(), 0);
}

using DLPackVersions = DLPackStruct<DLManagedTensorVersioned>;

TEST_F(DLPackVersions, ReadOnlyTensorNeedsThePromiseOfTheCaller) {
  Producer<DLManagedTensorVersioned> producer(values.data(), {2});
  producer.managed.flags = dlpack::kReadOnly;
  EXPECT_EQ(errorOf(producer, *device), ErrorCode::InvalidArgument);
  EXPECT_EQ(message,
            "a DLPack tensor is read-only: pass DLPackAccess::ReadOnly if no run writes it, or "
            "copy the tensor first");
  const Tensor tensor = fromDLPack(*device, &producer.managed, DLPackAccess::ReadOnly);
  DLManagedTensorVersioned* managed = toDLPackVersioned(*device, tensor, DLPackAccess::ReadOnly);
  EXPECT_EQ(managed->flags, dlpack::kReadOnly);
  release(managed);
  managed = toDLPackVersioned(*device, tensor);
  EXPECT_EQ(managed->flags, 0u);
  EXPECT_EQ(managed->version.major, 1u);
  release(managed);
}

TEST_F(DLPackVersions, OtherMajorVersionIsRefused) {
  Producer<DLManagedTensorVersioned> producer(values.data(), {2});
  for (const DLPackVersion version : {DLPackVersion{2, 0}, DLPackVersion{0, 8}}) {
    producer.managed.version = version;
    EXPECT_EQ(errorOf(producer, *device), ErrorCode::Unsupported);
    EXPECT_EQ(message, fmt::format("a DLPack tensor has version {}.{}, expected version 1",
                                   version.major, version.minor));
  }
  producer.managed.version = {1, 9};
  EXPECT_EQ(errorOf(producer, *device), std::nullopt);
}

// On a device that delays work as long as possible, a copy on another stream reads the output only
// if the stream waits for the run.
TEST(DLPackStreams, StreamOfTheConsumerWaitsForTheRun) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::unique_ptr<Device> device = makeCpuDevice({.threads = 1, .adversarial_seed = seed});
    const Stream consumer = device->createStream();
    const std::vector<float> values = ramp(24, 1, 1);
    const Tensor x = deviceFloats(*device, values, {4, 6});
    std::vector<float> read(24);
    {
      FusionExecutor executor(doubled(), Context{device.get(), nullptr, nullptr});
      const Outputs outputs = executor.run({x});
      outputs.makeWait(consumer);
      DLManagedTensorVersioned* managed = toDLPackVersioned(*device, std::get<Tensor>(outputs[0]));
      device->copy(read.data(), managed->dl_tensor.data, 4 * 24, consumer, {});
      device->destroyStream(consumer);  // waits
      release(managed);
    }
    for (size_t i = 0; i < read.size(); ++i) EXPECT_EQ(read[i], 2 * values[i]) << seed;
  }
}

}  // namespace
}  // namespace heddle::host::dlpack_cpu_test
