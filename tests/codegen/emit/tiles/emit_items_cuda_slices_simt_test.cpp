// Runs CUDA kernels whose outputs are slices of larger tensors, as in a cat. The results must be
// right, and the bytes outside of the slices must not change.
#include "ir/base/check.h"
#include "tests/codegen/simt/simt_cases.h"

namespace heddle::codegen::emit_items_cuda_slices_simt_test {
namespace {

using testing::Cases;
using testing::expectRight;

// Neighbouring rows of a slice begin `width` elements apart. The slice begins `shift` elements
// after an aligned address.
struct Slice {
  int64_t width;
  int64_t shift;
};

std::vector<Slice> slicesOf(int64_t m) { return {{2 * m, m}, {m + 3, 1}, {m + 16, 8}, {m, 5}}; }

TEST(EmitItemsCudaSlicesSimt, PointwiseKernelsAreRight) {
  Cases cases;
  for (const int64_t m : {1, 6, 64, 261}) {
    const SizeBindings bound = {{"n", 44}, {"m", m}};
    for (const char* dtype : {"f32", "bf16", "u8"}) {
      const std::string text = fmt::format(
          "%x: {0}[n, m], %w: f32[m]) {{ %b = broadcast(%w, axes=[0]) %c = cast(%b, dtype={0}) "
          "%y = maximum(%x, %c) %z = minimum(%x, %c) return %y, %z",
          dtype);
      for (const auto& [width, shift] : slicesOf(m)) {
        cases.add(text, {{{44, m}}, {{m}}}, bound, {{width, 1}, {width, 1}}, shift);
      }
    }
  }
  expectRight(cases);
}

TEST(EmitItemsCudaSlicesSimt, TransposesAreRight) {
  Cases cases;
  for (const int64_t m : {6, 64, 137}) {
    for (const auto& [width, shift] : slicesOf(m)) {
      for (const char* dtype : {"f32", "bf16"}) {
        cases.add(fmt::format("%x: {}[n, m]) {{ %y = neg(%x) return %y", dtype),
                  {{{70, m}, {1, 70}}}, {{"n", 70}, {"m", m}}, {{width, 1}}, shift);
      }
    }
  }
  expectRight(cases);
}

TEST(EmitItemsCudaSlicesSimt, KernelsWithReductionsAreRight) {
  constexpr double kRoundings = 8;
  Cases cases;
  for (const int64_t m : {6, 64, 261}) {
    const SizeBindings bound = {{"n", 9}, {"m", m}};
    for (const auto& [width, shift] : slicesOf(m)) {
      cases.add("%x: bf16[n, m]) { %y = softmax(%x, axis=1) return %y", {{{9, m}}}, bound,
                {{width, 1}}, shift);
      cases.add("%x: f32[n, m]) { %y = sum(%x, axes=[1], keepdim=true) return %y", {{{9, m}}},
                bound, {{width, 1}}, shift);
      cases.add("%x: f32[n, m]) { %y = sum(%x, axes=[0], keepdim=true) return %y", {{{9, m}}},
                bound, {{width, 1}}, shift);
    }
  }
  expectRight(cases, kRoundings);
}

}  // namespace
}  // namespace heddle::codegen::emit_items_cuda_slices_simt_test
