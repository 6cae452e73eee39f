// Tests the exchange of tensors in GPU memory through DLPack (host/dlpack/dlpack.h).
#include "host/fusion_executor.h"
#include "tests/host/dlpack_producer.h"
#include "tests/host/executable_common.h"
#include "tests/host/gpu_device.h"

namespace heddle::host::dlpack_gpu_test {
namespace {

using testing::exported;
using testing::floatsOf;
using testing::Producer;
using testing::ramp;
using testing::release;
using testing::userErrorOf;

class DLPackGpu : public GpuDeviceFixture {
 protected:
  // Returns an executor of y = x + x.
  FusionExecutor doubled() {
    FusionBuilder b("doubled");
    const ValueId x = b.input("x", DType::F32, {Size::symbol("n"), Size::symbol("m")});
    b.output(b.pointwise("add", {x, x}));
    return FusionExecutor(std::move(b).build(), Context{device_.get(), nullptr, nullptr});
  }
};

TEST_F(DLPackGpu, TensorOfTheGpuIsTakenAndGivenBack) {
  const std::vector<float> values = ramp(24, 0, 1);
  Producer<DLManagedTensorVersioned> producer(upload(values), {3, 2});
  producer.setStrides({1, 4});
  producer.managed.dl_tensor.byte_offset = 8;
  producer.managed.dl_tensor.device = {dlpack::kCuda, 0};
  {
    const Tensor tensor = fromDLPack(*device_, &producer.managed);
    EXPECT_EQ(floatsOf(*device_, tensor), (std::vector<float>{2, 6, 3, 7, 4, 8}));
    DLManagedTensor* managed = exported<DLManagedTensor>(*device_, tensor);
    EXPECT_EQ(managed->dl_tensor.device.device_type, dlpack::kCuda);
    EXPECT_EQ(managed->dl_tensor.device.device_id, 0);
    EXPECT_EQ(managed->dl_tensor.data, tensor.data);
    release(managed);
  }
  EXPECT_EQ(producer.deleted, 1);
}

TEST_F(DLPackGpu, TensorsOfOtherDevicesAreRefused) {
  std::vector<float> values(2);
  Producer<DLManagedTensor> producer(values.data(), {2});
  for (const auto& [device, text] :
       {std::pair<DLDevice, const char*>{{dlpack::kCpu, 0}, "a DLPack tensor is on the CPU, "},
        {{dlpack::kCudaHost, 0}, "a DLPack tensor is on pinned memory of the CPU, "},
        {{dlpack::kCuda, 1}, "a DLPack tensor is on cuda:1, "}}) {
    producer.managed.dl_tensor.device = device;
    EXPECT_EQ(userErrorOf([&] { fromDLPack(*device_, &producer.managed); }),
              text + ("but the device " + device_->description()) +
                  " needs a tensor on cuda:0: copy the tensor first");
  }
  EXPECT_EQ(producer.deleted, 0);
}

// The producer writes on the stream of the run. The consumer reads on another stream, which waits
// for the run. The host waits for nothing in between. The handle 1 is CUDA's default stream.
TEST_F(DLPackGpu, StreamsOrderProducerRunAndConsumer) {
  constexpr size_t kRows = 1024, kColumns = 4096;
  const std::vector<float> values = ramp(kRows * kColumns, 1, 0.5f);
  const auto bytes = static_cast<int64_t>(values.size() * sizeof(float));
  FusionExecutor executor = doubled();
  const Stream consumer = device_->createStream();
  void* const memory = allocate(bytes);
  std::vector<float> read(values.size());
  for (const Stream stream : {stream_, stream_, reinterpret_cast<Stream>(uintptr_t{1})}) {
    Producer<DLManagedTensorVersioned> producer(memory, {kRows, kColumns});
    producer.managed.dl_tensor.device = {dlpack::kCuda, 0};
    device_->fill(memory, 0, bytes, stream, {});
    device_->copy(memory, values.data(), bytes, stream, {});
    RunOptions options;
    options.stream = stream;
    const Outputs outputs = executor.run({fromDLPack(*device_, &producer.managed)}, options);
    outputs.makeWait(consumer);
    DLManagedTensor* managed = exported<DLManagedTensor>(*device_, std::get<Tensor>(outputs[0]));
    device_->copy(read.data(), managed->dl_tensor.data, bytes, consumer, {});
    finish(consumer);
    outputs.wait();
    release(managed);
    for (size_t i = 0; i < read.size(); ++i) ASSERT_EQ(read[i], 2 * values[i]) << i;
    EXPECT_EQ(producer.deleted, 1);
  }
  device_->destroyStream(consumer);
}

}  // namespace
}  // namespace heddle::host::dlpack_gpu_test
