// Times causal attention of bf16 [16, 32, 2048, 128] and its backward pass through a FusionExecutor
// on GPU 0. The backward pass gets no results of the forward pass, so it computes again what it
// needs of them. bench/peers/torch_attention.py times the same attention in PyTorch. Prints one
// JSON object per line. taken_mib is the GPU memory that the runs allocate for results, workspace
// and code that the library loads.
//
//   bench_cuda_attention [ROUNDS]
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "bench/cuda_timing.h"
#include "host/executable.h"
#include "host/fusion_executor.h"
#include "host/tensor.h"
#include "ir/base/check.h"
#include "ir/composite/composite.h"

namespace {

using namespace heddle;
using bench::check;

constexpr int64_t kBatch = 16, kHeads = 32, kTokens = 2048, kWidth = 128;
constexpr int kRepeats = 5;

struct Case {
  const char* name;
  std::vector<const char*> inputs;
  // The number of matrix products over the lower triangle of [tokens, tokens] that are needed at
  // least. A library may compute more.
  int products;
  Fusion fusion;
};

Case causalAttention(bool backward) {
  Case result{
      backward ? "causal attention backward" : "causal attention", {}, backward ? 5 : 2, {}};
  FusionBuilder b(backward ? "attention_backward" : "attention");
  const auto input = [&](const char* name) {
    result.inputs.push_back(name);
    return b.input(name, DType::BF16, {kBatch, kHeads, kTokens, kWidth});
  };
  const ValueId g = backward ? input("g") : kNoValue;
  const ValueId q = input("q");
  const ValueId k = input("k");
  const ValueId v = input("v");
  AttentionOptions options;
  options.causal = true;
  if (backward) {
    const AttentionGrads grads = attentionBackward(b, g, q, k, v, kNoValue, options);
    for (ValueId each : {grads.q, grads.k, grads.v}) b.output(each);
  } else {
    b.output(attention(b, q, k, v, kNoValue, options));
  }
  result.fusion = std::move(b).build();
  return result;
}

// Returns the median time of a run in ms.
double timeOf(host::FusionExecutor& executor, const std::vector<host::Argument>& inputs,
              host::Device& device, int rounds) {
  host::RunOptions options;
  options.stream = device.createStream();
  return bench::medianMs(static_cast<cudaStream_t>(options.stream), rounds, kRepeats,
                         [&] { executor.run(inputs, options); });
}

// Returns the GPU memory in bytes that all processes use.
size_t usedBytes() {
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return total - free;
}

void run(Case what, int rounds) {
  const std::unique_ptr<host::Device> device = host::makeCudaDevice(0);
  std::vector<host::Argument> inputs;
  for (const char* name : what.inputs) {
    const TensorDesc desc = denseDesc(DType::BF16, {kBatch, kHeads, kTokens, kWidth});
    inputs.emplace_back(host::toDevice(*device, device->allocator(),
                                       randomTensor(desc.dtype, desc.sizes, 1, name), desc));
  }
  host::FusionExecutor executor(std::move(what.fusion), {device.get()});
  const size_t used_before = usedBytes();
  const double ms = timeOf(executor, inputs, *device, rounds);
  const double flop =
      static_cast<double>(what.products) * kBatch * kHeads * kTokens * kTokens * kWidth;
  fmt::print(
      "{{\"name\": \"{} bf16 [{}, {}, {}, {}]\", \"device\": \"{}\", "
      "\"gpu_ms\": {:.4f}, \"tflop_s\": {:.1f}, \"taken_mib\": {}}}\n",
      what.name, kBatch, kHeads, kTokens, kWidth, device->description(), ms,
      flop / (ms * 1e-3) / 1e12, (usedBytes() - used_before) >> 20);
}

}  // namespace

int main(int argc, char** argv) {
  return heddle::bench::runGuarded([&] {
    const int rounds = heddle::bench::roundsOf(argc, argv, 20);
    std::string why;
    if (host::cudaDeviceCount(why) == 0) {
      fmt::print(stderr, "{}\n", why);
      return;
    }
    run(causalAttention(false), rounds);
    run(causalAttention(true), rounds);
  });
}
