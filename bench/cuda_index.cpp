// Times sort, argsort, topk, embedding, scatter_add and cumsum through a FusionExecutor on GPU 0.
// Prints one JSON object per line with the GPU time and the bytes per second (Case::bytes).
// bench/peers/torch_index.py times the same ops in PyTorch.
//
//   bench_cuda_index [ROUNDS [FILTER]]
//
// FILTER: only cases whose name contains this text run.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "bench/cuda_timing.h"
#include "host/executable.h"
#include "host/fusion_executor.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"

namespace {

using namespace heddle;

struct Case {
  const char* name;
  const char* inputs;  // text of the fusion that creates the inputs on the device
  const char* fusion;
  // The bytes that must at least be read and written: all inputs and outputs, each once. Exception:
  // of the table of an embedding, one row per index counts.
  double bytes;
  int repeats;
};

constexpr double kMiB = 1024.0 * 1024.0;
const Case kCases[] = {
    {"sort f32 [4096, 4096]",
     "() {\n  %x = normal(1, 0, sizes=[4096, 4096], dtype=f32)\n  return %x\n}",
     "(%x: f32[4096, 4096]) {\n  %v, %i = sort(%x, axis=1)\n  return %v, %i\n}", 256 * kMiB, 5},
    {"argsort f32 [4096, 4096]",
     "() {\n  %x = normal(1, 0, sizes=[4096, 4096], dtype=f32)\n  return %x\n}",
     "(%x: f32[4096, 4096]) {\n  %i = argsort(%x, axis=1)\n  return %i\n}", 192 * kMiB, 5},
    {"sort f32 [64, 262144]",
     "() {\n  %x = normal(1, 0, sizes=[64, 262144], dtype=f32)\n  return %x\n}",
     "(%x: f32[64, 262144]) {\n  %v, %i = sort(%x, axis=1)\n  return %v, %i\n}", 256 * kMiB, 3},
    {"topk 8 of f32 [16384, 128]",
     "() {\n  %x = normal(1, 0, sizes=[16384, 128], dtype=f32)\n  return %x\n}",
     "(%x: f32[16384, 128]) {\n  %v, %i = topk(%x, k=8, axis=1)\n  return %v, %i\n}",
     16384.0 * (128 * 4 + 8 * 12), 20},
    {"topk 50 of f32 [256, 128256]",
     "() {\n  %x = normal(1, 0, sizes=[256, 128256], dtype=f32)\n  return %x\n}",
     "(%x: f32[256, 128256]) {\n  %v, %i = topk(%x, k=50, axis=1)\n  return %v, %i\n}",
     256.0 * (128256 * 4 + 50 * 12), 5},
    {"scatter_add f32 [1000000, 128] into [100000, 128]",
     "() {\n  %z = full(0.0, sizes=[100000, 128], dtype=f32)\n"
     "  %i = randint(2, 0, sizes=[1000000, 1], high=100000)\n"
     "  %s = normal(3, 0, sizes=[1000000, 128], dtype=f32)\n  return %z, %i, %s\n}",
     "(%z: f32[100000, 128], %i: i64[1000000, 1], %s: f32[1000000, 128]) {\n"
     "  %y = scatter_add(%z, %i, %s, axis=0, stretch=true)\n  return %y\n}",
     1e6 * (128 * 4 + 8) + 2 * 1e5 * 128 * 4, 5},
    {"embedding bf16 65536 of [128256, 4096]",
     "() {\n  %i = randint(2, 0, sizes=[65536], high=128256)\n"
     "  %w = normal(3, 0, sizes=[128256, 4096], dtype=bf16)\n  return %i, %w\n}",
     "(%i: i64[65536], %w: bf16[128256, 4096]) {\n  %y = embedding(%i, %w)\n  return %y\n}",
     65536.0 * (8 + 2 * 4096 * 2), 5},
    {"cumsum f32 [8192, 8192]",
     "() {\n  %x = normal(1, 0, sizes=[8192, 8192], dtype=f32)\n  return %x\n}",
     "(%x: f32[8192, 8192]) {\n  %y = cumsum(%x, axis=1)\n  return %y\n}", 512 * kMiB, 5},
    {"cumsum f32 [16, 4194304]",
     "() {\n  %x = normal(1, 0, sizes=[16, 4194304], dtype=f32)\n  return %x\n}",
     "(%x: f32[16, 4194304]) {\n  %y = cumsum(%x, axis=1)\n  return %y\n}", 512 * kMiB, 5},
};

host::FusionExecutor executorOf(const char* text, host::Device& device) {
  return {parseFusion(fmt::format("{}\nfusion bench{}\n", kVersionLine, text), "bench"), {&device}};
}

std::vector<host::Argument> inputsOf(const Case& each, host::Device& device) {
  host::FusionExecutor maker = executorOf(each.inputs, device);
  const host::Outputs made = maker.run({});
  made.wait();
  std::vector<host::Argument> inputs;
  for (size_t i = 0; i < made.size(); ++i) inputs.push_back(made[i]);
  return inputs;
}

void time(const Case& each, host::Device& device, cudaStream_t stream, int rounds) {
  const std::vector<host::Argument> inputs = inputsOf(each, device);
  host::FusionExecutor executor = executorOf(each.fusion, device);
  host::RunOptions options;
  options.stream = stream;
  const double ms =
      bench::medianMs(stream, rounds, each.repeats, [&] { executor.run(inputs, options); });
  fmt::print("{{\"name\": \"{}\", \"device\": \"{}\", \"gpu_ms\": {:.4f}, \"gb_s\": {:.0f}}}\n",
             each.name, device.description(), ms, each.bytes / (ms * 1e-3) / 1e9);
  std::fflush(stdout);
}

void run(int rounds, const std::string& filter) {
  const std::unique_ptr<host::Device> device = host::makeCudaDevice(0);
  const host::Stream stream = device->createStream();
  for (const Case& each : kCases) {
    if (std::string(each.name).find(filter) == std::string::npos) continue;
    time(each, *device, static_cast<cudaStream_t>(stream), rounds);
  }
  device->destroyStream(stream);
}

}  // namespace

int main(int argc, char** argv) {
  std::string why;
  if (host::cudaDeviceCount(why) == 0) {
    fmt::print(stderr, "{}\n", why);
    return 0;
  }
  return heddle::bench::runGuarded(
      [&] { run(heddle::bench::roundsOf(argc, argv, 20), argc > 2 ? argv[2] : ""); });
}
