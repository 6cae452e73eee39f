// Tests how the command compares outputs with the reference.
#include <utility>
#include <vector>

#include "tests/tools/cli.h"

namespace heddle::tools::check_cpu_test {
namespace {

class Check : public Cli {
 protected:
  // Runs a fusion with --check and returns the text that the command prints.
  std::string textOf(const std::string& fusion, const std::string& options, int code) {
    const CliResult result =
        heddle("run " + write("f.fusion", fusion) + " --device cpu " + options);
    EXPECT_EQ(result.code, code) << result.text;
    return result.text;
  }
};

void expectText(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

constexpr const char* kTwoOutputs =
    "heddle 1 fusion f(%x: f32[60, 50]) { %y = softmax(%x) %z = sum(%x, axes=[0]) return %y, %z }";

TEST_F(Check, FullCheckInSlicesComparesEveryElement) {
  const std::string text = textOf(kTwoOutputs, "--check=full --check-memory 4096", 0);
  expectText(text, "%y right in 3000 elements");
  expectText(text, "%z right in 50 elements");
  expectText(text, "comparing 150 of 3000 elements of %y with the reference");
}

TEST_F(Check, WrongElementIsFoundInAnySlice) {
  const std::string reference = write(
      "reference.fusion",
      "heddle 1 fusion f(%x: f32[60, 50]) { %i = iota(sizes=[60, 50], axis=0) %j = iota(sizes=[60, "
      "50], axis=1) %a = eq(%i, 41) %b = eq(%j, 7) %c = logical_and(%a, %b) %s = softmax(%x) "
      "%t = add(%s, 1.0) %y = where(%c, %t, %s) %z = sum(%x, axes=[0]) return %y, %z }");
  for (const char* memory : {"2e9", "4096"}) {
    const std::string text = textOf(
        kTwoOutputs,
        "--check=full --reference " + reference + " --check-memory " + std::string(memory), 1);
    expectText(text, "%y WRONG in 1 of 3000 elements; [41, 7]:");
    expectText(text, "%z right in 50 elements");
  }
}

TEST_F(Check, SampleSaysWhatItCompares) {
  const std::string text =
      textOf("heddle 1 fusion f(%x: f32[300, 400]) { %y = neg(%x) return %y }", "--check", 0);
  expectText(text, "of 120000 elements of %y with the reference");
}

// Without a value of the scalar, and with a value that the default of the size replaces.
TEST_F(Check, DefaultOfASizeIsTheValueOfItsScalar) {
  for (const std::string scalar : {"%n: i64", "%n: i64 = 2"}) {
    const std::string text = textOf("heddle 1 fusion f(%x: f32[a], " + scalar +
                                        ") with a = 6, %n = 3 { %y = reshape(%x, sizes=[%n, -1]) "
                                        "return %y }",
                                    "--check=full", 0);
    expectText(text, "%y right in 6 elements");
  }
}

// The gradient of x is zero except for rounding, because the two elements of a row are normalized
// to 1 and -1. No device computes it with a small relative error.
TEST_F(Check, SmallDifferencesOfLargeTermsAreRight) {
  textOf(
      "heddle 1 fusion f(%dy: f32[64, 2], %x: f32[64, 2], %w: f32[2]) {"
      "%dx, %dw, %db = layer_norm_backward(%dy, %x, %w) return %dx, %dw, %db }",
      "--check=full", 0);
}

// The variance of equal elements is zero except for the rounding of their mean. All additions of a
// sum of equal elements round in the same direction.
TEST_F(Check, VariancesOfEqualElementsAreRight) {
  for (const std::string dtype : {"f32", "f64"}) {
    for (const std::string value : {"0.1", "1000.1"}) {
      textOf("heddle 1 fusion f() with n = 100000 { %c = full(" + value +
                 ", sizes=[n], dtype=" + dtype + ") %v = var(%c) return %v }",
             "--check=full", 0);
    }
  }
}

// The additions of a matrix product of equal elements round in the same direction, and so do the
// multiplications of equal factors.
TEST_F(Check, RoundingOfEqualElementsIsRight) {
  textOf(
      "heddle 1 fusion f() with k = 100000 { %a = full(0.1, sizes=[4, k], dtype=f32)"
      "%b = full(0.3, sizes=[k, 4], dtype=f32) %m = matmul(%a, %b) %y = sub(%m, 3000.0)"
      "return %y }",
      "--check=full", 0);
  textOf(
      "heddle 1 fusion f() with k = 1000000 { %a = full(1.00001, sizes=[k], dtype=f32)"
      "%p = prod(%a) %y = sub(%p, 22077.0) return %p, %y }",
      "--check=full", 0);
}

// The larger bounds for equal elements must not hide an error of a few parts in 10000.
TEST_F(Check, WrongMatmulOfEqualElementsIsFound) {
  const std::string head =
      "heddle 1 fusion f() with k = 100000 { %a = full(0.1, sizes=[4, k], dtype=f32)"
      "%b = full(0.3, sizes=[k, 4], dtype=f32) %m = matmul(%a, %b) ";
  const std::string reference =
      write("reference.fusion", head + "%n = mul(%m, 1.0003) %y = sub(%n, 3000.0) return %y }");
  const std::string text =
      textOf(head + "%y = sub(%m, 3000.0) return %y }", "--check=full --reference " + reference, 1);
  expectText(text, "%y WRONG in 16 of 16 elements");
}

// The exact sum is 1, but rounding errors of these large terms hide it in every order of f32
// additions.
TEST_F(Check, SumWhoseTermsCancelIsRightWithinTheRoundingOfItsTerms) {
  std::vector<float> values;
  for (int i = 0; i < 500; ++i) values.push_back(1e8f + static_cast<float>(i * 1001));
  for (int i = 0; i < 500; ++i) values.push_back(-1e8f - static_cast<float>(i * 1001));
  values.push_back(1);
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1001,), }";
  header.resize(117, ' ');
  std::string bytes("\x93NUMPY\x01\x00\x76\x00", 10);
  bytes += header + '\n';
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  const std::string npy = write("x.npy", bytes);
  textOf("heddle 1 fusion f(%x: f32[1001]) { %y = sum(%x) return %y }",
         "--check=full --input x=" + npy, 0);
}

TEST_F(Check, WrongResultsOfNarrowTypesAreFound) {
  const std::pair<const char*, const char*> cases[] = {{"bf16", "mul(%x, 1.08)"},
                                                       {"f16", "mul(%x, 1.02)"},
                                                       {"f8e4m3", "neg(%x)"},
                                                       {"f8e5m2", "neg(%x)"},
                                                       {"f8e5m2", "mul(%x, 0.0)"}};
  for (const auto& [dtype, wrong] : cases) {
    const std::string head = "heddle 1 fusion f(%x: f32[64]) { ";
    const std::string tail = std::string(", dtype=") + dtype + ") return %y }";
    const std::string reference = write("reference.fusion", head + "%y = cast(%x" + tail);
    const std::string text = textOf(head + "%a = " + wrong + " %y = cast(%a" + tail,
                                    "--check=full --reference " + reference, 1);
    expectText(text, "%y WRONG");
  }
}

TEST_F(Check, StridedSlicesOfOneInputAreChecked) {
  textOf(
      "heddle 1 fusion f(%x: f32[400000]) {"
      "%a = slice(%x, starts=[0], stops=[400000], steps=[2])"
      "%b = slice(%x, starts=[1], stops=[400000], steps=[2])"
      "%c = mul(%a, %b) %y = sum(%c) return %y }",
      "--check", 0);
}

}  // namespace
}  // namespace heddle::tools::check_cpu_test
