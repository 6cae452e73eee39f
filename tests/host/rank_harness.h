#pragma once

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "host/device/cpu/cpu_device.h"
#include "host/device/null/null_device.h"
#include "host/executable.h"
#include "host/job/worlds.h"
#include "host/tensor.h"
#include "ir/base/error.h"
#include "ir/reference/reference.h"

// Runs a host program on several in-process ranks and assembles the unsharded outputs, for tests.
namespace heddle::host::testing {

struct HarnessOptions {
  int ranks = 1;
  DeviceKind kind = DeviceKind::Cpu;
  CpuOptions cpu;
  SizeBindings sizes;
  std::map<std::string, Scalar> scalars;      // by input name; other scalars have their defaults
  std::map<std::string, HostTensor> tensors;  // unsharded, by input name; others are random
  uint64_t seed = 1;
  bool verify = true;
  int runs = 1;                      // the outputs of the last run are returned
  std::vector<size_t> donated = {};  // RunOptions::donated
  std::function<void(const Executable::Stats&)> take_stats = {};  // called on rank 0 after the runs
};

inline HostTensor inputOf(const Program& program, size_t position, const SizeBindings& sizes,
                          int ranks, uint64_t seed) {
  const Slot& slot = program.slots[program.inputs[position]];
  const TensorDesc desc = inputDesc(program, position, sizes, 0, ranks);
  return randomTensor(desc.dtype, desc.global, seed, slot.name);
}

// Creates a device for tests with several ranks. All devices share one folder of compiled kernels,
// so each kernel is compiled once.
inline std::unique_ptr<Device> makeTestDevice(const HarnessOptions& options) {
  switch (options.kind) {
    case DeviceKind::Null:
      return makeNullDevice();
    case DeviceKind::Cuda:
      return makeCudaDevice(0);
    case DeviceKind::Cpu:
      break;
  }
  CpuOptions cpu = options.cpu;
  if (cpu.threads == 0) cpu.threads = 1;
  return makeCpuDevice(cpu);
}

inline std::vector<Argument> argumentsOf(const Program& program, Device& device, int rank,
                                         const HarnessOptions& options) {
  std::vector<Argument> arguments;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const Slot& slot = program.slots[program.inputs[i]];
    if (slot.is_scalar) {
      auto given = options.scalars.find(slot.name);
      arguments.emplace_back(given != options.scalars.end() ? given->second
                                                            : slot.default_value.value());
      continue;
    }
    const TensorDesc desc = inputDesc(program, i, options.sizes, rank, options.ranks);
    const auto given = options.tensors.find(slot.name);
    const HostTensor whole = given != options.tensors.end()
                                 ? given->second
                                 : inputOf(program, i, options.sizes, options.ranks, options.seed);
    arguments.emplace_back(toDevice(device, device.allocator(), localBlock(whole, desc), desc));
  }
  return arguments;
}

// Writes the block of a rank into the unsharded tensor.
inline void placeBlock(HostTensor& whole, const HostTensor& local, const TensorDesc& desc) {
  for (int64_t i = 0; i < local.numel(); ++i) {
    int64_t rest = i;
    int64_t target = 0;
    int64_t stride = 1;
    for (size_t axis = desc.rank(); axis-- > 0;) {
      target += (desc.offset[axis] + rest % desc.sizes[axis]) * stride;
      rest /= desc.sizes[axis];
      stride *= desc.global[axis];
    }
    whole.set(target, local.at(i));
  }
}

// The results of one rank, one per output.
struct RankOutputs {
  std::vector<HostTensor> locals;  // a scalar output is a tensor without axes
  std::vector<TensorDesc> descs;   // a scalar output has an empty desc
};

// Runs one rank of the job: prepares the program and runs it `options.runs` times.
inline RankOutputs runRank(const Program& program, comm::World& world, Device& device,
                           const HarnessOptions& options) {
  ExecutableOptions executable_options;
  executable_options.verify = options.verify;
  Executable executable(program, {&device, &world, nullptr}, executable_options);
  std::vector<Argument> arguments = argumentsOf(program, device, world.rank(), options);
  std::optional<Outputs> results;
  RunOptions run_options;
  run_options.donated = options.donated;
  for (int run = 0; run < options.runs; ++run) {
    results.emplace(executable.run(arguments, run_options));
    results->wait();
    const bool again = run + 1 < options.runs && !options.donated.empty();
    if (again) arguments = argumentsOf(program, device, world.rank(), options);
  }
  if (options.take_stats && world.rank() == 0) options.take_stats(executable.stats());
  RankOutputs outputs;
  for (size_t i = 0; i < results->size(); ++i) {
    if (const auto* tensor = std::get_if<Tensor>(&(*results)[i])) {
      outputs.locals.push_back(toHost(device, *tensor));
      outputs.descs.push_back(tensor->desc);
      continue;
    }
    const Slot& slot = program.slots[program.outputs[i]];
    outputs.locals.emplace_back(slot.tensor.dtype, std::vector<int64_t>{});
    outputs.locals.back().set(0, std::get<Scalar>((*results)[i]));
    outputs.descs.push_back(denseDesc(slot.tensor.dtype, {}));
  }
  return outputs;
}

