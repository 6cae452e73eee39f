// Shows heddle inside another application. The program builds a fusion in C++. It runs the fusion
// on the application's own stream, with memory from the application's own allocator. An input comes
// from another library through DLPack. The program compiles the kernels before the first run, and
// distinguishes errors by their codes. It needs no MPI and reads no input files. It runs on the
// CPU, and on GPU 0 if there is a GPU.
#include <heddle/heddle.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <new>
#include <string>
#include <vector>

namespace {

using namespace heddle;

constexpr int64_t kRows = 6;
constexpr int64_t kColumns = 1000;

// Builds y[r] = sum over c of gelu(x[r, c] + bias[c]) * scale.
Fusion buildFusion() {
  FusionBuilder b("bias_gelu_sum");
  const ValueId x = b.input("x", DType::F32, {"r", "c"});
  const ValueId bias = b.input("bias", DType::F32, {"c"});
  const ValueId scale = b.scalarInput("scale", DType::F32, Scalar(1.0));
  const ValueId activated = gelu(b, b.pointwise("add", {x, bias}), GeluKind::Tanh);
  const ValueId scaled = b.pointwise("mul", {activated, scale});
  b.output(b.name("y").reduce("sum", scaled, {1}));
  return std::move(b).build();
}

std::vector<double> plainLoop(const HostTensor& x, const HostTensor& bias, double scale) {
  std::vector<double> y(kRows, 0.0);
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kColumns; ++c) {
      const double v = toDouble(x.at(r * kColumns + c)) + toDouble(bias.at(c));
      const double inner = std::sqrt(2.0 / M_PI) * (v + 0.044715 * v * v * v);
      y[static_cast<size_t>(r)] += 0.5 * v * (1.0 + std::tanh(inner)) * scale;
    }
  }
  return y;
}

// The application's allocator, which allocates blocks of one slab from front to back. Work on the
// stream may still use a deallocated block. The memory is therefore reused only after reset(),
// which the application calls when the work has completed.
class Arena : public host::Allocator {
 public:
  Arena(host::Allocator& source, int64_t bytes)
      : source_(source),
        bytes_(bytes),
        slab_(static_cast<std::byte*>(source.allocate(bytes, nullptr))) {}
  ~Arena() override { source_.deallocate(slab_, bytes_, nullptr); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* allocate(int64_t bytes, host::Stream) override {
    constexpr int64_t kAlignment = 256;
    std::lock_guard lock(mutex_);
    if (used_ + bytes > bytes_) throw std::bad_alloc();
    void* memory = slab_ + used_;
    used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    ++blocks_;
    return memory;
  }
  void deallocate(void*, int64_t, host::Stream) noexcept override {
    std::lock_guard lock(mutex_);
    --blocks_;
  }
  // Returns the number of blocks that were not deallocated. If this number is 0, the slab is free
  // again.
  int64_t reset() {
    std::lock_guard lock(mutex_);
    if (blocks_ == 0) used_ = 0;
    return blocks_;
  }

 private:
  host::Allocator& source_;
  const int64_t bytes_;
  std::byte* slab_;
  std::mutex mutex_;
  int64_t used_ = 0;
  int64_t blocks_ = 0;
};

double largestError(const HostTensor& got, const std::vector<double>& expected) {
  double error = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    error = std::max(error, std::fabs(toDouble(got.at(static_cast<int64_t>(i))) - expected[i]));
  }
  return error;
}

// Another library gives its tensors as DLPack. Here heddle itself plays this library.
DLManagedTensor* tensorOfAnotherLibrary(host::Device& device, const HostTensor& values) {
  const host::Tensor tensor =
      host::toDevice(device, device.allocator(), values, denseDesc(values.dtype, values.sizes));
  return host::toDLPack(device, tensor);
}

// Returns whether a run fails with the code ShapeMismatch if `x` has one axis instead of two.
bool refusesWrongShape(host::FusionExecutor& executor, const std::vector<host::Argument>& inputs) {
  try {
    executor.run({inputs[1], inputs[1], inputs[2]});
  } catch (const Error& error) {
    std::printf("  expected error (%s): %s\n", nameOf(error.code()), error.what());
    return error.code() == ErrorCode::ShapeMismatch;
  }
  return false;
}

bool runOn(host::Device& device) {
  const HostTensor x = randomTensor(DType::F32, {kRows, kColumns}, 1, "x");
  const HostTensor bias = randomTensor(DType::F32, {kColumns}, 1, "bias");
  const double scale = 0.5;

  Arena arena(device.allocator(), int64_t{1} << 20);
  const host::Stream stream = device.createStream();
  double error = 0;
  bool good = true;
  {
    host::FusionExecutor executor(buildFusion(), {&device, nullptr, nullptr});
    // Compile before the first request. The tensors have shapes, but no data yet.
    host::RunOptions options;
    options.stream = stream;
    options.allocator = &arena;
    executor.prepare(
        {host::Tensor{nullptr, denseDesc(DType::F32, {kRows, kColumns}), nullptr},
         host::Tensor{nullptr, denseDesc(DType::F32, {kColumns}), nullptr}, Scalar(scale)},
        options);
    // The tensor from fromDLPack() owns the memory of the other library. A run keeps this memory
    // until the work of the run is done.
    const std::vector<host::Argument> inputs = {
        host::fromDLPack(device, tensorOfAnotherLibrary(device, x)),
        host::toDevice(device, device.allocator(), bias, denseDesc(DType::F32, bias.sizes)),
        Scalar(scale)};
    for (int i = 0; i < 3; ++i) {
      const host::Outputs outputs = executor.run(inputs, options);
      outputs.wait();
      const HostTensor y = host::toHost(device, outputs.tensor("y"));
      error = largestError(y, plainLoop(x, bias, scale));
      if (i > 0) continue;
      std::printf("%s\n  y =", device.description().c_str());
      for (int64_t r = 0; r < kRows; ++r) std::printf(" %.4f", toDouble(y.at(r)));
      std::printf("\n");
    }
    good = refusesWrongShape(executor, inputs);
  }
  const int64_t left = arena.reset();
  device.destroyStream(stream);
  good = good && error < 1e-2 && left == 0;
  std::printf("  against a plain loop: largest error %.2g; blocks not deallocated: %lld: %s\n",
              error, static_cast<long long>(left), good ? "ok" : "WRONG");
  return good;
}

}  // namespace

int main() {
  try {
    bool good = runOn(*host::makeCpuDevice());
    std::string why;
    if (host::cudaDeviceCount(why) > 0) {
      good = runOn(*host::makeCudaDevice(0)) && good;
    } else {
      std::printf("no GPU here: %s\n", why.c_str());
    }
    return good ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
