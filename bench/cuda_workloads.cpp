// Times the fusions in bench/workloads at their default sizes on GPU 0. Overwrites the L2 cache
// before each timed run. Prints one JSON object per line: the median GPU time, the bytes of inputs
// and outputs (each counted once), and the time of a copy that moves as many bytes (it reads one
// half and writes the other half). bench/peers/torch_workloads.py times the same computations in
// PyTorch.
//
//   bench_cuda_workloads [--skip PASS] [--choices FILE] [FILE ...]
//
// FILE: default all files of bench/workloads.
// --skip: leaves out the pass with this name. For example, `--skip inferOrders` measures without
// inferred memory orders.
// --choices: uses the candidates in a file that `heddle tune --export` has written.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "bench/cuda_timing.h"
#include "host/compile_stages.h"
#include "host/device/attention.h"
#include "host/executable.h"
#include "host/fusion_executor.h"
#include "host/tensor.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tools/tune/choices_file.h"

namespace {

using namespace heddle;
using bench::check;

// Each call overwrites memory that is larger than the L2 cache of the GPU.
class Flush {
 public:
  explicit Flush(cudaStream_t stream) : stream_(stream) {
    check(cudaMalloc(&memory_, kBytes), "cudaMalloc");
  }
  ~Flush() { cudaFree(memory_); }
  Flush(const Flush&) = delete;
  Flush& operator=(const Flush&) = delete;
  void operator()() const {
    check(cudaMemsetAsync(memory_, 0, kBytes, stream_), "cudaMemsetAsync");
  }

 private:
  static constexpr size_t kBytes = size_t{256} << 20;
  cudaStream_t stream_;
  void* memory_ = nullptr;
};

constexpr int kRounds = 20;
constexpr double kBusyNs = 1e8;

// Returns the median GPU time of `work` with a cold L2 cache, in milliseconds. Keeps the GPU busy
// before the first measurement, because an idle GPU lowers its clock.
template <class Work>
double coldMs(cudaStream_t stream, const Flush& flush, const Work& work) {
  for (double busy = 0; busy < kBusyNs;) {
    busy += bench::hostNs([&] {
      flush();
      work();
      check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    });
  }
  bench::GpuTimer timer(stream);
  return bench::medianOf(kRounds, bench::kWarm, [&] {
    flush();
    return timer.ms(work);
  });
}

// Returns the milliseconds of a copy that reads half of `bytes` and writes the other half.
double copyMs(cudaStream_t stream, const Flush& flush, size_t bytes) {
  void* memory = nullptr;
  const size_t half = bytes / 32 * 16;
  check(cudaMalloc(&memory, 2 * half), "cudaMalloc");
  const double ms = coldMs(stream, flush, [&] {
    check(cudaMemcpyAsync(memory, static_cast<char*>(memory) + half, half, cudaMemcpyDeviceToDevice,
                          stream),
          "cudaMemcpyAsync");
  });
  check(cudaFree(memory), "cudaFree");
  return ms;
}

// Returns the memory order of a dense tensor.
AxisOrder orderOf(const TensorDesc& desc) {
  AxisOrder order = rowMajor(desc.rank());
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return desc.strides[static_cast<size_t>(a)] > desc.strides[static_cast<size_t>(b)];
  });
  return order;
}

// Returns a tensor of random values on the device, in the memory order of `desc`. Integers are from
// 0 to `classes` - 1. All inputs share a few seeds, because each seed needs a compilation.
host::Argument randomInput(host::Device& device, const TensorDesc& desc, int64_t classes,
                           int64_t input) {
  constexpr int64_t kSeeds = 8;
  const int64_t seed = input % kSeeds;
  const std::string sizes = str(desc.sizes);
  const std::string text =
      isFloat(desc.dtype)
          ? fmt::format("normal({}, 0, sizes={}, dtype={})", seed, sizes, name(desc.dtype))
          : fmt::format("randint({}, 0, sizes={}, high={})", seed, sizes, classes);
  // The cast is for integers, because the result of randint is i64.
  host::FusionExecutor maker(
      parseFusion(fmt::format("{}\nfusion values() {{\n  %r = {}\n  %x = cast(%r, dtype={})\n  "
                              "return %x order={}\n}}\n",
                              kVersionLine, text, name(desc.dtype), str(orderOf(desc))),
                  "values"),
      {&device});
  const host::Outputs made = maker.run({});
  made.wait();
  return made[0];
}