// Runs body(rank, world) on one thread per world. After all have ended, throws the first error.
template <class Body>
void onEachWorld(std::vector<std::unique_ptr<comm::World>>& worlds, const Body& body) {
  std::mutex mutex;
  std::exception_ptr error;
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < worlds.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(static_cast<int>(rank), worlds[rank]);
        worlds[rank]->barrier();  // no rank leaves while another one runs
      } catch (const std::exception& failed) {
        {
          std::lock_guard lock(mutex);
          if (!error) error = std::current_exception();
        }
        worlds[rank]->abort(failed.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
}

// Assembles the unsharded tensors from the blocks of all ranks.
inline std::vector<HostTensor> assemble(const std::vector<RankOutputs>& ranks) {
  std::vector<HostTensor> outputs;
  for (size_t i = 0; i < ranks.front().descs.size(); ++i) {
    outputs.emplace_back(ranks.front().descs[i].dtype, ranks.front().descs[i].global);
    for (const RankOutputs& rank : ranks) placeBlock(outputs[i], rank.locals[i], rank.descs[i]);
  }
  return outputs;
}

// Returns the unsharded outputs. Throws the first error of any rank.
inline std::vector<HostTensor> runProgram(const Program& program, const HarnessOptions& options) {
  auto worlds = makeInProcessWorldsFor(options.kind, options.ranks);
  std::vector<RankOutputs> ranks(worlds.size());
  onEachWorld(worlds, [&](int rank, std::unique_ptr<comm::World>& world) {
    const std::unique_ptr<Device> device = makeTestDevice(options);
    ranks[static_cast<size_t>(rank)] = runRank(program, *world, *device, options);
    world->barrier();  // the device must outlive the work of the other ranks
  });
  return assemble(ranks);
}

// Evaluates the fusion by the reference. The inputs are those that runProgram() creates from the
// same sizes and seed.
inline std::vector<HostTensor> expectedOf(const Fusion& fusion, const HarnessOptions& options) {
  ReferenceInputs inputs;
  for (ValueId id : fusion.inputs()) {
    const Value& value = fusion.value(id);
    if (value.is_scalar) {
      auto given = options.scalars.find(value.name);
      inputs.scalars[id] =
          given != options.scalars.end() ? given->second : value.default_value.value();
      continue;
    }
    if (const auto given = options.tensors.find(value.name); given != options.tensors.end()) {
      inputs.tensors[id] = given->second;
      continue;
    }
    std::vector<int64_t> sizes;
    for (const Size& size : value.tensor.sizes()) {
      sizes.push_back(size.evaluate(lookupIn(options.sizes)));
    }
    inputs.tensors[id] = randomTensor(value.tensor.dtype, sizes, options.seed, value.name);
  }
  return evaluateReference(fusion, inputs, options.sizes);
}

// Returns the largest |a - b| divided by the largest |b|. Returns infinity if sizes differ, or if
// NaNs or infinities are at different positions.
inline double relativeError(const HostTensor& a, const HostTensor& b) {
  const double bad = std::numeric_limits<double>::infinity();
  if (a.sizes != b.sizes || a.dtype != b.dtype) return bad;
  double scale = 0;
  double error = 0;
  for (int64_t i = 0; i < b.numel(); ++i) {
    const double x = toDouble(a.at(i));
    const double y = toDouble(b.at(i));
    if (std::isnan(x) != std::isnan(y)) return bad;
    if (std::isnan(x)) continue;
    if (std::isinf(x) || std::isinf(y)) {
      if (x != y) return bad;
      continue;
    }
    scale = std::max(scale, std::fabs(y));
    error = std::max(error, std::fabs(x - y));
  }
  return error == 0 ? 0 : error / std::max(scale, 1e-30);
}

inline SizeBindings defaultSizes(const std::vector<std::pair<std::string, int64_t>>& defaults) {
  return SizeBindings(defaults.begin(), defaults.end());
}

}  // namespace heddle::host::testing
