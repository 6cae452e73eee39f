// Runs C++ kernels of the family of squares. The results must have the bits of the reference
// evaluator, also if tensors are transposed.
#include <numeric>
#include <set>
#include <string>

#include "ir/base/check.h"
#include "ir/reference/reference.h"
#include "ir/text/fusion_text.h"
#include "tests/codegen/kernel_runner.h"

namespace heddle::codegen::squares_cpu_test {
namespace {

using testing::Buffer;
using testing::CpuKernels;

HostTensor elementsOf(Buffer& buffer) {
  HostTensor values(buffer.desc.dtype, buffer.desc.sizes);
  int64_t at = 0;
  buffer.forEach([&](const std::vector<int64_t>& index) {
    values.set(at++, loadElement(buffer.data(), buffer.desc.dtype, buffer.offsetOf(index)));
  });
  return values;
}

// Runs the fusion `text` as one kernel. `inputs` have any strides, and the outputs are dense unless
// `output_strides` names others. Expects the bits of the reference evaluator.
KernelPlan runAgainstReference(const std::string& text, std::vector<Buffer>& inputs,
                               const SizeBindings& sizes,
                               const std::vector<std::vector<int64_t>>& output_strides = {}) {
  const Fusion fusion = parseFusion("heddle 1 fusion f(" + text + " }", "f");
  ReferenceInputs values;
  std::vector<Buffer*> in;
  for (size_t i = 0; i < inputs.size(); ++i) {
    values.tensors[fusion.inputs()[i]] = elementsOf(inputs[i].fill(static_cast<unsigned>(i) + 3));
    in.push_back(&inputs[i]);
  }
  const std::vector<HostTensor> wanted = evaluateReference(fusion, values, sizes);
  std::vector<Buffer> outputs;
  for (size_t i = 0; i < wanted.size(); ++i) {
    outputs.emplace_back(wanted[i].dtype, wanted[i].sizes,
                         i < output_strides.size() ? output_strides[i] : std::vector<int64_t>{}, 4);
  }
  std::vector<Buffer*> out;
  for (Buffer& output : outputs) out.push_back(&output);
  const KernelPlan plan = CpuKernels::shared().run(fusion, in, out);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const HostTensor got = elementsOf(outputs[i]);
    for (int64_t e = 0; e < wanted[i].numel(); ++e) {
      if (toDouble(got.at(e)) == toDouble(wanted[i].at(e))) continue;
      ADD_FAILURE() << text << ": element " << e << " of output " << i << " is "
                    << toDouble(got.at(e)) << ", expected " << toDouble(wanted[i].at(e));
      break;
    }
  }
  return plan;
}

bool isOfSquares(const KernelPlan& plan) {
  return !plan.stages.empty() && plan.stages[0].entry.starts_with("heddle_squares");
}

// Like runAgainstReference(). Returns whether the kernel belongs to the family of squares.
bool expectReference(const std::string& text, std::vector<Buffer>& inputs,
                     const SizeBindings& sizes,
                     const std::vector<std::vector<int64_t>>& output_strides = {}) {
  return isOfSquares(runAgainstReference(text, inputs, sizes, output_strides));
}

// Returns the strides of a dense tensor whose axes lie in memory in the order `order`, outermost
// first.
std::vector<int64_t> stridesInOrder(const std::vector<int64_t>& sizes,
                                    const std::vector<size_t>& order) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = stride;
    stride *= sizes[order[i]];
  }
  return strides;
}

TEST(SquaresCpu, TransposedInputsAreRightForAllSizesAndTypes) {
  for (const char* name : {"f32", "bf16", "f16", "f64", "i64", "i32", "u8", "i8"}) {
    const DType dtype = dtypeFromName(name).value();
    const std::string text =
        fmt::format("%x: {0}[n, m], %z: {0}[n, m]) {{ %y = maximum(%x, %z) return %y", name);
    for (const auto& [n, m] :
         {std::pair<int64_t, int64_t>{64, 128}, {16, 61}, {72, 136}, {65, 17}, {129, 201}}) {
      std::vector<Buffer> inputs = {{dtype, {n, m}, {1, n + 3}, 8}, {dtype, {n, m}}};
      EXPECT_TRUE(expectReference(text, inputs, {{"n", n}, {"m", m}})) << name << " " << n;
    }
  }
}

TEST(SquaresCpu, EveryPermutationOfFourAxesIsRight) {
  const std::vector<int64_t> sizes = {17, 3, 20, 18};
  const std::string text =
      fmt::format("%x: {0}, %z: {0}) {{ %y = sub(%x, %z) return %y", "f32[a, b, c, d]");
  std::vector<size_t> order = {0, 1, 2, 3};
  int64_t squares = 0;
  do {
    std::vector<Buffer> inputs = {{DType::F32, sizes, stridesInOrder(sizes, order)},
                                  {DType::F32, sizes}};
    squares += expectReference(text, inputs, {{"a", 17}, {"b", 3}, {"c", 20}, {"d", 18}});
  } while (std::next_permutation(order.begin(), order.end()));
  // No exchange is needed in the 6 orders that end with the last axis. The axis of 3 elements is
  // too short for a square, unless coalesce() merges it with the axis before it.
  EXPECT_GE(squares, 12);
}

