// Times examples/gelu_backward_bias_grad.fusion at its default sizes on the CPU. Also prints the
// time in which the same number of threads would copy as many bytes (floor_ms), from a copy that is
// measured in the same run. Prints one JSON object.
//
//   bench_cpu_main_example [FILE [THREADS]]
//
// FILE: times this fusion instead. THREADS: default one per CPU of the machine.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/main_example.h"
#include "bench/parallel_copy.h"
#include "bench/timing.h"
#include "host/device/cpu/cpu_device.h"
#include "ir/base/check.h"

namespace {

using namespace heddle;

template <class Work>
double medianMs(Work& work) {
  return 1e-6 * bench::medianOf(3, 2, [&] { return bench::hostNs(work); });
}

void run(const std::string& path, int threads) {
  const std::unique_ptr<host::Device> device =
      host::makeCpuDevice({.threads = threads, .adversarial_seed = {}});
  bench::MainExample example(path, *device);
  bench::ParallelCopy copy(size_t{256} << 20, threads);
  const auto fusion = [&] { example.executable->run(example.arguments).wait(); };
  // Alternate the two measurements, so that other work on the machine slows down both.
  std::vector<double> copy_ms;
  std::vector<double> fusion_ms;
  for (int i = 0; i < 5; ++i) {
    copy_ms.push_back(medianMs(copy));
    fusion_ms.push_back(medianMs(fusion));
  }
  const double bandwidth = copy.bytes() / (1e-3 * bench::median(std::move(copy_ms)));
  const double ms = bench::median(std::move(fusion_ms));
  const double floor_ms = 1e3 * example.bytes / bandwidth;
  fmt::print(
      "{{\"name\": \"main example on the CPU\", \"device\": \"{}\", \"threads\": {}, \"cpu_ms\": "
      "{:.2f}, "
      "\"floor_ms\": {:.2f}, \"of_copy_bandwidth\": {:.3f}, \"copy_gb_s\": {:.1f}, "
      "\"bytes\": {:.0f}}}\n",
      device->description(), threads, ms, floor_ms, floor_ms / ms, bandwidth / 1e9, example.bytes);
}

}  // namespace

int main(int argc, char** argv) {
  return heddle::bench::runGuarded([&] {
    const int all = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    run(argc > 1 ? argv[1] : "examples/gelu_backward_bias_grad.fusion",
        argc > 2 ? std::max(1, std::atoi(argv[2])) : all);
  });
}
