#include "host/device/cuda/matmul/matmul_timer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "comm/cuda_call/gpu_timing.h"
#include "host/device/cuda/kernel/cuda_check.h"
#include "host/device/timed_choice.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

using comm::EventPair;
using comm::TimerMemory;

constexpr const char* kFillSource = R"cuda(
struct HeddleFillArgs {
  unsigned* words;
  long long count;
  unsigned keep[2];
  unsigned set[2];
};

extern "C" __global__ void heddleFill(const __grid_constant__ HeddleFillArgs args) {
  long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < args.count; i += step) {
    unsigned x = (unsigned)i * 2654435761u + 12345u;
    x ^= x >> 15; x *= 2246822519u; x ^= x >> 13; x *= 3266489917u; x ^= x >> 16;
    args.words[i] = (x & args.keep[i & 1]) | args.set[i & 1];
  }
}
)cuda";

// Says how random words of 32 bits become numbers. `keep` selects the random bits (sign and
// mantissa), `set` contains the fixed bits (exponent). Entry 0 is for even words, entry 1 for odd
// words; they differ for f64. The magnitude of each number is at least 0.5 and less than 1.
struct Pattern {
  uint32_t keep[2];
  uint32_t set[2];
};

Pattern patternOf(DType dtype) {
  if (dtype == DType::F64) return {{0xFFFFFFFFU, 0x800FFFFFU}, {0, 0x3FE00000U}};
  if (dtype == DType::F32) return {{0x807FFFFFU, 0x807FFFFFU}, {0x3F000000U, 0x3F000000U}};
  if (dtype == DType::F16) return {{0x83FF83FFU, 0x83FF83FFU}, {0x38003800U, 0x38003800U}};
  if (dtype == DType::F8E4M3) return {{0x87878787U, 0x87878787U}, {0x30303030U, 0x30303030U}};
  if (dtype == DType::F8E5M2) return {{0x83838383U, 0x83838383U}, {0x38383838U, 0x38383838U}};
  return {{0x807F807FU, 0x807F807FU}, {0x3F003F00U, 0x3F003F00U}};
}

struct FillArgs {
  void* words;
  int64_t count;
  Pattern pattern;
};

// Returns a number of bytes that is enough for an operand. It may exceed the size of the operand,
// because the last row or column also counts with the full stride `ld`.
int64_t bytesOf(const MatmulProblem::Side& side, int64_t rows, int64_t columns, int64_t batches) {
  const int64_t lines = side.transposed ? columns : rows;
  const int64_t elements = (batches - 1) * side.batch_stride + lines * side.ld;
  return std::max<int64_t>(elements, 1) * sizeOf(side.dtype);
}

// Returns the number of words that hold the bytes.
int64_t wordsOf(int64_t bytes) { return (bytes + 3) / 4; }

constexpr double kNever = std::numeric_limits<double>::infinity();

class CudaStopwatch : public AlgorithmStopwatch {
 public:
  CudaStopwatch(const LtMatmul& matmul, const std::vector<LtMatmul::Algorithm>& algorithms,
                const PreparedMatmul* own, const MatmulOperands& operands, cudaStream_t stream)
      : matmul_(matmul), algorithms_(algorithms), own_(own), operands_(operands), stream_(stream) {}

  // The first tryRun() loads the kernel, so only the second one is measured.
  double first(size_t way) override {
    bool runs = tryRun(way);
    if (!runs) return kNever;
    const double ms = events_.time(stream_, [&] { runs = tryRun(way); });
    return runs ? ms : kNever;
  }

  double mean(size_t way, int runs) override {
    run(way);
    const double ms = events_.time(stream_, [&] {
      for (int r = 0; r < runs; ++r) run(way);
    });
    return ms / runs;
  }

 private:
  bool isOwn(size_t way) const { return way == algorithms_.size(); }
  bool tryRun(size_t way) const {
    if (!isOwn(way)) {
      return matmul_.tryRun(algorithms_[way], operands_, stream_) == CUBLAS_STATUS_SUCCESS;
    }
    run(way);
    return true;
  }
  void run(size_t way) const {
    if (!isOwn(way)) return matmul_.run(algorithms_[way], operands_, stream_);
    own_->run(operands_, stream_, {});
  }

