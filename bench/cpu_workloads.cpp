// Times the fusions in bench/cpu_workloads at their default sizes on the CPU. Prints one JSON
// object per line: the median time, the time of a plain copy of a tensor of f32 [8192, 4096] by the
// same number of threads, and the ratio of these times (copies). Each round measures the copy and
// the fusion, so that other work on the machine slows down both. bench/peers/torch_cpu.py times the
// same computations in PyTorch.
//
//   bench_cpu_workloads [THREADS [NAME ...]]
//
// THREADS: default one per CPU that this process may use. NAME: a file name without ".fusion";
// default all.
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/main_example.h"
#include "bench/parallel_copy.h"
#include "bench/timing.h"
#include "host/device/cpu/cpu_device.h"
#include "ir/system/usable_cpus.h"

namespace {

using namespace heddle;

constexpr int kRounds = 15;
constexpr size_t kCopyBytes = size_t{8192} * 4096 * sizeof(float);

struct Workload {
  std::string name;
  bool moves_bytes = true;  // false: a copy of the same bytes is no lower bound
};

// The workloads, by the names of their files without ".fusion".
const std::map<std::string, Workload>& workloads() {
  static const std::map<std::string, Workload> all = {
      {"softmax", {"softmax f32 [8192, 4096] on the CPU"}},
      {"layer_norm", {"layer_norm f32 [8192, 4096] on the CPU"}},
      {"gelu", {"gelu (tanh) f32 [8192, 4096] on the CPU"}},
      {"transpose_add", {"transpose + add f32 [8192, 4096] on the CPU"}},
      {"row_sums", {"row sums f32 [8192, 4096] on the CPU", false}},
      {"column_sums", {"column sums f32 [8192, 4096] on the CPU", false}},
      {"matmul_f32", {"matmul f32 2048^3 on the CPU", false}},
      {"matmul_bf16", {"matmul bf16 2048^3 on the CPU", false}},
  };
  return all;
}

struct Times {
  double copy_ms = 0;
  double ms = 0;
};

template <class Work>
Times measure(bench::ParallelCopy& copy, const Work& work) {
  std::vector<double> copy_ms;
  std::vector<double> work_ms;
  for (int i = 0; i < kRounds + bench::kWarm; ++i) {
    const double copied = 1e-6 * bench::hostNs(copy);
    const double worked = 1e-6 * bench::hostNs(work);
    if (i < bench::kWarm) continue;
    copy_ms.push_back(copied);
    work_ms.push_back(worked);
  }
  return {bench::median(std::move(copy_ms)), bench::median(std::move(work_ms))};
}

void time(const std::string& file, const Workload& workload, host::Device& device, int threads) {
  bench::MainExample example("bench/cpu_workloads/" + file + ".fusion", device);
  bench::ParallelCopy copy(kCopyBytes, threads);
  const Times times = measure(copy, [&] { example.executable->run(example.arguments).wait(); });
  const std::string floor =
      workload.moves_bytes
          ? fmt::format(", \"floor_ms\": {:.3f}", times.copy_ms * example.bytes / copy.bytes())
          : "";
  fmt::print(
      "{{\"name\": \"{}\", \"device\": \"{}\", \"threads\": {}, \"cpu_ms\": {:.3f}{}, \"copy_ms\": "
      "{:.3f}, \"copies\": {:.2f}}}\n",
      workload.name, device.description(), threads, times.ms, floor, times.copy_ms,
      times.ms / times.copy_ms);
  std::fflush(stdout);
}

void run(const std::vector<std::string>& arguments) {
  const int threads =
      arguments.empty() ? usableCpus() : std::max(1, std::atoi(arguments[0].c_str()));
  std::vector<std::string> files(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end());
  if (files.empty()) {
    for (const auto& [file, workload] : workloads()) files.push_back(file);
  }
  host::CpuOptions options;
  options.threads = threads;
  const std::unique_ptr<host::Device> device = host::makeCpuDevice(options);
  for (const std::string& file : files) {
    const auto found = workloads().find(file);
    HEDDLE_USER_CHECK(found != workloads().end(), "there is no workload '{}'", file);
    time(file, found->second, *device, threads);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return heddle::bench::runGuarded([&] { run({argv + 1, argv + argc}); });
}
