// Times examples/gelu_backward_bias_grad.fusion at its default sizes on the GPU. Also prints the
// time in which the same GPU would copy as many bytes (floor_ms), from a copy that is measured in
// the same run. Prints one JSON object.
//
//   bench_cuda_main_example [FILE]
//
// FILE: times this fusion instead.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <memory>
#include <string>

#include "bench/cuda_timing.h"
#include "bench/main_example.h"
#include "ir/base/check.h"

namespace {

using namespace heddle;
using bench::check;

// Returns the bytes per second of a device-to-device copy, counting bytes read and written.
double copyBandwidth(cudaStream_t stream) {
  const size_t bytes = size_t{1} << 30;
  void* from = nullptr;
  void* to = nullptr;
  check(cudaMalloc(&from, bytes), "cudaMalloc");
  check(cudaMalloc(&to, bytes), "cudaMalloc");
  const double ms = bench::medianMs(stream, 20, 1, [&] {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
  });
  check(cudaFree(from), "cudaFree");
  check(cudaFree(to), "cudaFree");
  return 2.0 * static_cast<double>(bytes) / (ms * 1e-3);
}

void run(const std::string& path) {
  const std::unique_ptr<host::Device> device = host::makeCudaDevice(0);
  bench::MainExample example(path, *device);
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  const double bandwidth = copyBandwidth(stream);
  host::RunOptions options;
  options.stream = stream;
  const double ms =
      bench::medianMs(stream, 30, 1, [&] { example.executable->run(example.arguments, options); });
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  const double floor_ms = 1e3 * example.bytes / bandwidth;
  fmt::print(
      "{{\"name\": \"main example\", \"device\": \"{}\", \"gpu_ms\": {:.4f}, "
      "\"floor_ms\": {:.4f}, \"of_copy_bandwidth\": {:.3f}, \"copy_gb_s\": {:.0f}, "
      "\"bytes\": {:.0f}}}\n",
      device->description(), ms, floor_ms, floor_ms / ms, bandwidth / 1e9, example.bytes);
}

}  // namespace

int main(int argc, char** argv) {
  return heddle::bench::runGuarded(
      [&] { run(argc > 1 ? argv[1] : "examples/gelu_backward_bias_grad.fusion"); });
}
