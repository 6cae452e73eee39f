#include "host/device/cuda/matmul/cuda_matmul.h"

#include <algorithm>
#include <vector>

#include "codegen/compile/image_cache.h"
#include "comm/cuda_call/gpu_timing.h"
#include "host/device/cuda/kernel/cuda_check.h"
#include "host/device/cuda/matmul/prepared_cuda_matmul.h"
#include "host/device/timed_choice.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

constexpr int64_t kF8Bytes = 16;  // smallest alignment that cuBLASLt supports for f8

// A matrix product whose result has no elements. Its run() does nothing, because cuBLASLt rejects
// such sizes.
class NoMatmul : public PreparedMatmul {
 public:
  void run(const MatmulOperands&, Stream, const Issue&) const override {}
};

// Returns a text with everything on which stored choices depend, except the problem.
std::string identityOf(int device) {
  cudaDeviceProp properties{};
  HEDDLE_CUDA(cudaGetDeviceProperties, &properties, device);
  return fmt::format("{} sm_{}{}, cublasLt {}, timing {}", properties.name, properties.major,
                     properties.minor, cublasLtGetVersion(), kTimedChoice);
}

}  // namespace

CudaMatmul::CudaMatmul(int device, const codegen::KernelCompiler& compiler)
    : device_(device),
      compiler_(compiler),
      store_(
          std::make_unique<ChoiceCache>(codegen::ImageCache::defaultFolder(), identityOf(device))) {
  HEDDLE_CUBLAS(cublasLtCreate, &handle_);
  int major = 0, minor = 0;
  HEDDLE_CUDA(cudaDeviceGetAttribute, &major, cudaDevAttrComputeCapabilityMajor, device);
  HEDDLE_CUDA(cudaDeviceGetAttribute, &minor, cudaDevAttrComputeCapabilityMinor, device);
  has_float8_ = 10 * major + minor >= 89;
}

CudaMatmul::~CudaMatmul() { cublasLtDestroy(handle_); }

std::set<std::string> CudaMatmul::questions(const MatmulSpec& spec) const {
  std::set<std::string> keys;
  const std::optional<MatmulSpec> part = libraryPart(spec, has_float8_);
  if (!part || !librariesAreTimed()) return keys;
  for (const MatmulProblem& problem : layoutMatmul(*part).problems) keys.insert(problem.text());
  return keys;
}

// Returns `given`, or else the stored choice, if cuBLASLt accepts it for this problem. Otherwise
// measures the candidates, stores the fastest one and returns it. Returns kOwn if cuBLASLt has no
// algorithm: prepare() then uses heddle's own kernel, or reports the error. While a CUDA graph is
// captured from the stream, the function cannot measure, and returns "" if there is no usable
// choice.
std::string CudaMatmul::choose(const std::string& question, cudaStream_t stream,
                               const std::string& given) {
  const MatmulProblem problem = parseProblem(question);
  const LtMatmul matmul(handle_, problem);
  const bool capturing = comm::isCapturing(stream);
  const bool own_competes = ownCompetes(problem);
  for (const std::string& known : {given, store_->find(question).value_or("")}) {
    if (known == kOwn && own_competes) return known;
    if (const auto algorithm = matmul.fromText(known, kWorkspaceBytes)) {
      if (!capturing) load(question, matmul, problem, *algorithm, stream);
      return known;
    }
  }
  if (capturing) return {};
  const std::vector<LtMatmul::Algorithm> algorithms =
      matmul.candidates(kCandidates, kWorkspaceBytes);
  if (algorithms.empty()) return kOwn;
  const comm::TimingStream timing(stream);
  const auto own = own_competes ? prepareOwn(specOf(problem)) : nullptr;
  const size_t fastest =
      timer_.fastest(matmul, problem, algorithms, own.get(), compiler_, timing.get());
  const bool is_own = fastest == algorithms.size();
  if (!is_own) load(question, matmul, problem, algorithms[fastest], stream);
  const std::string choice = is_own ? kOwn : LtMatmul::text(algorithms[fastest]);
  store_->put(question, choice);
  return choice;
}

void CudaMatmul::load(const std::string& question, const LtMatmul& matmul,
                      const MatmulProblem& problem, const LtMatmul::Algorithm& algorithm,
                      cudaStream_t stream) {
  {
    std::lock_guard lock(loaded_mutex_);
    if (!loaded_.insert(question + " " + LtMatmul::text(algorithm)).second) return;
  }
  const comm::TimingStream own(stream);
  AlgorithmTimer::load(matmul, problem, algorithm, own.get());
}

bool CudaMatmul::ownCompetes(const MatmulProblem& problem) {
  const double products = static_cast<double>(problem.batches) * static_cast<double>(problem.m) *
                          static_cast<double>(problem.n) * static_cast<double>(problem.k);
  return products <= kMostOwnProducts && problem.spare_sms == 0 && !isFloat8(problem.a.dtype);
}

bool CudaMatmul::hasAlgorithms(const MatmulLayout& layout) const {
  return std::all_of(layout.problems.begin(), layout.problems.end(), [&](const auto& problem) {
    return !LtMatmul(handle_, problem).candidates(1, kWorkspaceBytes).empty() &&
           !LtMatmul(handle_, alignedTo(problem, kF8Bytes)).candidates(1, kWorkspaceBytes).empty();
  });
}

std::shared_ptr<const PreparedMatmul> CudaMatmul::prepareOwn(const MatmulSpec& spec) {
  ProductLaunch launch = fallbackMatmul(spec);
  CudaKernel& kernel = own_.get(launch.kernel, compiler_);
  return std::make_shared<PreparedFallbackMatmul>(device_, kernel, std::move(launch),
                                                  spec.bias.has_value());
}

std::shared_ptr<const PreparedMatmul> CudaMatmul::prepare(const MatmulSpec& spec,
                                                          const AlgorithmChoices& choices) {
  if (spec.c.numel() == 0) return std::make_shared<NoMatmul>();
  const std::optional<MatmulSpec> part = libraryPart(spec, has_float8_);
  if (!part) return prepareOwn(spec);
  MatmulLayout layout = layoutMatmul(*part);
  if (layout.problems.size() == 1 && ownCompetes(layout.problems[0])) {
    const auto choice = choices.find(layout.problems[0].text());
    if (choice != choices.end() && choice->second == kOwn) return prepareOwn(spec);
  }
  const bool float8 = isFloat8(spec.a.dtype);
  if (float8 && !hasAlgorithms(layout)) return prepareOwn(spec);
  // cuBLASLt computes `part`. If `part` lacks the bias or the activation, one of heddle's own
  // kernels then applies them. For f8, a run whose operands have less than 16-byte alignment uses
  // only heddle's own kernel.
  std::shared_ptr<const PreparedMatmul> matmul = std::make_shared<PreparedCudaMatmul>(
      device_, handle_, copy_, compiler_, std::move(layout), choices);
  if (*part != spec) {
    ProductLaunch launch = productFinish(spec, *part);
    CudaKernel& kernel = own_.get(launch.kernel, compiler_);
    matmul = std::make_shared<PreparedFallbackMatmul>(device_, kernel, std::move(launch),
                                                      spec.bias.has_value() && !part->bias,
                                                      std::move(matmul));
  }
  if (!float8) return matmul;
  return std::make_shared<PreparedFloat8>(std::move(matmul), prepareOwn(spec));
}

}  // namespace heddle::host
