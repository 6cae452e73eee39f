// Checks that the sparse evaluation gives the same bits as the dense one.
#include "ir/reference/sparse.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/base/error.h"
#include "ir/text/fusion_text.h"

namespace heddle::sparse_test {
namespace {

void expectSparseIsDense(const Fusion& fusion, const SizeBindings& sizes, int64_t step) {
  ReferenceInputs inputs;
  for (ValueId id : fusion.inputs()) {
    const Value& value = fusion.value(id);
    if (value.is_scalar) continue;
    std::vector<int64_t> extents;
    for (const Size& size : value.tensor.sizes()) extents.push_back(size.evaluate(lookupIn(sizes)));
    inputs.tensors[id] = randomTensor(value.tensor.dtype, extents, 5, value.name);
  }
  const std::vector<HostTensor> dense = evaluateReference(fusion, inputs, sizes);
  WantedElements wanted;
  for (const HostTensor& tensor : dense) {
    Selection selection;
    for (int64_t extent : tensor.sizes) {
      std::vector<int64_t> some = {extent - 1};  // unsorted, to test that any order is allowed
      for (int64_t i = 0; i < extent; i += step) some.push_back(i);
      selection.axes.push_back(IndexSet::of(some));
    }
    wanted.emplace_back(selection);
  }
  const auto sparse = evaluateReferenceAt(fusion, inputs, sizes, wanted);
  for (size_t k = 0; k < dense.size(); ++k) {
    const HostTensor expected = elementsOf(dense[k], Selection::all(dense[k].sizes), *wanted[k]);
    ASSERT_EQ(sparse[k].sizes, expected.sizes) << "output " << k;
    for (int64_t i = 0; i < expected.numel(); ++i) {
      EXPECT_EQ(sparse[k].at(i), expected.at(i)) << "output " << k << " element " << i;
    }
  }
}

TEST(SparseReference, EveryKindOfOpMatchesTheDenseReference) {
  const Fusion fusion = parseFusion(
      "heddle 1 fusion f(%a: f32[b, m, k], %w: f32[k, n], %c: bf16[n], %i: i64[b, 3], %s: f64 = "
      "2.0)"
      "{ %d = matmul(%a, %w) %e = add(%d, %c) %f = softmax(%e, axis=1)"
      "  %g = permute(%f, axes=[2, 0, 1]) %h = reshape(%g, sizes=[n*b, m])"
      "  %j = slice(%h, starts=[1, 0], stops=[n*b - 1, m]) %l = sum(%j, axes=[0], keepdim=true)"
      "  %o = expand(%l, sizes=[4, m]) %p = mul(%o, %s) %q = cast(%p, dtype=bf16)"
      "  %r = max(%i, axes=[1]) %t = size(%a, axis=2) %u = mul(%r, %t) %v = prod(%i, axes=[0, 1])"
      "  return %e, %h, %l, %q, %u, %v }");
  expectSparseIsDense(fusion, {{"b", 3}, {"m", 5}, {"k", 7}, {"n", 11}}, 1);
  expectSparseIsDense(fusion, {{"b", 2}, {"m", 40}, {"k", 33}, {"n", 600}}, 17);
}

TEST(SparseReference, ExamplesMatchTheDenseReference) {
  const char* root = std::getenv("HEDDLE_SOURCE_DIR");
  const std::filesystem::path folder =
      std::filesystem::path(root == nullptr ? "." : root) / "examples";
  for (const char* name :
       {"softmax", "layer_norm", "swiglu", "tp_mlp", "gelu_backward_bias_grad"}) {
    std::ifstream file(folder / (std::string(name) + ".fusion"));
    std::stringstream text;
    text << file.rdbuf();
    const Fusion fusion = parseFusion(text.str(), name);
    SizeBindings sizes(fusion.size_defaults.begin(), fusion.size_defaults.end());
    if (sizes.contains("b")) sizes = {{"b", 3}, {"s", 5}, {"h", 70}};
    SCOPED_TRACE(name);
    expectSparseIsDense(fusion, sizes, 41);
  }
}

TEST(SparseReference, OnlyNeededElementsAreComputed) {
  // A full tensor of 2^36 elements would not fit into memory.
  const Fusion fusion = parseFusion(
      "heddle 1 fusion f(%a: f32[n], %b: f32[n]) {"
      "%c = broadcast(%a, axes=[1]) %d = mul(%c, %b) %e = exp(%d) return %e }");
  const int64_t n = int64_t{1} << 18;
  ReferenceInputs inputs;
  inputs.tensors[ValueId(0)] = randomTensor(DType::F32, {n}, 1, "a");
  inputs.tensors[ValueId(1)] = randomTensor(DType::F32, {n}, 1, "b");
  const auto out = evaluateReferenceAt(fusion, inputs, {{"n", n}},
                                       {Selection{{IndexSet::of({5}), IndexSet::of({17})}}});
  const float product =
      inputs.tensors[ValueId(0)].as<float>()[5] * inputs.tensors[ValueId(1)].as<float>()[17];
  EXPECT_NEAR(toDouble(out[0].at(0)), std::exp(static_cast<double>(product)), 1e-6);
}

TEST(SparseReference, ElementsOutOfRangeAreRefused) {
  const Fusion fusion = parseFusion("heddle 1 fusion f(%a: f32[n]) { return %a }");
  ReferenceInputs inputs;
  inputs.tensors[ValueId(0)] = HostTensor(DType::F32, {4});
  const auto evaluate = [&](const WantedElements& wanted) {
    return evaluateReferenceAt(fusion, inputs, {{"n", 4}}, wanted);
  };
  EXPECT_EQ(evaluate({Selection{{IndexSet::of({3})}}})[0].numel(), 1);
  EXPECT_THROW(evaluate({Selection{{IndexSet::of({4})}}}), UserError);
  EXPECT_THROW(evaluate({Selection{{IndexSet::of({-1})}}}), UserError);
  EXPECT_THROW(evaluate({Selection{}}), UserError);
  EXPECT_THROW(evaluate({}), UserError);
}

}  // namespace
}  // namespace heddle::sparse_test
