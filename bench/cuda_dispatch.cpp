// Times the host work of a kernel launch in a repeated run on GPU 0. Compares it with a plain loop
// of cudaLaunchKernelExC with the same kernel, grid and arguments. Also times the host work of
// complete runs of programs with one launch and with twelve launches. Prints one JSON object per
// line.
//
//   bench_cuda_dispatch [RUNS]
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "bench/cuda_timing.h"
#include "codegen/emit/plan_kernel.h"
#include "host/executable.h"
#include "host/prepared_run.h"
#include "host/tensor.h"
#include "host/text/program_text.h"
#include "ir/base/check.h"

namespace {

using namespace heddle;
using bench::check;

constexpr int kLaunches = 200;  // few enough that the driver queues them without blocking the host

host::Program programOfLaunches(int launches) {
  return host::parseProgram(fmt::format(R"(heddle 1
kernel @add {{
  fusion add(%x: f32[n], %y: f32[n]) with n = 16 {{
    %z = add(%x, %y)
    return %z
  }}
}}
program bench(%x: f32[n], %y: f32[n]) -> (%z) with n = 16 {{
  slot %z: f32[n]
  %z = allocate stream=0
  for i in 0 .. {} {{
    launch @add(%x, %y) -> (%z) stream=0
  }}
}}
)",
                                        launches),
                            "bench");
}

// The kernel that the program launches, loaded without heddle's device.
class RawKernel {
 public:
  RawKernel(const codegen::KernelPlan& plan, const codegen::KernelCompiler& compiler,
            const std::vector<void*>& operands)
      : stage_(plan.stages.at(0)), args_(stage_.args), cubin_(compiler.compile(plan.source)) {
    for (const auto& patch : stage_.pointers) {
      std::memcpy(args_.data() + patch.offset, &operands.at(static_cast<size_t>(patch.operand)),
                  sizeof(void*));
    }
    check(cudaLibraryLoadData(&library_, cubin_.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
          "cudaLibraryLoadData");
    check(cudaLibraryGetKernel(&kernel_, library_, stage_.entry.c_str()), "cudaLibraryGetKernel");
  }
  ~RawKernel() { cudaLibraryUnload(library_); }
  RawKernel(const RawKernel&) = delete;
  RawKernel& operator=(const RawKernel&) = delete;

  void launch(cudaStream_t stream) {
    cudaLaunchConfig_t config{};
    config.gridDim =
        dim3(static_cast<unsigned>(stage_.grid), static_cast<unsigned>(stage_.grid_y), 1);
    config.blockDim = dim3(static_cast<unsigned>(stage_.block), 1, 1);
    config.dynamicSmemBytes = static_cast<size_t>(stage_.shared_bytes);
    config.stream = stream;
    void* parameters[] = {args_.data()};
    check(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel_), parameters),
          "cudaLaunchKernelExC");
  }

 private:
  codegen::LaunchStage stage_;
  std::vector<std::byte> args_;
  std::vector<std::byte> cubin_;
  cudaLibrary_t library_ = nullptr;
  cudaKernel_t kernel_ = nullptr;
};

// Times the host work of complete runs: with a new output, with a preallocated output, and as a
// prepared run (host/prepared_run.h) with a preallocated output.
void timeRuns(host::Device& device, const std::vector<host::Tensor>& tensors, cudaStream_t stream,
              int rounds) {
  constexpr int kRuns = 50;  // few enough that the driver queues them without blocking the host
  const std::vector<host::Argument> inputs{tensors[0], tensors[1]};
  host::RunOptions options;
  options.stream = stream;
  host::RunOptions preallocated = options;
  preallocated.preallocated = {tensors[2]};
  for (int kernels : {1, 12}) {
    host::Executable executable(programOfLaunches(kernels), {&device, nullptr, nullptr});
    host::PreparedRun prepared = executable.prepareRun(inputs, preallocated);
    const auto time = [&](const auto& run) {
      return bench::medianIssueNs(stream, rounds, kRuns, [&] {
        for (int i = 0; i < kRuns; ++i) run();
      });
    };
    fmt::print(
        "{{\"name\": \"cuda run of {} kernel(s)\", \"new_output_ns\": {:.0f}, "
        "\"preallocated_ns\": {:.0f}, \"prepared_ns\": {:.0f}}}\n",
        kernels, time([&] { executable.run(inputs, options); }),
        time([&] { executable.run(inputs, preallocated); }), time([&] { prepared.run(); }));
  }
}

void run(int runs) {
  const std::unique_ptr<host::Device> device = host::makeCudaDevice(0);
  const host::Program program = programOfLaunches(kLaunches);
  const TensorDesc desc = denseDesc(DType::F32, {16});
  const HostTensor zeros(DType::F32, {16});
  std::vector<host::Tensor> tensors;
  for (int i = 0; i < 3; ++i) {
    tensors.push_back(host::toDevice(*device, device->allocator(), zeros, desc));
  }
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");

  RawKernel raw(codegen::planKernel(program.kernels.front().segment, {desc, desc}, {desc},
                                    codegen::Target::Cuda),
                *device->compiler(), {tensors[0].data, tensors[1].data, tensors[2].data});
  const double raw_ns = bench::medianIssueNs(stream, runs, kLaunches, [&] {
    for (int i = 0; i < kLaunches; ++i) raw.launch(stream);
  });
  double heddle_ns = 0;
  {
    host::Executable executable(program, {device.get(), nullptr, nullptr});
    host::RunOptions options;
    options.stream = stream;
    const std::vector<host::Argument> inputs{tensors[0], tensors[1]};
    heddle_ns =
        bench::medianIssueNs(stream, runs, kLaunches, [&] { executable.run(inputs, options); });
  }
  fmt::print(
      "{{\"name\": \"cuda dispatch\", \"device\": \"{}\", \"heddle_ns_per_launch\": {:.0f}, "
      "\"raw_ns_per_launch\": {:.0f}, \"added_ns\": {:.0f}}}\n",
      device->description(), heddle_ns, raw_ns, heddle_ns - raw_ns);
  timeRuns(*device, tensors, stream, runs);
  check(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

}  // namespace

int main(int argc, char** argv) {
  return heddle::bench::runGuarded([&] { run(heddle::bench::roundsOf(argc, argv, 50)); });
}
