// Time of examples/gelu_backward_bias_grad.fusion at its default sizes on the CPU, against the copy
// bandwidth of as many threads measured in the same run. Prints one JSON object.
//
//   bench_cpu_main_example [FILE [THREADS]]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "host/executable.h"
#include "ir/error.h"
#include "ir/text.h"

namespace {

using namespace heddle;

// Median milliseconds of `work`.
template <class Work>
double medianMs(int runs, Work& work) {
  std::vector<double> times;
  for (int i = 0; i < runs + 2; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - begin;
    if (i >= 2) times.push_back(spent.count());  // the first ones plan, compile and touch memory
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// One memcpy on each of several threads over its part of two large buffers.
class ParallelCopy {
 public:
  explicit ParallelCopy(int threads) : threads_(threads), from_(kBytes, 1), to_(kBytes, 2) {}

  void operator()() {
    std::vector<std::thread> workers;
    const size_t part = kBytes / static_cast<size_t>(threads_);
    for (int i = 0; i < threads_; ++i) {
      const size_t first = static_cast<size_t>(i) * part;
      workers.emplace_back([this, first, part] { std::memcpy(&to_[first], &from_[first], part); });
    }
    for (std::thread& worker : workers) worker.join();
  }

  // Bytes read and written a second.
  static double bandwidth(double ms) { return 2.0 * static_cast<double>(kBytes) / (ms * 1e-3); }

 private:
  static constexpr size_t kBytes = size_t{256} << 20;
  int threads_;
  std::vector<char> from_;
  std::vector<char> to_;
};

void run(const std::string& path, int threads) {
  std::ifstream file(path);
  HEDDLE_USER_CHECK(file.good(), "{}: cannot read the file", path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const host::Program program = host::compile(parseFusion(text, path), 1);
  const SizeBindings sizes(program.size_defaults.begin(), program.size_defaults.end());

  std::unique_ptr<host::Device> device =
      host::makeCpuDevice({.threads = threads, .adversarial_seed = {}});
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
  ParallelCopy copy(threads);
  const auto fusion = [&] { executable.run(arguments).wait(); };
  // Taken in turn, so that other work on the machine slows both.
  std::vector<double> copy_ms;
  std::vector<double> fusion_ms;
  for (int i = 0; i < 5; ++i) {
    copy_ms.push_back(medianMs(3, copy));
    fusion_ms.push_back(medianMs(3, fusion));
  }
  std::sort(copy_ms.begin(), copy_ms.end());
  std::sort(fusion_ms.begin(), fusion_ms.end());
  const double bandwidth = ParallelCopy::bandwidth(copy_ms[2]);
  const double ms = fusion_ms[2];
  const double floor_ms = 1e3 * bytes / bandwidth;
  fmt::print(
      "{{\"name\": \"main example on the CPU\", \"device\": \"{}\", \"threads\": {}, \"cpu_ms\": "
      "{:.2f}, "
      "\"floor_ms\": {:.2f}, \"of_copy_bandwidth\": {:.3f}, \"copy_gb_s\": {:.1f}, "
      "\"bytes\": {:.0f}}}\n",
      device->description(), threads, ms, floor_ms, floor_ms / ms, bandwidth / 1e9, bytes);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int all = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    run(argc > 1 ? argv[1] : "examples/gelu_backward_bias_grad.fusion",
        argc > 2 ? std::max(1, std::atoi(argv[2])) : all);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
