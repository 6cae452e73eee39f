// Tests the limits of launches that independent kernels share. tests/text/segment/joins.txt shows
// the groups and the reasons.
#include "ir/segment/join_independent.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "ir/analysis/independent_parts.h"
#include "ir/base/check.h"
#include "ir/segment/segment.h"
#include "ir/text/fusion_text.h"

namespace heddle::join_independent_test {
namespace {

// Returns the number of parts of each kernel of a fusion, in the order of execution. A part is one
// of the independent kernels that share a launch.
std::vector<size_t> partsOf(const std::string& text) {
  std::vector<size_t> parts;
  const SegmentedFusion segmented = segment(parseFusion("heddle 1\nfusion f(" + text, "f"));
  for (const Group& group : segmented.groups) {
    if (group.kind == GroupKind::Kernel) parts.push_back(std::max<size_t>(1, group.parts.size()));
  }
  return parts;
}

std::string commas(size_t count, const std::string& item) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += (i > 0 ? ", " : "") + fmt::format(fmt::runtime(item), fmt::arg("i", i));
  }
  return text;
}

std::string lines(size_t count, const std::string& line) {
  std::string text;
  for (size_t i = 0; i < count; ++i)
    text += fmt::format(fmt::runtime(line), fmt::arg("i", i)) + "\n";
  return text;
}

TEST(JoinIndependent, LaunchHasAtMost256Parts) {
  const std::string text = commas(600, "%x{i}: f32[n{i}]") + ") {\n" +
                           lines(600, "%y{i} = exp(%x{i})") + "return " + commas(600, "%y{i}") +
                           " }";
  EXPECT_EQ(partsOf(text), (std::vector<size_t>{256, 256, 88}));
}

// The fusion has eight different bodies, and a launch has at most four. Each later kernel joins the
// launch that already contains its body.
TEST(JoinIndependent, LaunchHasAtMostFourBodies) {
  std::string body;
  const std::vector<std::string> ops = {"exp", "sin", "cos", "tanh", "neg", "abs", "relu", "sqrt"};
  for (size_t i = 0; i < 16; ++i) body += fmt::format("%y{0} = {1}(%x{0})\n", i, ops[i % 8]);
  const std::string text =
      commas(16, "%x{i}: f32[n{i}]") + ") {\n" + body + "return " + commas(16, "%y{i}") + " }";
  EXPECT_EQ(partsOf(text), (std::vector<size_t>{8, 8}));
}

// Each kernel stores a temporary that a matrix product reads. If all these kernels ran before the
// matrix products, all temporaries would be in memory at the same time.
TEST(JoinIndependent, FewTemporariesMoveForward) {
  const std::string text = commas(40, "%x{i}: f32[n, n]") + ") {\n" +
                           lines(40, "%y{i} = exp(%x{i})\n%z{i} = matmul(%y{i}, %y{i})") +
                           "return " + commas(40, "%z{i}") + " }";
  const std::vector<size_t> parts = partsOf(text);
  EXPECT_EQ(parts, (std::vector<size_t>{9, 9, 9, 9, 4}));
}

// The results of matrix products are freed one by one if the kernels that read them run one by one.
TEST(JoinIndependent, FewPartsReadResultsAndAllocate) {
  const std::string body = lines(20, "%p{i} = matmul(%x{i}, %x{i})\n") +
                           lines(20, "%q{i} = permute(%p{i}, axes=[1, 0])\n%y{i} = tanh(%q{i})");
  const std::string text = commas(20, "%x{i}: f32[n{i}, n{i}]") + ") {\n" + body + "return " +
                           commas(20, "%y{i}") + " }";
  for (size_t parts : partsOf(text)) EXPECT_LE(parts, kMostHeldParts);
}

TEST(JoinIndependent, UpdatesInPlaceShareOneLaunch) {
  const std::string text = commas(200, "%w{i}: f32[n{i}], %g{i}: f32[n{i}]") + ", %lr: f64) {\n" +
                           lines(200, "%s{i} = mul(%g{i}, %lr)\n%v{i} = sub(%w{i}, %s{i})") +
                           "return " + commas(200, "%v{i} in! %w{i}") + " }";
  EXPECT_EQ(partsOf(text), (std::vector<size_t>{200}));
}

TEST(JoinIndependent, PartsOfASegmentShareNoComputedValue) {
  const SegmentedFusion segmented = segment(
      parseFusion("heddle 1\nfusion f(%x: f32[n], %y: f32[m], %s: f32[]) {\n  %a = exp(%s)\n"
                  "  %b = mul(%x, %a)\n  %c = mul(%y, %a)\n  return %b, %c\n}\n",
                  "f"));
  for (const Group& group : segmented.groups) {
    const Fusion fusion = extract(segmented, group);
    EXPECT_EQ(independentParts(fusion).size(), std::max<size_t>(1, group.parts.size()))
        << print(fusion);
  }
}

}  // namespace
}  // namespace heddle::join_independent_test