  const LtMatmul& matmul_;
  const std::vector<LtMatmul::Algorithm>& algorithms_;
  const PreparedMatmul* own_;
  MatmulOperands operands_;
  cudaStream_t stream_;
  EventPair events_;
};

}  // namespace

void AlgorithmTimer::load(const LtMatmul& matmul, const MatmulProblem& problem,
                          const LtMatmul::Algorithm& algorithm, cudaStream_t stream) {
  const TimerMemory a(bytesOf(problem.a, problem.m, problem.k, problem.batches), stream);
  const TimerMemory b(bytesOf(problem.b, problem.k, problem.n, problem.batches), stream);
  const int64_t bias_bytes = problem.bias_alignment == 0 ? 0 : problem.n * sizeOf(problem.c.dtype);
  const TimerMemory bias(bias_bytes, stream);
  const TimerMemory c(bytesOf(problem.c, problem.m, problem.n, problem.batches), stream);
  const TimerMemory workspace(static_cast<int64_t>(algorithm.workspace_bytes), stream);
  for (const TimerMemory* memory : {&a, &b, &bias, &c, &workspace}) {
    if (memory->failed()) return;
  }
  matmul.tryRun(algorithm, {a.get(), b.get(), bias.get(), c.get(), workspace.get()}, stream);
  HEDDLE_CUDA(cudaStreamSynchronize, stream);
}

AlgorithmTimer::AlgorithmTimer() : fill_(kFillSource, "heddleFill") {}

size_t AlgorithmTimer::fastest(const LtMatmul& matmul, const MatmulProblem& problem,
                               const std::vector<LtMatmul::Algorithm>& algorithms,
                               const PreparedMatmul* own, const codegen::KernelCompiler& compiler,
                               cudaStream_t stream) {
  const size_t ways = algorithms.size() + (own != nullptr ? 1 : 0);
  if (ways < 2) return 0;
  size_t workspace_bytes = 0;
  for (const LtMatmul::Algorithm& each : algorithms) {
    workspace_bytes = std::max(workspace_bytes, each.workspace_bytes);
  }
  const int64_t a_bytes = bytesOf(problem.a, problem.m, problem.k, problem.batches);
  const int64_t b_bytes = bytesOf(problem.b, problem.k, problem.n, problem.batches);
  const int64_t bias_bytes = problem.bias_alignment == 0 ? 0 : problem.n * sizeOf(problem.c.dtype);
  const TimerMemory a(a_bytes, stream), b(b_bytes, stream), bias(bias_bytes, stream);
  const TimerMemory c(bytesOf(problem.c, problem.m, problem.n, problem.batches), stream);
  const TimerMemory workspace(static_cast<int64_t>(workspace_bytes), stream);
  for (const TimerMemory* memory : {&a, &b, &bias, &c, &workspace}) {
    if (memory->failed()) return 0;
  }
  const auto fill = [&](const TimerMemory& memory, int64_t bytes, DType dtype) {
    FillArgs args{memory.get(), wordsOf(bytes), patternOf(dtype)};
    if (args.words == nullptr) return;
    CudaKernel::Shape shape;
    shape.block = 256;
    shape.grid = std::min<int64_t>(4096, (args.count + shape.block - 1) / shape.block);
    fill_.get(compiler).launch(shape, &args, stream);
  };
  fill(a, a_bytes, problem.a.dtype);
  fill(b, b_bytes, problem.b.dtype);
  fill(bias, bias_bytes, problem.c.dtype);
  const MatmulOperands operands{a.get(), b.get(), bias.get(), c.get(), workspace.get()};
  CudaStopwatch stopwatch(matmul, algorithms, own, operands, stream);
  return fastestAlgorithm(ways, stopwatch, !mayHaveFinal(problem));
}

bool AlgorithmTimer::mayHaveFinal(MatmulProblem problem) {
  problem.m = 0;
  const std::lock_guard lock(mutex_);
  return ++finals_[problem.text()] <= kFinals;
}

}  // namespace heddle::host
