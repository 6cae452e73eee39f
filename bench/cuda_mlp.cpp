// Times the tensor-parallel MLP (tp_mlp) and the sequence-parallel MLP (sp_mlp) of a transformer on
// all GPUs of the machine. There is one NCCL rank per GPU. Each rank is a thread, or a process
// under mpirun. Prints one JSON object per case and setting of --overlap: the GPU time and the host
// time of a run, each of the slowest rank. bench/peers/torch_mlp.py times the same MLP in PyTorch.
//
//   [mpirun -n N] bench_cuda_mlp [--overlap LIST] [--gpus LIST] [--features N] [--batch N]
//                                [--block FILE] [TOKENS ...]
//
// TOKENS: default 4096 16384. All tensors are bf16. The hidden size is 8192.
// --features: default 28672.
// --gpus: default all. Runs with each of these numbers of GPUs, one after another. Has no effect
// under mpirun.
// --batch: tensors are [batch, TOKENS / batch, ...], and sp_mlp shards axis 1. Default: tensors
// have no batch axis, and sp_mlp shards axis 0.
// --block: times the fusion in FILE (a transformer block of 2048 tokens) instead of the MLP.
// --overlap: a list such as off,auto,4,4:16 (default off,2,4,8,auto). `off` keeps communication on
// the main stream. A number such as 4 is the number of chunks that overlap with computation. `auto`
// lets the cost model choose the chunks. In 4:16, NCCL moves the 4 chunks with kernels of 16 thread
// blocks; without a colon, copy engines move the chunks.
//
// The field `gelu` of a result says what computes gelu. "epilogue": the first matrix product. "op":
// a separate op of the fusion, which becomes a kernel.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "bench/cuda_timing.h"
#include "comm/in_process/worlds.h"
#include "host/compile.h"
#include "host/device/load_module.h"
#include "host/executable.h"
#include "host/job/worlds.h"
#include "host/tensor.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"

namespace {

using namespace heddle;
using bench::check;

constexpr int kRuns = 20;
constexpr int kWarm = 5;

constexpr const char* kFusion = R"(heddle 1
mesh @m = [x=ranks]
fusion mlp(%x: bf16[{4}t, h] shard(@m{0}), %w1: bf16[h, f] shard(@m, 1: x),
           %w2: bf16[f, h] shard(@m, 0: x)) with t = {1}, h = 8192, f = {3} {{
{2}
  %y = matmul(%g, %w2)
  return %y shard(@m{0})
}}
)";

// Returns device memory filled with random numbers, including the padding. With zeros the GPU would
// run at a higher clock rate.
host::Tensor randomOn(host::Device& device, const TensorDesc& desc) {
  const int64_t bytes = desc.allocBytes();
  const int64_t part = std::clamp<int64_t>(bytes / sizeOf(desc.dtype), 1, int64_t{1} << 20);
  const HostTensor values = randomTensor(desc.dtype, {part}, 1, "bench");
  host::Tensor tensor =
      host::toDevice(device, device.allocator(), values, denseDesc(desc.dtype, {part}));
  const int64_t step = part * sizeOf(desc.dtype);
  void* whole = nullptr;
  check(cudaMalloc(&whole, static_cast<size_t>(std::max<int64_t>(bytes, 1))), "cudaMalloc");
  for (int64_t at = 0; at < bytes; at += step) {
    check(cudaMemcpy(static_cast<std::byte*>(whole) + at, tensor.data,
                     static_cast<size_t>(std::min(step, bytes - at)), cudaMemcpyDeviceToDevice),
          "cudaMemcpy");
  }
  return {whole, desc, std::shared_ptr<void>(whole, [](void* p) { cudaFree(p); })};
}

double medianMs(cudaStream_t stream, comm::World& world, const std::function<void()>& work) {
  bench::GpuTimer timer(stream);
  int warm = kWarm;
  return bench::medianOf(kRuns, kWarm, [&] {
    if (warm-- == 0) world.barrier();
    return timer.ms(work);
  });
}

struct Case {
  std::string name;
  std::string text;
  std::vector<std::pair<std::string, int64_t>>
      sizes;  // sizes that replace the defaults of the text
  std::string gelu;
};

host::PassOptions overlapOf(const std::string& text) {
  host::PassOptions passes;
  passes.overlap = text != "off";
  if (text != "off" && text != "auto") passes.chunks = std::stoll(text);
  return passes;
}

int64_t tokensOf(const Case& bench) {
  const auto sizes = bench.sizes.empty() ? parseFusion(bench.text).size_defaults : bench.sizes;
  return sizes.front().second;
}

void setCtas(std::vector<host::Instruction>& body, const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return;
  const auto ctas = static_cast<int32_t>(std::stoi(text.substr(colon + 1)));
  for (host::Instruction& x : body) {
    // Only a Communicate has a carrier.
    if (auto* post = std::get_if<host::Communicate>(&x.op);
        post != nullptr && post->carrier.copy_channel != 0) {
      post->carrier = {ctas, 0};
    }
    // These programs have no loops, so only an If has bodies.
    if (auto* branch = std::get_if<host::If>(&x.op)) {
      setCtas(branch->then_body, text);
      setCtas(branch->else_body, text);
    }
  }
}

double worst(comm::World& world, double ms) {
  double most = 0;
  for (const std::string& each : world.exchange(std::to_string(ms))) {
    most = std::max(most, std::stod(each));
  }
  return most;
}

struct Times {
  double gpu_ms;
  double host_ms;  // host time to issue a run
};

