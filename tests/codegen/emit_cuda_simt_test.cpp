// Runs generated CUDA kernels on the host and compares them with the reference evaluator.
#include <cmath>
#include <deque>
#include <set>

#include "ir/reference/reference.h"
#include "ir/text/fusion_text.h"
#include "tests/codegen/simt/simt_kernels.h"

namespace heddle::codegen::emit_cuda_simt_test {
namespace {

using testing::Buffer;
using testing::SimtKernels;

// The shape and the strides of a tensor of a test. Empty strides: dense. `shift` counts elements.
struct Layout {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides = {};
  int64_t shift = 0;
};

HostTensor valuesOf(const Buffer& buffer) {
  HostTensor values(buffer.desc.dtype, buffer.desc.sizes);
  int64_t at = 0;
  auto& source = const_cast<Buffer&>(buffer);
  buffer.forEach([&](const std::vector<int64_t>& index) {
    values.set(at++, loadElement(source.data(), buffer.desc.dtype, buffer.offsetOf(index)));
  });
  return values;
}

// Kernels, their buffers and the expected outputs.
class Cases {
 public:
  // Adds a fusion whose text is one kernel. `layouts` are those of its inputs.
  void add(const std::string& text, const std::vector<Layout>& layouts, const SizeBindings& sizes,
           const std::vector<std::vector<int64_t>>& output_strides = {}) {
    Case one;
    one.name = text + str(layouts.empty() ? std::vector<int64_t>{} : layouts[0].sizes);
    const Fusion fusion = parseFusion("heddle 1 fusion f(" + text + " }", "f");
    ReferenceInputs inputs;
    std::vector<Buffer*> in;
    for (size_t i = 0; i < fusion.inputs().size(); ++i) {
      const ValueId id = fusion.inputs()[i];
      const DType dtype = fusion.tensor(id).dtype;
      const auto shift = static_cast<size_t>(layouts[i].shift * sizeOf(dtype));
      Buffer& buffer = buffers_.emplace_back(dtype, layouts[i].sizes, layouts[i].strides, shift);
      inputs.tensors[id] = valuesOf(buffer.fill(static_cast<unsigned>(i) + 3));
      in.push_back(&buffer);
    }
    one.wanted = evaluateReference(fusion, inputs, sizes);
    for (size_t i = 0; i < one.wanted.size(); ++i) {
      const HostTensor& wanted = one.wanted[i];
      one.outputs.push_back(&buffers_.emplace_back(
          wanted.dtype, wanted.sizes,
          i < output_strides.size() ? output_strides[i] : std::vector<int64_t>{}));
    }
    one.kernel = kernels_.add(fusion, in, one.outputs);
    cases_.push_back(std::move(one));
  }

  void compile() { kernels_.compile(); }
  size_t size() const { return cases_.size(); }
  const std::string& name(size_t number) const { return cases_[number].name; }
  std::pair<int, int> barriers(size_t number) const { return kernels_.barriers(number); }
  size_t stages(size_t number) const { return kernels_.plan(number).stages.size(); }

  // Runs a kernel. Returns what is wrong, or an empty text. A float may differ from the expected
  // value by the relative error `tolerance`.
  std::string run(size_t number, uint64_t seed, double tolerance = 0, int skipped = -1) {
    Case& one = cases_[number];
    for (Buffer* output : one.outputs) {
      std::fill(output->bytes.begin(), output->bytes.end(), '\x5a');
    }
    std::string fault = kernels_.run(one.kernel, seed, skipped);
    for (size_t i = 0; i < one.outputs.size() && fault.empty(); ++i) {
      fault = difference(valuesOf(*one.outputs[i]), one.wanted[i], tolerance);
    }
    return fault;
  }

 private:
  struct Case {
    std::string name;
    size_t kernel = 0;
    std::vector<Buffer*> outputs;
    std::vector<HostTensor> wanted;
  };

  static std::string difference(const HostTensor& got, const HostTensor& wanted, double tolerance) {
    for (int64_t i = 0; i < wanted.numel(); ++i) {
      const double a = toDouble(got.at(i));
      const double b = toDouble(wanted.at(i));
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      if (std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b))) continue;
      return fmt::format("element {} is {}, expected {}", i, a, b);
    }
    return "";
  }

