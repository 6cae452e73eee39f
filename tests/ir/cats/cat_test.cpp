#include "ir/cats/cat.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/base/check.h"
#include "ir/text/fusion_text.h"

namespace heddle::cat_test {
namespace {

// Returns the cats as text: the result, the axis, and each piece with its range.
std::string catsIn(const std::string& body) {
  const Fusion fusion = parseFusion("heddle 1\nfusion f" + body);
  std::string text;
  for (const Cat& cat : catsOf(fusion)) {
    text += fmt::format("{} along {}:", fusion.value(cat.result).name, cat.axis);
    for (const Cat::Piece& piece : cat.pieces) {
      text += fmt::format(" {} [{}, {})", fusion.value(piece.value).name, piece.start.str(),
                          piece.stop.str());
    }
    text += "\n";
  }
  return text;
}

TEST(CatsOf, FindsThePiecesOfACatInOrder) {
  EXPECT_EQ(catsIn("(%a: f32[2, 3], %b: f32[2, 1], %c: f32[2, 4]) {\n"
                   "  %y = cat(%a, %b, %c, axis=1)\n  return %y\n}\n"),
            "y along 1: a [0, 3) b [3, 4) c [4, 8)\n");
  EXPECT_EQ(catsIn("(%a: f32[n, 3], %b: f32[m, 3]) {\n"
                   "  %y = cat(%a, %b, %a, axis=0)\n  return %y\n}\n"),
            "y along 0: a [0, n) b [n, n + m) a [n + m, n + m + n)\n");
}

TEST(CatsOf, FindsVectorsAndEmptyPieces) {
  EXPECT_EQ(catsIn("(%a: f32[2], %b: f32[0], %c: f32[n]) {\n"
                   "  %y = cat(%a, %b, axis=0)\n  %z = cat(%b, %c, axis=0)\n"
                   "  return %y, %z\n}\n"),
            "y along 0: a [0, 2) b [2, 2)\nz along 0: b [0, 0) c [0, n)\n");
}

TEST(CatsOf, FindsACatOfACat) {
  EXPECT_EQ(catsIn("(%a: f32[2, 3], %b: f32[2, 3]) {\n"
                   "  %y = cat(%a, %b, axis=1)\n  %z = cat(%y, %y, axis=0)\n  return %z\n}\n"),
            "y along 1: a [0, 3) b [3, 6)\nz along 0: y [0, 2) y [2, 4)\n");
}

// The parts of the text of cat(%a, %b, axis=1) that a test may change. The two pieces have three
// columns each.
struct Written {
  const char* end = "3";
  const char* low = "3";
  const char* high = "0";
  const char* compare = "lt";
  const char* piece = "f32[2, 3]";
  const char* returned = "";
};
std::string catsIn(const Written& x) {
  return catsIn(
      fmt::format("(%a: f32[2, 3], %b: {}) {{\n"
                  "  %i = iota(sizes=[6], axis=0)\n  %j = broadcast(%i, axes=[0])\n"
                  "  %m = {}(%j, {})\n"
                  "  %p = pad(%a, 0.5, lows=[0, 0], highs=[0, 3])\n"
                  "  %q = pad(%b, 0.5, lows=[0, {}], highs=[0, {}])\n"
                  "  %y = where(%m, %p, %q)\n  return %y{}\n}}\n",
                  x.piece, x.compare, x.end, x.low, x.high, x.returned));
}

TEST(CatsOf, OtherSelectionsAreNotCats) {
  EXPECT_EQ(catsIn(Written{}), "y along 1: a [0, 3) b [3, 6)\n");
  EXPECT_EQ(catsIn(Written{.end = "2"}), "");
  EXPECT_EQ(catsIn(Written{.end = "4"}), "");
  EXPECT_EQ(catsIn(Written{.low = "2", .high = "1"}), "");
  EXPECT_EQ(catsIn(Written{.compare = "le"}), "");
  EXPECT_EQ(catsIn(Written{.piece = "f16[2, 3]"}), "");
  EXPECT_EQ(catsIn(Written{.piece = "f32[broadcast(1), 3]"}), "");
}

// If the fusion also returns the intermediate value %p or %m, this value must be computed, and
// there is no cat. A piece such as %a may have other uses.
TEST(CatsOf, IntermediateValuesAreReadNowhereElse) {
  EXPECT_EQ(catsIn(Written{.returned = ", %p"}), "");
  EXPECT_EQ(catsIn(Written{.returned = ", %m"}), "");
  EXPECT_EQ(catsIn(Written{.returned = ", %a"}), "y along 1: a [0, 3) b [3, 6)\n");
}

}  // namespace
}  // namespace heddle::cat_test