// Returns the GPU time of the rank with the longest GPU time, and the host time of the rank with
// the longest host time.
Times runCase(const Case& bench, const std::string& overlap, host::Device& device,
              comm::World& world) {
  host::CompileOptions options;
  options.passes = overlapOf(overlap);
  Fusion fusion = parseFusion(bench.text);
  if (!bench.sizes.empty()) fusion.size_defaults = bench.sizes;
  host::Program program = host::compile(fusion, world.size(), options);
  setCtas(program.body, overlap);
  const SizeBindings sizes(program.size_defaults.begin(), program.size_defaults.end());
  host::Executable executable(program, {&device, &world, nullptr});
  std::vector<host::Argument> arguments;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    arguments.emplace_back(
        randomOn(device, host::inputDesc(program, i, sizes, world.rank(), world.size())));
  }
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  host::RunOptions run;
  run.stream = stream;
  std::vector<double> issues;
  const double ms = medianMs(stream, world, [&] {
    issues.push_back(bench::hostNs([&] { executable.run(arguments, run); }) / 1e6);
  });
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  return {worst(world, ms), worst(world, bench::median(std::move(issues)))};
}

void runRank(const std::vector<Case>& cases, const std::vector<std::string>& overlaps,
             std::unique_ptr<comm::World> world) {
  const std::unique_ptr<host::Device> device = host::makeCudaDevice(world->rank());
  check(cudaSetDevice(world->rank()), "cudaSetDevice");
  const int ordinal = world->rank();
  world = host::makeNcclWorld(std::move(world), ordinal);
  for (const Case& bench : cases) {
    for (const std::string& overlap : overlaps) {
      const Times times = runCase(bench, overlap, *device, *world);
      if (world->rank() != 0) continue;
      fmt::print(
          "{{\"name\": \"{}\", \"tokens\": {}, \"gelu\": \"{}\", \"overlap\": \"{}\", \"gpus\": "
          "{}, "
          "\"gpu_ms\": {:.4f}, \"host_ms\": {:.4f}}}\n",
          bench.name, tokensOf(bench), bench.gelu, overlap, world->size(), times.gpu_ms,
          times.host_ms);
      std::fflush(stdout);
    }
  }
  world->barrier();
}

// Returns the cases. If `batch` is 0, tensors have two axes.
std::vector<Case> casesOf(const std::vector<std::string>& all_tokens, int64_t features,
                          int64_t batch) {
  const std::string spread = batch > 0 ? ", 1: x" : ", 0: x";
  const std::string outer = batch > 0 ? fmt::format("{}, ", batch) : "";
  const std::vector<std::pair<std::string, std::string>> forms = {
      {"epilogue", "  %g = matmul(%x, %w1, activation=gelu_tanh)"},
      {"op", "  %a = matmul(%x, %w1)\n  %g = gelu(%a, approximate=tanh)"}};
  std::vector<Case> cases;
  for (const std::string& tokens : all_tokens) {
    for (const auto& [name, rows] : {std::pair{std::string("tp_mlp"), std::string()},
                                     std::pair{std::string("sp_mlp"), spread}}) {
      for (const auto& [form, lines] : forms) {
        const int64_t rows_each = std::stoll(tokens) / std::max<int64_t>(batch, 1);
        cases.push_back(
            {batch > 0 ? fmt::format("{}, batch {}", name, batch) : name,
             fmt::format(fmt::runtime(kFusion), rows, rows_each, lines, features, outer),
             {},
             form});
      }
    }
  }
  return cases;
}

// Reads the fusion of a transformer block from a file. Converts it from f32 to bf16, and replaces
// its default sizes.
Case blockOf(const std::string& path) {
  std::ifstream in(path);
  HEDDLE_USER_CHECK(in.good(), "cannot read {}", path);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  for (size_t at = 0; (at = text.find("f32[", at)) != std::string::npos; ++at) {
    text.replace(at, 3, "bf16");
  }
  return {"transformer block, forward and backward",
          text,
          {{"tokens", 2048}, {"hidden", 8192}, {"heads", 64}, {"width", 128}, {"features", 28672}},
          "op"};
}

void runOn(int gpus, const std::vector<Case>& cases, const std::vector<std::string>& overlaps) {
  std::vector<std::thread> threads;
  for (auto& world : comm::makeInProcessWorlds(gpus)) {
    threads.emplace_back([&, own = std::move(world)]() mutable {
      try {
        runRank(cases, overlaps, std::move(own));
      } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_cuda_mlp: %s\n", error.what());
        std::_Exit(1);  // ends the other ranks too, which wait for this rank
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("The MLP of a transformer on several GPUs.");
  std::vector<std::string> overlaps = {"off", "2", "4", "8", "auto"};
  std::vector<std::string> tokens = {"4096", "16384"};
  std::vector<int> sizes;
  std::string block;
  int64_t features = 28672;
  int64_t batch = 0;
  app.add_option("--features", features, "features, of all GPUs together");
  app.add_option("--batch", batch, "size of a batch axis before the tokens");
  app.add_option("tokens", tokens, "numbers of tokens");
  app.add_option("--overlap", overlaps, "off, auto, N, N:CTAS")->delimiter(',');
  app.add_option("--gpus", sizes, "numbers of GPUs; default: all")->delimiter(',');
  app.add_option("--block", block, "a file with the fusion of a block, instead of the MLP");
  CLI11_PARSE(app, argc, argv);
  std::string why;
  const int gpus = host::cudaDeviceCount(why);
  if (gpus < 2) {
    std::fprintf(stderr, "bench_cuda_mlp: needs at least two GPUs, found %d %s\n", gpus,
                 why.c_str());
    return 77;
  }
  if (sizes.empty()) sizes = {gpus};
  const std::vector<Case> cases =
      block.empty() ? casesOf(tokens, features, batch) : std::vector{blockOf(block)};
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) {
    return bench::runGuarded([&] { runRank(cases, overlaps, host::mpiModule().makeWorld()); });
  }
  for (int size : sizes) runOn(size, cases, overlaps);
}
