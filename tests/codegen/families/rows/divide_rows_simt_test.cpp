// Runs CUDA kernels whose blocks share rows (codegen/tile/divided_rows.h) on the host, and compares
// them with the reference evaluator.
#include <set>

#include "tests/codegen/simt/simt_cases.h"

namespace heddle::codegen::divide_rows_simt_test {
namespace {

using testing::Cases;
using testing::Layout;

constexpr double kRoundings = 64;

KernelChoice divided(int64_t threads, int64_t parts) {
  return {"divided", {{"threads", threads}, {"parts", parts}}};
}

void add(Cases& cases, const std::string& text, const std::vector<Layout>& layouts,
         const SizeBindings& sizes, int64_t parts, int64_t threads = 64, int64_t output_shift = 0) {
  const KernelChoice choice = divided(threads, parts);
  cases.add(text, layouts, sizes, {}, output_shift, &choice);
  EXPECT_EQ(cases.candidate(cases.size() - 1).family, "divided") << text;
}

std::string softmax(const std::string& dtype) {
  return fmt::format("%x: {}[n, m]) {{ %y = softmax(%x, axis=-1) return %y", dtype);
}

// A kernel must give the right result for every number of blocks that run at the same time.
void expectRightOnAnyGrid(Cases& cases, double roundings = kRoundings) {
  cases.compile();
  for (size_t i = 0; i < cases.size(); ++i) {
    for (const int at_once : {1, 2, 5}) {
      EXPECT_EQ(cases.run(i, i + static_cast<size_t>(at_once), roundings, -1, at_once), "")
          << cases.name(i) << " with " << at_once << " blocks at once";
    }
  }
}

TEST(DivideRowsSimt, SoftmaxIsRightAtTheEdgesOfParts) {
  Cases cases;
  for (const int64_t m : {1, 7, 512, 513, 2048, 3000}) {
    for (const int64_t parts : {1, 2, 5}) {
      for (const char* dtype : {"f32", "bf16"}) {
        add(cases, softmax(dtype), {{{3, m}}}, {{"n", 3}, {"m", m}}, parts);
      }
    }
  }
  expectRightOnAnyGrid(cases);
}

// Rows have more parts than a block has threads, or more parts than vectors.
TEST(DivideRowsSimt, ManyPartsAreRight) {
  Cases cases;
  add(cases, softmax("f32"), {{{2, 1200}}}, {{"n", 2}, {"m", 1200}}, 150);
  add(cases, softmax("f64"), {{{3, 40}}}, {{"n", 3}, {"m", 40}}, 1000);
  add(cases, softmax("f32"), {{{1, 5000}}}, {{"n", 1}, {"m", 5000}}, 4, 512);
  expectRightOnAnyGrid(cases);
}

TEST(DivideRowsSimt, RowsAtUnalignedAddressesAreRight) {
  Cases cases;
  for (const int64_t m : {515, 1001, 2051}) {
    for (const char* dtype : {"f32", "bf16"}) {
      add(cases, softmax(dtype), {{{3, m}, {}, 1}}, {{"n", 3}, {"m", m}}, 3, 64, 3);
      add(cases, softmax(dtype), {{{3, m}, {m + 2, 1}}}, {{"n", 3}, {"m", m}}, 2);
    }
  }
  expectRightOnAnyGrid(cases);
}

// The second sum needs the first sum, and the output needs the second sum. There are outputs along
// the row and per row, and inputs per row.
TEST(DivideRowsSimt, SeveralPassesAndSeveralOutputsAreRight) {
  Cases cases;
  for (const char* dtype : {"f32", "bf16"}) {
    add(cases,
        fmt::format("%x: {0}[n, m], %z: {0}[n, m], %r: {0}[n]) {{ %s = max(%x, axes=[1]) %b = "
                    "broadcast(%s, axes=[1]) %d = sub(%b, %x) %e = mul(%d, %z) %t = min(%e, "
                    "axes=[1]) %c = broadcast(%t, axes=[1]) %f = maximum(%e, %c) %u = max(%f, "
                    "axes=[1]) %q = sub(%u, %r) %h = broadcast(%q, axes=[1]) %y = sub(%z, %h) "
                    "%w = sub(%f, %h) return %y, %s, %w, %q",
                    dtype),
        {{{4, 700}}, {{4, 700}, {703, 1}, 1}, {{4}}}, {{"n", 4}, {"m", 700}}, 3);
  }
  expectRightOnAnyGrid(cases, 0);
}

// All outputs have one element per row, so the last sweep reads nothing along the row.
TEST(DivideRowsSimt, OutputsPerRowAreRight) {
  Cases cases;
  add(cases,
      "%x: f32[n, m]) { %s = max(%x, axes=[1], keepdim=true) %d = sub(%x, %s) %q = mul(%d, %d) %v "
      "= max(%q, axes=[1]) return %v, %s",
      {{{5, 900}}}, {{"n", 5}, {"m", 900}}, 4);
  expectRightOnAnyGrid(cases, 0);
}

// The fusion resembles batch_norm. A row consists of two axes, one sweep computes a mean and a
// variance, and the parameters have one element per row.
TEST(DivideRowsSimt, RowsOfSeveralAxesAreRight) {
  Cases cases;
  for (const char* dtype : {"f32", "bf16"}) {
    add(cases,
        fmt::format("%x: {}[n, c, m], %g: f32[c]) {{ %f = cast(%x, dtype=f32) %s = sum(%f, "
                    "axes=[0, 2], keepdim=true) %a = mul(%s, 0.0006) %d = sub(%f, %a) %q = "
                    "mul(%d, %d) %v = sum(%q, axes=[0, 2], keepdim=true) %e = mul(%v, 0.0006) %r "
                    "= rsqrt(%e) %h = mul(%d, %r) %b = broadcast(%g, axes=[0, 2]) %y = mul(%h, "
                    "%b) return %y, %a, %r",
                    dtype),
        {{{6, 3, 272}}, {{3}}}, {{"n", 6}, {"c", 3}, {"m", 272}}, 5);
  }
  expectRightOnAnyGrid(cases, 256);
}

// Every run gives the same bits, although the blocks take their work in different orders.
TEST(DivideRowsSimt, TheOrderOfBlocksDoesNotChangeTheResult) {
  Cases cases;
  add(cases, softmax("f32"), {{{4, 3000}}}, {{"n", 4}, {"m", 3000}}, 6);
  cases.compile();
  std::set<std::vector<char>> results;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    EXPECT_EQ(cases.run(0, seed, kRoundings, -1, 1 + static_cast<int>(seed)), "") << seed;
    results.insert(cases.output(0).bytes);
  }
  EXPECT_EQ(results.size(), 1u);
}

// An output with one element per row may have the memory of an input with one element per row, even
// if the last sweep reads this input for each element of the row.
TEST(DivideRowsSimt, OutputsMayHaveTheMemoryOfInputs) {
  testing::SimtKernels kernels;
  const Fusion fusion = parseFusion(
      "heddle 1 fusion f(%x: f32[n, m], %r: f32[n]) { %s = max(%x, axes=[1]) %q = add(%s, %r) %b "
      "= broadcast(%q, axes=[1]) %y = sub(%x, %b) return %y, %q }",
      "f");
  testing::Buffer x(DType::F32, {5, 1000});
  testing::Buffer r(DType::F32, {5});
  x.fill(3);
  r.fill(4);
  ReferenceInputs inputs;
  inputs.tensors[fusion.inputs()[0]] = testing::valuesOf(x);
  inputs.tensors[fusion.inputs()[1]] = testing::valuesOf(r);
  const std::vector<HostTensor> wanted = evaluateReference(fusion, inputs, {{"n", 5}, {"m", 1000}});
  const KernelChoice choice = divided(64, 4);
  kernels.add(fusion, {&x, &r}, {&x, &r}, {}, &choice);
  kernels.compile();
  const std::vector<char> x_bytes = x.bytes;
  const std::vector<char> r_bytes = r.bytes;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    x.bytes = x_bytes;
    r.bytes = r_bytes;
    EXPECT_EQ(kernels.run(0, seed, -1, 4), "");
    EXPECT_EQ(Cases::difference(testing::valuesOf(x), wanted[0], 0), "") << seed;
    EXPECT_EQ(Cases::difference(testing::valuesOf(r), wanted[1], 0), "") << seed;
  }
}

TEST(DivideRowsSimt, ABlockNeedsEachOfItsBarriersAndWaits) {
  Cases cases;
  add(cases, softmax("f32"), {{{5, 2000}}}, {{"n", 5}, {"m", 2000}}, 4);
  expectRightOnAnyGrid(cases);
  const auto [first, end] = cases.barriers(0);
  EXPECT_EQ(end - first, 4);
  for (int barrier = first; barrier < end; ++barrier) {
    std::set<std::string> faults;
    for (uint64_t seed = 0; seed < 12; ++seed) {
      faults.insert(cases.run(0, seed, kRoundings, barrier, 4));
    }
    faults.erase("");
    EXPECT_FALSE(faults.empty()) << "without barrier " << barrier;
  }
}

}  // namespace
}  // namespace heddle::codegen::divide_rows_simt_test
