#include "codegen/bind/time_model.h"

#include <algorithm>
#include <cmath>

namespace heddle::codegen {
namespace {

// Returns about the largest of three times that overlap. If two of them are equal and the third is
// 0, the result is 19 % larger than either, because no overlap is perfect.
double overlapped(double a, double b, double c) {
  constexpr double kPower = 4;
  return std::pow(std::pow(a, kPower) + std::pow(b, kPower) + std::pow(c, kPower), 1 / kPower);
}

// Returns the time in which the bytes of a launch move. `at_once` is the number of blocks or tiles
// that run at the same time and share Machine::cache_bytes.
double moving(const LaunchWork& work, const Machine& machine, double at_once) {
  const bool is_cached = work.live_bytes * at_once <= machine.cache_bytes;
  const double again_rate = is_cached ? machine.cached_per_second : machine.bytes_per_second;
  return work.bytes / machine.bytes_per_second + work.again_bytes / again_rate;
}

// Returns how many blocks a multiprocessor runs at the same time. A thread has registers for its
// operands, and kOtherRegisters for everything else.
double blocksAtOnce(const LaunchWork& work, const Machine& machine) {
  constexpr double kOtherRegisters = 32;
  constexpr double kMostRegisters = 255;
  constexpr double kSystemShared = 1 << 10;  // shared memory that CUDA reserves per block, in bytes
  const double registers =
      std::min(kOtherRegisters + static_cast<double>(work.thread_bytes) / 4, kMostRegisters);
  const double fit =
      std::min({machine.threads / work.threads, machine.blocks,
                machine.registers / (registers * work.threads),
                machine.shared_bytes / (static_cast<double>(work.shared_bytes) + kSystemShared)});
  return std::max(std::floor(fit), 1.0);
}

double cudaSeconds(const LaunchWork& work, const Machine& machine) {
  const auto blocks = static_cast<double>(work.blocks);
  const double at_once = std::min(blocks, machine.processors * blocksAtOnce(work, machine));
  const double wave = static_cast<double>(work.steps) * machine.load_seconds +
                      static_cast<double>(work.exchanges) * machine.exchange_seconds;
  const double waiting = std::ceil(blocks / at_once) * wave;
  // A block runs on one multiprocessor. With fewer blocks than multiprocessors, some are idle.
  const double busy = std::min(blocks / machine.processors, 1.0);
  return overlapped(moving(work, machine, at_once), waiting,
                    work.operations / (machine.operations_per_second * busy));
}

// If there are fewer tiles left than threads, some threads wait. The other threads then move their
// bytes faster than before, but compute at the same speed.
double cpuSeconds(const LaunchWork& work, const Machine& machine) {
  const auto tiles = static_cast<double>(work.blocks);
  const double threads = machine.processors;
  const double slowest = std::ceil(tiles / threads) * threads / tiles;
  const double share = machine.bytes_per_second / threads / machine.thread_bytes_per_second;
  const double computing = std::max(work.operations / machine.operations_per_second,
                                    work.serial_elements * machine.serial_seconds / threads);
  const double starting =
      (work.loops * machine.loop_seconds + tiles * machine.tile_seconds) / threads;
  return overlapped(moving(work, machine, 1) * std::max(1.0, slowest * share),
                    slowest * (computing + starting), 0);
}

}  // namespace

double secondsOf(const LaunchWork& work, const Machine& machine) {
  return machine.target == Target::Cuda ? cudaSeconds(work, machine) : cpuSeconds(work, machine);
}

std::vector<double> predictedSeconds(const std::vector<Candidate>& all,
                                     const std::vector<KernelNumbers>& numbers,
                                     const Machine& machine) {
  std::vector<double> seconds;
  for (size_t i = 0; i < all.size(); ++i) {
    // The number of entries is not the number of launches, because some launches have several
    // entries.
    double sum = static_cast<double>(all[i].plan.stages.size()) * machine.launch_seconds;
    for (const EntryNumbers& entry : numbers.at(i).entries) {
      if (entry.cleared_bytes > 0) sum += machine.launch_seconds;
      sum += secondsOf(workOf(entry, machine.target), machine);
    }
    seconds.push_back(sum);
  }
  return seconds;
}

}  // namespace heddle::codegen
