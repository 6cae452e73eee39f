// Runs CUDA kernels that load neighbouring elements at computed indices, and compares them with the
// reference evaluator.
#include "ir/base/check.h"
#include "tests/codegen/simt/simt_cases.h"

namespace heddle::codegen::windows_simt_test {
namespace {

using testing::Cases;
using testing::expectRight;
using testing::Layout;

constexpr const char* kDTypes[] = {"bf16", "f32", "i64", "f64", "f16", "u8", "bool"};

// A vector has 2 to 16 elements. Some extents are multiples of this number, some are not, and some
// are 0. The total extent is a multiple of 16, so that the rows of the result are aligned.
TEST(WindowsSimt, PiecesOfACatAreRight) {
  Cases cases;
  for (const std::vector<int64_t>& extents : std::vector<std::vector<int64_t>>{
           {16, 32}, {5, 40, 3}, {7, 1, 16, 9, 31}, {0, 24, 0, 8, 0}}) {
    int64_t total = 0;
    for (const int64_t extent : extents) total += extent;
    for (const char* dtype : kDTypes) {
      std::string inputs;
      std::string names;
      std::vector<Layout> dense;
      std::vector<Layout> shifted;
      for (size_t i = 0; i < extents.size(); ++i) {
        inputs += fmt::format("{}%x{}: {}[6, {}]", i == 0 ? "" : ", ", i, dtype, extents[i]);
        names += fmt::format("{}%x{}", i == 0 ? "" : ", ", i);
        dense.push_back({{6, extents[i]}});
        shifted.push_back({{6, extents[i]}, {extents[i] + 3, 1}, 1});
      }
      const std::string cat = inputs + ") { %c = cat(" + names + ", axis=1) ";
      const std::string chosen =
          fmt::format(", %o: {}[6, {}]) {{ %c = cat({}, axis=1) %r = maximum(%c, %o) return %r",
                      dtype, total, names);
      for (const std::vector<Layout>& layouts : {dense, shifted}) {
        cases.add(cat + "%r = maximum(%c, %c) return %r", layouts, {});
        cases.add(cat + "return %c", layouts, {});
        std::vector<Layout> more = layouts;
        more.push_back({{6, total}});
        cases.add(inputs + chosen, more, {});
      }
    }
  }
  expectRight(cases);
}

TEST(WindowsSimt, CatsAlongOtherAxesAreRight) {
  Cases cases;
  for (const int64_t m : {16, 37}) {
    cases.add(fmt::format("%x: bf16[3, {0}], %y: bf16[2, {0}], %z: bf16[4, {0}]) {{ %c = cat(%x, "
                          "%y, %z, axis=0) %r = neg(%c) return %r",
                          m),
              {{{3, m}}, {{2, m}}, {{4, m}}}, {});
  }
  expectRight(cases);
}

// The fill is 0, or a number that some types round.
TEST(WindowsSimt, PadsOfBothSignsAreRight) {
  Cases cases;
  for (const auto& [low, high] :
       std::vector<std::pair<int, int>>{{8, 8}, {3, 13}, {-5, 5}, {-8, -8}, {40, -32}, {-48, 64}}) {
    const std::string pads = fmt::format("lows=[1, {}], highs=[-1, {}]) ", low, high);
    for (const char* dtype : kDTypes) {
      for (const char* fill : {"", "0.3, ", "7, "}) {
        cases.add(fmt::format("%x: {}[4, 48]) {{ %p = pad(%x, {}{} %r = maximum(%p, %p) return %r",
                              dtype, fill, pads),
                  {{{4, 48}, {51, 1}, 1}}, {});
      }
    }
    cases.add(fmt::format("%x: f8e4m3[4, 48]) {{ %p = pad(%x, {} %r = cast(%p, dtype=f32) return "
                          "%r",
                          pads),
              {{{4, 48}}}, {});
  }
  expectRight(cases);
}

// A roll is a cat of two parts of the same rows.
TEST(WindowsSimt, RollsAreRight) {
  Cases cases;
  for (const int64_t shift : {3, 16, 45}) {
    const Layout last = {{5, shift}, {48, 1}, 48 - shift};
    const Layout first = {{5, 48 - shift}, {48, 1}};
    for (const char* dtype : kDTypes) {
      cases.add(fmt::format("%x: {0}[5, {1}], %y: {0}[5, {2}]) {{ %c = cat(%x, %y, axis=1) %r = "
                            "maximum(%c, %c) return %r",
                            dtype, shift, 48 - shift),
                {last, first}, {});
    }
  }
  expectRight(cases);
}

// Covers choices between two windows. The bounds include the ends of i64, where a difference
// overflows. If the fusion subtracts an index from a bound, the bound is smaller, so that this
// subtraction does not overflow.
TEST(WindowsSimt, ChoicesByComparisonsOfIndicesAreRight) {
  Cases cases;
  const std::string windows =
      "%p = pad(%x, lows=[0, 3], highs=[0, 5]) %q = pad(%z, lows=[0, 8], "
      "highs=[0, 0]) %i = iota(sizes=[4, 48], axis=1) ";
  for (const char* op : {"lt", "le", "gt", "ge", "eq"}) {
    for (const char* bound :
         {"0", "-1", "13", "16", "47", "9223372036854775807", "-9223372036854775807"}) {
      for (const char* operands : {"%i, %b", "%b, %i", "%s, %b", "%i, %s"}) {
        if (std::string(operands).find("%s") != std::string::npos &&
            std::string(bound).size() > 2) {
          continue;
        }
        cases.add(fmt::format("%x: bf16[4, 40], %z: bf16[4, 40]) {{ {} %b = full({}, sizes=[4, "
                              "48], dtype=i64) %s = sub(%b, %i) %c = {}({}) %w = where(%c, %p, "
                              "%q) %r = neg(%w) return %r",
                              windows, bound, op, operands),
                  {{{4, 40}}, {{4, 40}}}, {});
      }
    }
  }
  expectRight(cases);
}

// Two choices and a result use %p, so %p is a window of its own.
TEST(WindowsSimt, WindowsWithSeveralUsesAreRight) {
  Cases cases;
  cases.add(
      "%x: f32[4, 40], %z: f32[4, 40]) { %p = pad(%x, lows=[0, 3], highs=[0, 5]) %q = pad(%z, "
      "lows=[0, 8], highs=[0, 0]) %i = iota(sizes=[4, 48], axis=1) %c = lt(%i, 21) %w = where(%c, "
      "%p, %q) %v = where(%c, %q, %p) %s = sum(%w, axes=[1]) return %w, %v, %p, %s",
      {{{4, 40}}, {{4, 40}}}, {});
  cases.add(
      "%x: bf16[4, 40], %z: bf16[4, 40]) { %c = cat(%x, %z, axis=1) %s = sum(%c, axes=[1]) return "
      "%s",
      {{{4, 40}}, {{4, 40}}}, {});
  expectRight(cases, 4);
}

}  // namespace
}  // namespace heddle::codegen::windows_simt_test
