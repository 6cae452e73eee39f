// Causal attention of bf16 [16, 32, 2048, 128] through a FusionExecutor on GPU 0, as
// bench/peers/torch_attention.py times it. Prints one JSON object a line.
//
//   bench_cuda_attention [ROUNDS]
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "host/executable.h"
#include "ir/composite.h"
#include "ir/error.h"

namespace {

using namespace heddle;

constexpr int64_t kBatch = 16, kHeads = 32, kTokens = 2048, kWidth = 128;
constexpr int kRepeats = 5;

void check(cudaError_t status, const char* call) {
  if (status != cudaSuccess) userError("{}: {}", call, cudaGetErrorString(status));
}

Fusion causalAttention() {
  FusionBuilder b("attention");
  const auto input = [&](const char* name) {
    return b.input(name, DType::BF16, {kBatch, kHeads, kTokens, kWidth});
  };
  const ValueId q = input("q");
  const ValueId k = input("k");
  AttentionOptions options;
  options.causal = true;
  b.output(attention(b, q, k, input("v"), kNoValue, options));
  return std::move(b).build();
}

void run(int rounds) {
  const std::unique_ptr<host::Device> device = host::makeCudaDevice(0);
  host::FusionExecutor executor(causalAttention(), {device.get()});
  std::vector<host::Argument> inputs;
  for (const char* name : {"q", "k", "v"}) {
    const TensorDesc desc = denseDesc(DType::BF16, {kBatch, kHeads, kTokens, kWidth});
    inputs.emplace_back(host::toDevice(*device, device->allocator(),
                                       randomTensor(desc.dtype, desc.sizes, 1, name), desc));
  }
  host::RunOptions options;
  options.stream = device->createStream();
  const auto stream = static_cast<cudaStream_t>(options.stream);
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<float> times;
  for (int i = 0; i < rounds + 3; ++i) {
    check(cudaEventRecord(begin, stream), "cudaEventRecord");
    for (int r = 0; r < kRepeats; ++r) executor.run(inputs, options);
    check(cudaEventRecord(end, stream), "cudaEventRecord");
    check(cudaEventSynchronize(end), "cudaEventSynchronize");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    if (i >= 3) times.push_back(ms / kRepeats);
  }
  std::sort(times.begin(), times.end());
  // Two products over the lower triangle.
  const double flop = 2.0 * kBatch * kHeads * kTokens * kTokens * kWidth;
  const double ms = times[times.size() / 2];
  fmt::print(
      "{{\"name\": \"causal attention bf16 [{}, {}, {}, {}]\", \"device\": \"{}\", "
      "\"gpu_ms\": {:.4f}, \"tflop_s\": {:.1f}}}\n",
      kBatch, kHeads, kTokens, kWidth, device->description(), ms, flop / (ms * 1e-3) / 1e12);
}

}  // namespace

int main(int argc, char** argv) {
  std::string why;
  if (host::cudaDeviceCount(why) == 0) {
    fmt::print(stderr, "{}\n", why);
    return 0;
  }
  run(argc > 1 ? std::atoi(argv[1]) : 20);
  return 0;
}
