#include "codegen/bind/machine.h"

#include <algorithm>
#include <charconv>

namespace heddle::codegen {
namespace {

constexpr double kTera = 1e12;
constexpr double kMicro = 1e-6;
constexpr double kNano = 1e-9;

// An H100 SXM.
Machine h100() {
  Machine m;
  m.target = Target::Cuda;
  // Measured: a copy of the bytes of layer_norm bf16 [16384, 4096] takes 92.7 us
  // (bench/results/kernels-nvidia-h100_2026-11-26.json, floor_ms).
  m.bytes_per_second = 2.9 * kTera;
  // Measured: the host issues a launch in 2.6 us
  // (bench/results/nvidia-h100-80gb-hbm3_2026-11-26.json, raw_ns_per_launch). Empty kernels in a
  // row take the same time.
  m.launch_seconds = 2.6 * kMicro;
  // Data sheet: 132 multiprocessors, an L2 cache of 50 MB. CUDA C++ Programming Guide, table of
  // compute capability 9.0: threads, blocks, registers and shared memory of a multiprocessor.
  m.processors = 132;
  m.cache_bytes = 50e6;
  m.threads = 2048;
  m.blocks = 32;
  m.registers = 65536;
  m.shared_bytes = 228 << 10;
  // Published measurements of the L2 cache give 5.5 to 7 TB/s for reads.
  m.cached_per_second = 5.5 * kTera;
  // Data sheet: 128 lanes per multiprocessor, 1.755 GHz. A function call counts as 16 operations
  // (opsOf()), but most calls compile to about 5 instructions, so the rate is multiplied by 3.
  m.operations_per_second = 3 * 132 * 128 * 1.755e9;
  // Estimate: twice the latency of an idle memory. Published measurements of this latency give
  // about 600 cycles.
  m.load_seconds = 0.7 * kMicro;
  // Estimate: two barriers and two accesses to shared memory, about 30 cycles each, and shuffles.
  m.exchange_seconds = 0.1 * kMicro;
  return m;
}

// An H200 has the multiprocessors of an H100 and a faster memory.
Machine h200() {
  Machine m = h100();
  // Measured: a copy of the bytes of layer_norm bf16 [16384, 4096] took 67.7 us. A later
  // measurement gave 68.2 us (bench/results/kernels-nvidia-h200_2026-11-26.json, floor_ms).
  m.bytes_per_second = 3.97 * kTera;
  // Measured: bench/results/nvidia-h200_2026-11-26.json, raw_ns_per_launch.
  m.launch_seconds = 2.8 * kMicro;
  return m;
}

Machine cpuOf(int threads) {
  Machine m;
  m.target = Target::Cpp;
  m.processors = threads;
  // Measured with 8 threads: a copy of f32 [8192, 4096] usually takes about 4.8 ms (copy_ms in
  // bench/results/cpu-with-8-threads_2026-11-26.json, 3.0 to 4.9 ms). We assume that the rate is
  // proportional to the number of threads.
  m.bytes_per_second = 7e9 * threads;
  // Estimate: a single thread does not share the memory with others.
  m.thread_bytes_per_second = 12e9;
  // Measured with 2 threads on a busy machine: softmax f32 has about 37 operations per element
  // (opsOf()), and takes 0.4 ns per element if its operands are in a cache.
  m.operations_per_second = 50e9 * threads;
  // Estimates: the size of the private caches of a core, and half of the rate at which a core can
  // load.
  m.cache_bytes = 1 << 20;
  m.cached_per_second = 40e9 * threads;
  // Estimates: the threads of a pool wake up; a tile costs an atomic addition and a call; a loop
  // costs the computation of its first index and a wrongly predicted branch at its end.
  m.launch_seconds = 5 * kMicro;
  m.tile_seconds = 100 * kNano;
  m.loop_seconds = 10 * kNano;
  // Vendors' tables of instructions: an addition of vectors takes 4 cycles, at about 3 GHz.
  m.serial_seconds = 1.3 * kNano;
  return m;
}

// Returns the number of threads in a text such as "cpu (8 threads, ...", or 1 if it has none.
int threadsIn(std::string_view description) {
  const size_t open = description.find('(');
  if (open == std::string_view::npos) return 1;
  int threads = 1;
  const char* const end = description.data() + description.size();
  const auto [stop, error] = std::from_chars(description.data() + open + 1, end, threads);
  const std::string_view rest(stop, static_cast<size_t>(end - stop));
  return error == std::errc() && rest.starts_with(" threads") ? std::max(threads, 1) : 1;
}

}  // namespace

Machine machineOf(Target target, std::string_view description) {
  if (target == Target::Cpp) return cpuOf(threadsIn(description));
  return description.find("H200") == std::string_view::npos ? h100() : h200();
}

}  // namespace heddle::codegen
