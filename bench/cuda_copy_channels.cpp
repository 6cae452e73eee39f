// Measures how much a collective slows down a matrix product that runs at the same time. Copy
// engines (Communicate::carrier) or NCCL's kernels carry out the collective. Uses all GPUs of the
// machine, with one thread and one rank per GPU. Prints the GPU time of 16 matrix products, of 8
// collectives, and of both on separate streams, as one JSON object per case.
//
//   bench_cuda_copy_channels [--mib LIST] [ROWS ...]
//
// ROWS: rows of the first operand of a matrix product with [3584, 8192] in bf16, default 1024.
// --mib: MiB of the larger buffer of the collectives, default 16.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "bench/cuda_timing.h"
#include "comm/in_process/worlds.h"
#include "host/device/load_module.h"
#include "host/executable.h"
#include "host/job/worlds.h"
#include "host/tensor.h"
#include "host/text/program_text.h"
#include "ir/base/check.h"

namespace {

using namespace heddle;
using bench::check;

constexpr int kRuns = 20;
constexpr int kProducts = 16;
constexpr int kCollectives = 8;

struct Kind {
  const char* name;
  bool cuts_in, cuts_out;  // true: the input (output) holds only the part of one rank
  const char* more;        // attributes in the text of the instruction
};
constexpr Kind kKinds[] = {{"allreduce", false, false, " op=sum"},
                           {"allgather", true, false, ""},
                           {"reduce_scatter", false, true, " op=sum"}};

std::string carrierText(const std::string& by, int i) {
  if (by == "copies") return fmt::format(" ctas=16 lane={} stream={}", 1 + i % 2, 1 + i % 2);
  return by == "nccl" ? " stream=1" : " ctas=16 stream=1";
}

struct Sizes {
  int64_t rows;
  int64_t elements;  // of the larger buffer, in bf16
};

std::string textOf(const Kind& kind, const std::string& by, int ranks, const Sizes& sizes,
                   int products, int collectives) {
  const auto part = [&](bool cut) { return cut ? sizes.elements / ranks : sizes.elements; };
  const int64_t rows = sizes.rows;
  std::string text = fmt::format(
      "heddle 1\nmesh @m = [x=ranks]\n"
      "program p(%a: bf16[{}, 3584], %b: bf16[3584, 8192], %x: bf16[{}]) -> (%c, %y) "
      "{{\n  slot %c: bf16[{}, 8192]\n  slot %y: bf16[{}]\n",
      rows, part(kind.cuts_in), rows, part(kind.cuts_out));
  for (int i = 1; i < collectives; ++i) {
    text += fmt::format("  slot %y{}: bf16[{}]\n", i, part(kind.cuts_out));
  }
  text += "  %c = allocate\n  %y = allocate\n";
  for (int i = 1; i < collectives; ++i) text += fmt::format("  %y{} = allocate\n", i);
  text += "  !begin = record_event\n  wait_event !begin stream=1\n  wait_event !begin stream=2\n";
  for (int i = 0; i < std::max(products, collectives); ++i) {
    if (i < collectives) {
      text += fmt::format("  $t{} = communicate {} %x -> %y{} team=@m[x]{}{}\n", i, kind.name,
                          i == 0 ? "" : std::to_string(i), kind.more, carrierText(by, i));
    }
    if (i < products) text += "  call_library matmul(%a, %b) -> (%c)\n";
  }
  for (int i = 0; i < collectives; ++i) text += fmt::format("  wait $t{}\n", i);
  for (int i = 1; i < collectives; ++i) text += fmt::format("  free %y{}\n", i);
  return text + "}\n";
}

// Returns a tensor of random numbers, because matrix products of zeros are faster.
host::Tensor randomOn(host::Device& device, const TensorDesc& desc) {
  const HostTensor values = randomTensor(desc.dtype, desc.sizes, 1, "bench");
  return host::toDevice(device, device.allocator(), values, desc);
}

double runProgram(const std::string& text, host::Device& device, comm::World& world) {
  const host::Program program = host::parseProgram(text);
  const SizeBindings sizes(program.size_defaults.begin(), program.size_defaults.end());
  host::Executable executable(program, {&device, &world, nullptr});
  std::vector<host::Argument> arguments;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    arguments.emplace_back(
        randomOn(device, host::inputDesc(program, i, sizes, world.rank(), world.size())));
  }
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  host::RunOptions run;
  run.stream = stream;
  bench::GpuTimer timer(stream);
  return bench::medianOf(kRuns, bench::kWarm, [&] {
    world.barrier();
    return timer.ms([&] { executable.run(arguments, run); });
  });
}

void runRank(const std::vector<Sizes>& all_sizes, std::unique_ptr<comm::World> world) {
  const int ordinal = world->rank();
  const std::unique_ptr<host::Device> device = host::makeCudaDevice(ordinal);
  check(cudaSetDevice(ordinal), "cudaSetDevice");
  world = host::makeNcclWorld(std::move(world), ordinal);
  for (const Sizes& sizes : all_sizes) {
    for (const Kind& kind : kKinds) {
      for (const std::string by : {"copies", "nccl", "nccl, 16 blocks"}) {
        const auto ms = [&](int products, int collectives) {
          return runProgram(textOf(kind, by, world->size(), sizes, products, collectives), *device,
                            *world);
        };
        // Every program here has at least one collective. The difference excludes its time.
        const double products = ms(kProducts, 1) - ms(0, 1);
        const double collectives = ms(0, kCollectives);
        const double both = ms(kProducts, kCollectives);
        if (world->rank() != 0) continue;
        fmt::print(
            "{{\"name\": \"{} beside products\", \"bytes\": {}, \"rows\": {}, \"by\": \"{}\", "
            "\"gpus\": {}, "
            "\"products_ms\": {:.4f}, \"collectives_ms\": {:.4f}, \"together_ms\": {:.4f}}}\n",
            kind.name, sizes.elements * 2, sizes.rows, by, world->size(), products, collectives,
            both);
        std::fflush(stdout);
      }
    }
  }
  world->barrier();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Matrix products beside collectives on several GPUs.");
  std::vector<int64_t> rows = {1024}, mib = {16};
  app.add_option("rows", rows, "rows of a matrix product with [3584, 8192]");
  app.add_option("--mib", mib, "MiB of the larger buffer")->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  std::vector<Sizes> sizes;
  for (int64_t each : rows) {
    for (int64_t size : mib) sizes.push_back({each, size << 19});
  }
  std::string why;
  const int gpus = host::cudaDeviceCount(why);
  if (gpus < 2) {
    std::fprintf(stderr, "bench_cuda_copy_channels: needs at least two GPUs, found %d %s\n", gpus,
                 why.c_str());
    return 77;
  }
  std::vector<std::thread> threads;
  for (auto& world : comm::makeInProcessWorlds(gpus)) {
    threads.emplace_back([&, own = std::move(world)]() mutable {
      try {
        runRank(sizes, std::move(own));
      } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_cuda_copy_channels: %s\n", error.what());
        std::_Exit(1);  // ends the other ranks too, which wait for this rank
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}