// Returns the bytes of the outputs. Outputs in the same memory count once.
size_t outputBytes(const host::Outputs& outputs) {
  size_t bytes = 0;
  std::set<const void*> counted;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& tensor = std::get<host::Tensor>(outputs[i]);
    if (!counted.insert(tensor.data).second) continue;
    bytes += static_cast<size_t>(tensor.desc.allocBytes());
  }
  return bytes;
}

void time(const std::filesystem::path& path, host::Device& device, cudaStream_t stream,
          const Flush& flush, const host::CompileOptions& compile_options,
          const host::ExecutableOptions& executable_options) {
  std::ifstream file(path);
  HEDDLE_USER_CHECK(file.good(), "{}: cannot read the file", path.string());
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const Fusion fusion = parseFusion(text, path.string());
  const SizeBindings sizes(fusion.size_defaults.begin(), fusion.size_defaults.end());
  const host::Program program = host::compile(
      fusion, 1, compile_options, host::attentionOptions(host::DeviceKind::Cuda, sizes));
  const auto classes = sizes.find("classes");
  std::vector<host::Argument> inputs;
  size_t bytes = 0;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const TensorDesc desc = host::inputDesc(program, i, sizes, 0, 1);
    inputs.push_back(randomInput(device, desc, classes == sizes.end() ? 2 : classes->second,
                                 static_cast<int64_t>(i)));
    bytes += static_cast<size_t>(desc.allocBytes());
  }
  host::Executable executable(program, host::Context{&device, nullptr, nullptr},
                              executable_options);
  host::RunOptions options;
  options.stream = stream;
  bytes += outputBytes(executable.run(inputs, options));
  const double ms = coldMs(stream, flush, [&] { executable.run(inputs, options); });
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  const double copy_ms = copyMs(stream, flush, bytes);
  fmt::print(
      "{{\"name\": \"{}\", \"device\": \"{}\", \"gpu_ms\": {:.4f}, \"bytes\": {}, \"copy_ms\": "
      "{:.4f}, \"of_copy\": {:.3f}}}\n",
      path.stem().string(), device.description(), ms, bytes, copy_ms, copy_ms / ms);
  std::fflush(stdout);
}

void run(const std::vector<std::string>& arguments) {
  std::vector<std::filesystem::path> files;
  host::CompileOptions options;
  host::ExecutableOptions executable_options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--skip") {
      HEDDLE_USER_CHECK(++i < arguments.size(), "--skip needs the name of a pass");
      options.passes.skip.push_back(arguments[i]);
    } else if (arguments[i] == "--choices") {
      HEDDLE_USER_CHECK(++i < arguments.size(), "--choices needs a file");
      executable_options.kernel_choices = tools::readChoices(arguments[i]);
    } else {
      files.emplace_back(arguments[i]);
    }
  }
  if (files.empty()) {
    for (const auto& entry : std::filesystem::directory_iterator("bench/workloads")) {
      files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
  }
  const std::unique_ptr<host::Device> device = host::makeCudaDevice(0);
  const host::Stream stream = device->createStream();
  {
    const Flush flush(static_cast<cudaStream_t>(stream));
    for (const auto& file : files) {
      time(file, *device, static_cast<cudaStream_t>(stream), flush, options, executable_options);
    }
  }
  device->destroyStream(stream);
}

}  // namespace

int main(int argc, char** argv) {
  std::string why;
  if (host::cudaDeviceCount(why) == 0) {
    fmt::print(stderr, "{}\n", why);
    return 0;
  }
  return heddle::bench::runGuarded([&] { run({argv + 1, argv + argc}); });
}
