// GPU time of examples/gelu_backward_bias_grad.fusion at its default sizes, against the copy
// bandwidth of the same GPU measured in the same run. Prints one JSON object.
//
//   bench_cuda_main_example [FILE]
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>

#include "host/executable.h"
#include "ir/error.h"
#include "ir/text.h"

namespace {

using namespace heddle;

void check(cudaError_t status, const char* call) {
  if (status != cudaSuccess) userError("{}: {}", call, cudaGetErrorString(status));
}

// Median milliseconds of `work` on `stream`, by events.
template <class Work>
double medianMs(cudaStream_t stream, int runs, const Work& work) {
  cudaEvent_t begin;
  cudaEvent_t end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<float> times;
  for (int i = 0; i < runs + 3; ++i) {
    check(cudaEventRecord(begin, stream), "cudaEventRecord");
    work();
    check(cudaEventRecord(end, stream), "cudaEventRecord");
    check(cudaEventSynchronize(end), "cudaEventSynchronize");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    if (i >= 3) times.push_back(ms);  // the first ones plan, compile and fill pools
  }
  check(cudaEventDestroy(begin), "cudaEventDestroy");
  check(cudaEventDestroy(end), "cudaEventDestroy");
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// Bytes a second of a device-to-device copy, counting bytes read and written.
double copyBandwidth(cudaStream_t stream) {
  const size_t bytes = size_t{1} << 30;
  void* from = nullptr;
  void* to = nullptr;
  check(cudaMalloc(&from, bytes), "cudaMalloc");
  check(cudaMalloc(&to, bytes), "cudaMalloc");
  const double ms = medianMs(stream, 20, [&] {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
  });
  check(cudaFree(from), "cudaFree");
  check(cudaFree(to), "cudaFree");
  return 2.0 * static_cast<double>(bytes) / (ms * 1e-3);
}

void run(const std::string& path) {
  std::ifstream file(path);
  HEDDLE_USER_CHECK(file.good(), "{}: cannot read the file", path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const host::Program program = host::compile(parseFusion(text, path), 1);
  const SizeBindings sizes(program.size_defaults.begin(), program.size_defaults.end());

  std::unique_ptr<host::Device> device = host::makeCudaDevice(0);
  host::Executable executable(program, {device.get(), nullptr, nullptr});
  std::vector<host::Argument> arguments;
  double bytes = 0;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const host::Slot& slot = program.slots[static_cast<size_t>(program.inputs[i])];
    if (slot.is_scalar) {
      arguments.emplace_back(slot.default_value.value());
      continue;
    }
    const TensorDesc desc = host::inputDesc(program, i, sizes, 0, 1);
    const HostTensor values = randomTensor(desc.dtype, desc.global, 1, slot.name);
    arguments.emplace_back(host::toDevice(*device, device->allocator(), values, desc));
    bytes += static_cast<double>(desc.allocBytes());
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    bytes += static_cast<double>(host::outputDesc(program, i, sizes, 0, 1).allocBytes());
  }
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  const double bandwidth = copyBandwidth(stream);
  host::RunOptions options;
  options.stream = stream;
  const double ms = medianMs(stream, 30, [&] { executable.run(arguments, options); });
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  const double floor_ms = 1e3 * bytes / bandwidth;
  fmt::print(
      "{{\"name\": \"main example\", \"device\": \"{}\", \"gpu_ms\": {:.4f}, "
      "\"floor_ms\": {:.4f}, \"of_copy_bandwidth\": {:.3f}, \"copy_gb_s\": {:.0f}, "
      "\"bytes\": {:.0f}}}\n",
      device->description(), ms, floor_ms, floor_ms / ms, bandwidth / 1e9, bytes);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "examples/gelu_backward_bias_grad.fusion");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
