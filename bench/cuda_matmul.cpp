// Times matrix products through an Executable on GPU 0. bench/peers/torch_matmul.py times the same
// matrix products in PyTorch. Also times the host work per CallLibrary instruction, and per call of
// cublasLtMatmul in a plain loop with the same operands. Prints one JSON object per line.
//
//   bench_cuda_matmul [ROUNDS]
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "bench/cuda_timing.h"
#include "host/compile.h"
#include "host/executable.h"
#include "host/tensor.h"
#include "host/text/program_text.h"
#include "ir/base/check.h"
#include "ir/graph/builder.h"

namespace {

using namespace heddle;
using bench::check;

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) userError("{}: {}", call, cublasLtGetStatusString(status));
}

struct Case {
  const char* name;
  std::vector<int64_t> a;
  std::vector<int64_t> b;
  int repeats;
};

host::Tensor randomOnDevice(host::Device& device, const std::vector<int64_t>& sizes,
                            const char* name) {
  const TensorDesc desc = denseDesc(DType::BF16, sizes);
  return host::toDevice(device, device.allocator(), randomTensor(desc.dtype, sizes, 1, name), desc);
}

void timeOnGpu(host::Device& device, const Case& each, cudaStream_t stream, int rounds) {
  FusionBuilder b("product");
  const auto sizes = [](const std::vector<int64_t>& list) {
    return std::vector<Size>(list.begin(), list.end());
  };
  const ValueId x = b.input("x", DType::BF16, sizes(each.a));
  const ValueId y = b.input("y", DType::BF16, sizes(each.b));
  b.output(b.matmul(x, y));
  host::Executable executable(host::compile(std::move(b).build(), 1), {&device, nullptr, nullptr});
  const std::vector<host::Argument> inputs{randomOnDevice(device, each.a, "x"),
                                           randomOnDevice(device, each.b, "y")};
  host::RunOptions options;
  options.stream = stream;
  const double ms =
      bench::medianMs(stream, rounds, each.repeats, [&] { executable.run(inputs, options); });
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  const double batch = each.a.size() > 2 ? static_cast<double>(each.a[0]) : 1.0;
  const double flop = 2.0 * batch * static_cast<double>(each.a[each.a.size() - 2]) *
                      static_cast<double>(each.a.back()) * static_cast<double>(each.b.back());
  fmt::print("{{\"name\": \"{}\", \"device\": \"{}\", \"gpu_ms\": {:.4f}, \"tflop_s\": {:.1f}}}\n",
             each.name, device.description(), ms, flop / (ms * 1e-3) / 1e12);
  std::fflush(stdout);
}

constexpr int kCalls = 200;  // few enough that the driver queues them without blocking the host
constexpr int64_t kSize = 64;

// A square matrix product, computed by a direct call of cuBLASLt.
class RawMatmul {
 public:
  RawMatmul() {
    check(cublasLtCreate(&handle_), "cublasLtCreate");
    check(cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F),
          "cublasLtMatmulDescCreate");
    check(cublasLtMatrixLayoutCreate(&layout_, CUDA_R_16BF, kSize, kSize, kSize),
          "cublasLtMatrixLayoutCreate");
    check(cublasLtMatmulPreferenceCreate(&preference_), "cublasLtMatmulPreferenceCreate");
    int found = 0;
    check(cublasLtMatmulAlgoGetHeuristic(handle_, operation_, layout_, layout_, layout_, layout_,
                                         preference_, 1, &chosen_, &found),
          "cublasLtMatmulAlgoGetHeuristic");
    HEDDLE_USER_CHECK(found == 1, "cublasLtMatmulAlgoGetHeuristic found no algorithm");
  }
  ~RawMatmul() {
    cublasLtMatmulPreferenceDestroy(preference_);
    cublasLtMatrixLayoutDestroy(layout_);
    cublasLtMatmulDescDestroy(operation_);
    cublasLtDestroy(handle_);
  }
  RawMatmul(const RawMatmul&) = delete;
  RawMatmul& operator=(const RawMatmul&) = delete;

  void run(const void* a, const void* b, void* c, cudaStream_t stream) const {
    const float one = 1, zero = 0;
    check(cublasLtMatmul(handle_, operation_, &one, b, layout_, a, layout_, &zero, c, layout_, c,
                         layout_, &chosen_.algo, nullptr, 0, stream),
          "cublasLtMatmul");
  }

 private:
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t layout_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
  cublasLtMatmulHeuristicResult_t chosen_{};
};

void timeOnHost(host::Device& device, cudaStream_t stream, int rounds) {
  const host::Program program = host::parseProgram(fmt::format(R"(heddle 1
program bench(%x: bf16[n, n], %y: bf16[n, n]) -> (%z) with n = {} {{
  slot %z: bf16[n, n]
  %z = allocate stream=0
  for i in 0 .. {} {{
    call_library matmul(%x, %y) -> (%z) stream=0
  }}
}}
)",
                                                               kSize, kCalls),
                                                   "bench");
  const host::Tensor x = randomOnDevice(device, {kSize, kSize}, "x");
  const host::Tensor y = randomOnDevice(device, {kSize, kSize}, "y");
  const host::Tensor z = randomOnDevice(device, {kSize, kSize}, "z");
  const RawMatmul raw;
  host::Executable executable(program, {&device, nullptr, nullptr});
  host::RunOptions options;
  options.stream = stream;
  const std::vector<host::Argument> inputs{x, y};
  const double raw_ns = bench::medianIssueNs(stream, rounds, kCalls, [&] {
    for (int i = 0; i < kCalls; ++i) raw.run(x.data, y.data, z.data, stream);
  });
  const double heddle_ns =
      bench::medianIssueNs(stream, rounds, kCalls, [&] { executable.run(inputs, options); });
  fmt::print(
      "{{\"name\": \"cuda library call\", \"device\": \"{}\", \"heddle_ns_per_launch\": {:.0f}, "
      "\"raw_ns_per_launch\": {:.0f}, \"heddle_over_raw\": {:.3f}}}\n",
      device.description(), heddle_ns, raw_ns, heddle_ns / raw_ns);
}

void run(int rounds) {
  const std::unique_ptr<host::Device> device = host::makeCudaDevice(0);
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  const Case cases[] = {
      {"matmul bf16 8192^3", {8192, 8192}, {8192, 8192}, 5},
      {"matmul bf16 [16, 2048, 128] x [16, 128, 2048]", {16, 2048, 128}, {16, 128, 2048}, 20},
      {"matmul bf16 [16, 2048, 2048] x [16, 2048, 128]", {16, 2048, 2048}, {16, 2048, 128}, 20},
  };
  for (const Case& each : cases) timeOnGpu(*device, each, stream, rounds);
  timeOnHost(*device, stream, rounds);
  check(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

}  // namespace

int main(int argc, char** argv) {
  return heddle::bench::runGuarded([&] { run(heddle::bench::roundsOf(argc, argv, 30)); });
}
