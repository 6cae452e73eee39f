#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>

#include "host/device/cpu/matmul_library.h"
#include "ir/base/check.h"

namespace heddle::host::onednn {
namespace {

using matmul::Bf16Matmul;
using matmul::MatmulLibrary;
using matmul::Operand;
using matmul::PreparedBf16Matmul;

// Makes oneDNN compute on the calling thread. heddle distributes the work over its own threads.
// OpenMP stores the number of threads separately for each calling thread, so other threads are not
// affected.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

std::string version() {
  const dnnl_version_t* found = dnnl_version();
  return fmt::format("{}.{}.{}", found->major, found->minor, found->patch);
}

void multiply(const Operand<float>& a, const Operand<float>& b, bool adds, float* c, int64_t ldc,
              int64_t m, int64_t n, int64_t k) {
  const OneThread one;
  const dnnl_status_t status =
      dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, 1.0F, a.data, a.ld,
                 b.data, b.ld, adds ? 1.0F : 0.0F, c, ldc);
  if (status == dnnl_out_of_memory) throw std::bad_alloc();
  HEDDLE_CHECK(status == dnnl_success, "dnnl_sgemm returned status {} for {} x {} x {}",
               static_cast<int>(status), m, n, k);
}

const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::memory::desc descOf(int64_t rows, int64_t columns, const MatrixLayout& layout, DType dtype) {
  const auto type =
      dtype == DType::F32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
  const dnnl::memory::dims strides =
      layout.transposed ? dnnl::memory::dims{1, layout.ld} : dnnl::memory::dims{layout.ld, 1};
  return {{rows, columns}, type, strides};
}

class OneDnnMatmul : public PreparedBf16Matmul {
 public:
  explicit OneDnnMatmul(const dnnl::matmul::primitive_desc& desc)
      : desc_(desc), primitive_(desc), stream_(cpu()) {}
  int64_t workspaceBytes() const override {
    return static_cast<int64_t>(desc_.scratchpad_desc().get_size());
  }
  void run(const void* a, const void* b, void* c, void* workspace) const override {
    const OneThread one;
    const auto at = [](const dnnl::memory::desc& desc, const void* data) {
      return dnnl::memory(desc, cpu(), const_cast<void*>(data));
    };
    primitive_.execute(stream_, {{DNNL_ARG_SRC, at(desc_.src_desc(), a)},
                                 {DNNL_ARG_WEIGHTS, at(desc_.weights_desc(), b)},
                                 {DNNL_ARG_DST, at(desc_.dst_desc(), c)},
                                 {DNNL_ARG_SCRATCHPAD, at(desc_.scratchpad_desc(), workspace)}});
  }

 private:
  dnnl::matmul::primitive_desc desc_;
  dnnl::matmul primitive_;
  dnnl::stream stream_;
};

dnnl::matmul::primitive_desc primitiveOf(const Bf16Matmul& product) {
  const auto a = descOf(product.m, product.k, product.a, DType::BF16);
  const auto b = descOf(product.k, product.n, product.b, DType::BF16);
  const auto c = descOf(product.m, product.n, {true, false, product.ldc}, product.c_dtype);
  dnnl::primitive_attr attributes;
  // The caller provides the scratchpad (temporary memory). With a scratchpad of oneDNN, only the
  // thread that created the primitive could execute it.
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  constexpr bool kAllowsEmpty = true;  // an unsupported matrix product gives an empty descriptor
#if DNNL_VERSION_MAJOR >= 3
  return {cpu(), a, b, c, attributes, kAllowsEmpty};
#else
  return {dnnl::matmul::desc(a, b, c), attributes, cpu(), kAllowsEmpty};
#endif
}

std::unique_ptr<const PreparedBf16Matmul> prepare(const Bf16Matmul& product) {
  const OneThread one;
  const dnnl::matmul::primitive_desc desc = primitiveOf(product);
  if (!desc) return nullptr;
  // The implementation `ref` is a plain loop, and slow.
  if (std::string_view(desc.impl_info_str()).starts_with("ref")) return nullptr;
  return std::make_unique<OneDnnMatmul>(desc);
}

constexpr MatmulLibrary kModule = {version, multiply, prepare};

}  // namespace
}  // namespace heddle::host::onednn

extern "C" const heddle::host::matmul::MatmulLibrary* heddleOneDnnModule() {
  return &heddle::host::onednn::kModule;
}