  SimtKernels kernels_;
  std::deque<Buffer> buffers_;
  std::deque<Case> cases_;
};

void expectRight(Cases& cases, double tolerance = 0) {
  cases.compile();
  for (size_t i = 0; i < cases.size(); ++i) {
    for (uint64_t seed : {0, 1, 2}) {
      EXPECT_EQ(cases.run(i, seed, tolerance), "") << cases.name(i) << " seed " << seed;
    }
  }
}

TEST(EmitCudaSimt, PointwiseKernelsAreRightForAllLayouts) {
  Cases cases;
  for (const char* dtype : {"f32", "bf16", "f16", "f64", "i64", "u8"}) {
    const std::string text = fmt::format(
        "%x: {0}[n, m], %z: {0}[n, m]) {{ %p = mul(%x, %z) %y = sub(%p, %x) return %y", dtype);
    for (const int64_t m : {1, 7, 64, 1037}) {
      const std::vector<int64_t> sizes = {5, m};
      const SizeBindings bound = {{"n", 5}, {"m", m}};
      cases.add(text, {{sizes}, {sizes}}, bound);
      cases.add(text, {{sizes, {1, 5}}, {sizes, {1, 5}}}, bound, {{1, 5}});  // columns first
      cases.add(text, {{sizes, {1, 5}}, {sizes}}, bound);                    // mixed orders
      cases.add(text, {{sizes, {m + 3, 1}, 1}, {sizes, {3 * m, 3}}}, bound, {{m + 8, 1}});
      cases.add(text, {{sizes, {0, 1}}, {sizes, {1, 0}}}, bound);  // expanded
    }
  }
  expectRight(cases);
}

TEST(EmitCudaSimt, BroadcastsAndMathFunctionsAreRight) {
  Cases cases;
  cases.add(
      "%x: f8e4m3[n], %z: f8e5m2[n]) { %a = cast(%x, dtype=f32) %b = cast(%z, dtype=f32) %c = "
      "mul(%a, %b) %y = cast(%c, dtype=f8e4m3) %w = cast(%c, dtype=f8e5m2) return %y, %w",
      {{.sizes = {1001}}, {.sizes = {1001}}}, {{"n", 1001}});
  for (const int64_t k : {1, 6, 129}) {
    const SizeBindings bound = {{"n", 3}, {"m", 4}, {"k", k}};
    cases.add(
        "%x: f32[n, m, k], %b: f32[m]) { %c = broadcast(%b, axes=[0, 2]) %y = add(%x, %c) "
        "%e = exp(%y) %t = tanh(%e) %g = erf(%t) return %g, %y",
        {{.sizes = {3, 4, k}}, {.sizes = {4}}}, bound);
    cases.add("%x: bf16[n, m, k]) { %s = sigmoid(%x) %l = log1p(%s) %y = sqrt(%l) return %y",
              {{{3, 4, k}, {k, 3 * k, 1}}}, bound);
  }
  expectRight(cases, 1e-2);
}

// The indices are -8 to 8, and the axis has 5 elements, so most indices are out of range.
TEST(EmitCudaSimt, IndexedLoadsAreRight) {
  Cases cases;
  for (const int64_t m : {1, 9, 130}) {
    const SizeBindings bound = {{"n", 5}, {"m", m}};
    const std::vector<int64_t> sizes = {5, m};
    for (const char* dtype : {"f32", "bf16", "u8"}) {
      cases.add(fmt::format("%x: {0}[n, m], %i: i64[n, m]) {{ %t = take_along_axis(%x, %i, axis=0) "
                            "%f = flip(%x, axes=[0, 1]) %y = add(%t, %f) return %y",
                            dtype),
                {{sizes, {1, 5}}, {sizes}}, bound);
      cases.add(fmt::format("%x: {0}[n, m]) {{ %p = pad(%x, lows=[1, 2], highs=[0, 3]) %y = "
                            "add(%p, %p) %s = max(%y, axes=[1]) return %s",
                            dtype),
                {{sizes, {}, 1}}, bound);
    }
  }
  expectRight(cases);
}