TEST(SquaresCpu, PermutationsOfSixAxesAreRight) {
  const std::vector<int64_t> sizes = {2, 19, 3, 2, 2, 17};
  const SizeBindings bound = {{"a", 2}, {"b", 19}, {"c", 3}, {"d", 2}, {"e", 2}, {"f", 17}};
  std::vector<size_t> order = {0, 1, 2, 3, 4, 5};
  const std::string text =
      fmt::format("%x: {0}, %z: {0}) {{ %y = sub(%x, %z) return %y", "bf16[a, b, c, d, e, f]");
  for (int number = 0; std::next_permutation(order.begin(), order.end()); ++number) {
    if (number % 17 != 0) continue;
    std::vector<Buffer> inputs = {{DType::BF16, sizes, stridesInOrder(sizes, order)},
                                  {DType::BF16, sizes}};
    expectReference(text, inputs, bound);
  }
}

TEST(SquaresCpu, LargerBodiesWithBroadcastsAreRight) {
  const SizeBindings bound = {{"a", 3}, {"b", 40}, {"c", 2}, {"d", 72}};
  const std::vector<int64_t> sizes = {3, 40, 2, 72};
  // %x is contiguous along the second axis, %w and %v have fewer axes, and one body uses an index.
  const std::string text =
      "%x: bf16[a, b, c, d], %z: f32[a, b, c, d], %w: f32[d], %v: f32[b]) { %f = cast(%x, "
      "dtype=f32) %s = add(%f, %z) %p = broadcast(%w, axes=[0, 1, 2]) %q = broadcast(%v, axes=[0, "
      "2, 3]) %t = mul(%s, %p) %i = iota(sizes=[d], axis=0) %j = cast(%i, dtype=f32) %k = "
      "broadcast(%j, axes=[0, 1, 2]) %u = sub(%t, %q) %y = add(%u, %k) %g = cast(%y, dtype=bf16) "
      "return %y, %g";
  std::vector<Buffer> inputs = {{DType::BF16, sizes, {5760, 1, 2880, 40}},
                                {DType::F32, sizes},
                                {DType::F32, {72}, {2}},
                                {DType::F32, {40}}};
  EXPECT_TRUE(expectReference(text, inputs, bound));
}

TEST(SquaresCpu, SeveralInputsAreExchanged) {
  const std::string text =
      "%x: f32[a, b], %z: bf16[a, b]) { %f = cast(%z, dtype=f32) %y = sub(%x, %f) return %y";
  std::vector<Buffer> inputs = {{DType::F32, {148, 40}, {1, 148}},
                                {DType::BF16, {148, 40}, {1, 150}}};
  EXPECT_TRUE(expectReference(text, inputs, {{"a", 148}, {"b", 40}}));
}

TEST(SquaresCpu, TransposedOutputsAreRight) {
  std::vector<Buffer> inputs = {{DType::F32, {70, 90}}};
  EXPECT_TRUE(expectReference("%x: f32[n, m]) { %y = neg(%x) return %y", inputs,
                              {{"n", 70}, {"m", 90}}, {{1, 70}}));
}

TEST(SquaresCpu, OutputMayBeTheInputThatIsNotExchanged) {
  const Fusion fusion = parseFusion(
      "heddle 1 fusion f(%x: f32[n, m], %z: f32[n, m]) { %y = sub(%x, %z) return %y }", "f");
  Buffer x(DType::F32, {100, 70}, {1, 100});
  Buffer z(DType::F32, {100, 70});
  x.fill(1);
  z.fill(2);
  Buffer before = z;
  CpuKernels::shared().run(fusion, {&x, &z}, {&z});
  z.forEach([&](const std::vector<int64_t>& i) { ASSERT_EQ(z.at(i), x.at(i) - before.at(i)); });
}

TEST(SquaresCpu, EmptyTensorsLaunchNothing) {
  std::vector<Buffer> inputs = {{DType::F32, {0, 64, 64}, {4096, 1, 64}}};
  EXPECT_FALSE(expectReference("%x: f32[a, b, c]) { %y = neg(%x) return %y", inputs,
                               {{"a", 0}, {"b", 64}, {"c", 64}}));
}

TEST(SquaresCpu, AllSizesShareOneSource) {
  const std::string text = "%x: f32[n, m]) { %y = abs(%x) return %y";
  std::set<std::string> sources;
  for (const int64_t n : {32, 64, 199}) {
    std::vector<Buffer> inputs = {{DType::F32, {n, 80}, {1, n}}};
    const KernelPlan plan = runAgainstReference(text, inputs, {{"n", n}, {"m", 80}});
    EXPECT_TRUE(isOfSquares(plan));
    sources.insert(plan.source.text);
  }
  EXPECT_EQ(sources.size(), 1u);
}

}  // namespace
}  // namespace heddle::codegen::squares_cpu_test