TEST(EmitCudaSimt, ReductionsAreRightForAllAxesAndSizes) {
  Cases cases;
  for (const std::vector<int64_t>& sizes :
       std::vector<std::vector<int64_t>>{{3, 5, 7}, {1, 61, 1}, {40, 2, 333}, {2, 700, 33}}) {
    const SizeBindings bound = {{"n", sizes[0]}, {"m", sizes[1]}, {"k", sizes[2]}};
    for (const char* axes : {"0", "1", "2", "0, 1", "1, 2", "0, 2", "0, 1, 2"}) {
      for (const char* op : {"sum", "max"}) {
        cases.add(fmt::format("%x: f32[n, m, k]) {{ %y = {}(%x, axes=[{}]) return %y", op, axes),
                  {{sizes}}, bound);
      }
      cases.add(fmt::format("%x: bf16[n, m, k]) {{ %a = abs(%x) %y = sum(%a, axes=[{0}]) %z = "
                            "min(%x, axes=[{0}]) return %y, %z",
                            axes),
                {{sizes, {}, 1}}, bound);
    }
  }
  expectRight(cases);
}

TEST(EmitCudaSimt, LongReductionsUseTwoLaunches) {
  Cases cases;
  cases.add("%x: f32[n, m]) { %y = sum(%x, axes=[0, 1]) return %y", {{.sizes = {3, 70001}}},
            {{"n", 3}, {"m", 70001}});
  cases.add("%x: f32[n, m]) { %y = sum(%x, axes=[0]) return %y", {{.sizes = {40003, 5}}},
            {{"n", 40003}, {"m", 5}});
  for (size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(cases.stages(i), 2u) << cases.name(i);
  expectRight(cases);
}

// Neighbouring elements share a block of random words. If the innermost axis in memory is not the
// last axis, neighbours have distant indices.
TEST(EmitCudaSimt, RandomWordsAreThoseOfTheReference) {
  Cases cases;
  for (const int64_t m : {1, 6, 37, 512}) {
    const std::vector<int64_t> sizes = {5, m};
    for (const std::vector<int64_t>& strides : {std::vector<int64_t>{m, 1}, {1, 5}}) {
      for (const char* dtype : {"i64", "bf16"}) {
        cases.add(fmt::format("%x: {0}[5, {1}], %s: i64[]) {{ %p = iota(sizes=[5, {1}], axis=0) %r "
                              "= mul(%p, {1}) %q = iota(sizes=[5, {1}], axis=1) %i = add(%r, %q) "
                              "%y = philox32(%s, 9, %i) %z = philox64(%s, %y, %i) %w = add(%x, %y) "
                              "return %y, %z, %w",
                              dtype, m),
                  {{sizes, strides}, {}}, {}, {strides, strides, strides});
      }
    }
  }
  expectRight(cases);
}

TEST(EmitCudaSimt, ReductionsNeedEachOfTheirBarriers) {
  Cases cases;
  for (const int64_t axis : {0, 1}) {
    const std::vector<int64_t> sizes =
        axis == 0 ? std::vector<int64_t>{1003, 65} : std::vector<int64_t>{9, 5003};
    cases.add(fmt::format("%x: f32[n, m]) {{ %y = sum(%x, axes=[{0}]) %z = max(%x, axes=[{0}]) "
                          "return %y, %z",
                          axis),
              {{.sizes = sizes}}, {{"n", sizes[0]}, {"m", sizes[1]}});
  }
  expectRight(cases);
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto [first, end] = cases.barriers(i);
    EXPECT_GT(end, first) << cases.name(i);
    for (int barrier = first; barrier < end; ++barrier) {
      std::set<std::string> faults;
      for (uint64_t seed = 0; seed < 3; ++seed) faults.insert(cases.run(i, seed, 0, barrier));
      EXPECT_FALSE(faults.contains("")) << cases.name(i) << " without barrier " << barrier;
    }
  }
}

}  // namespace
}  // namespace heddle::codegen::emit_cuda_simt_test
