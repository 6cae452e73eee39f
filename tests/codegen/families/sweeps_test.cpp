// Tests what each segment of a divided segment stores. The tests compile nothing.
#include "codegen/families/sweeps.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "ir/text/fusion_text.h"

namespace heddle::codegen::sweeps_test {
namespace {

struct Divided {
  Fusion segment;
  Sweeps sweeps;

  // Returns the index of the last segment that reads the input.
  int lastReader(size_t input) const {
    int last = -1;
    for (size_t i = 0; i < sweeps.segments.size(); ++i) {
      for (const SweepSegment::Operand& operand : sweeps.segments[i].inputs) {
        if (operand.operand == static_cast<int>(input)) last = static_cast<int>(i);
      }
    }
    return last;
  }

  // Returns the index of the segment that stores the output.
  int writer(size_t output) const {
    const int operand = static_cast<int>(segment.inputs().size() + output);
    for (size_t i = 0; i < sweeps.segments.size(); ++i) {
      for (const SweepSegment::Operand& stored : sweeps.segments[i].outputs) {
        if (stored.operand == operand) return static_cast<int>(i);
      }
    }
    return -1;
  }

  // Returns the names of the values that are temporaries.
  std::string temporaries() const {
    std::string names;
    for (ValueId id : sweeps.temporary_values) names += segment.value(id).name + " ";
    return names;
  }
};

// `text` has the inputs %x: f32[n, c] and %m: f32[c].
Divided divide(const std::string& text) {
  Divided divided{
      parseFusion(fmt::format("heddle 1 fusion f(%x: f32[n, c], %m: f32[c]) {{ {} }}", text), "f"),
      {}};
  std::vector<TensorDesc> inputs{denseDesc(DType::F32, {1000, 8}), denseDesc(DType::F32, {8})};
  std::vector<TensorDesc> outputs;
  for (ValueId id : divided.segment.outputs()) {
    const bool is_row = divided.segment.tensor(id).rank() == 2;
    outputs.push_back(is_row ? inputs[0] : inputs[1]);
  }
  const Analysis analysis = analyze(divided.segment);
  const AxisExtents extents = axisExtents(divided.segment, analysis, inputs, outputs, {});
  divided.sweeps = divideIntoSweeps(divided.segment, analysis, extents);
  return divided;
}

TEST(Sweeps, ReductionsAlsoComputeTheValuesPerRow) {
  const Divided divided = divide(
      "%s = sum(%x, axes=[0]) %a = mul(%s, 0.001) %r = sqrt(%a) %b = broadcast(%r, axes=[0]) "
      "%y = sub(%x, %b) %new = add(%a, %m) return %y, %new");
  EXPECT_EQ(divided.sweeps.segments.size(), 2u);
  EXPECT_EQ(divided.writer(1), 0);
  EXPECT_EQ(divided.writer(0), 1);
  EXPECT_EQ(divided.sweeps.temporaries.size(), 1u) << divided.temporaries();
}

// %new may have the memory of %m.
TEST(Sweeps, NoSegmentReadsAnInputAfterAnOutputThatDependsOnIt) {
  const Divided divided = divide(
      "%s = sum(%x, axes=[0]) %new = add(%s, %m) %b = broadcast(%s, axes=[0]) %d = sub(%x, %b) "
      "%q = mul(%d, %d) %v = sum(%q, axes=[0]) %other = mul(%v, %m) return %new, %other");
  EXPECT_LE(divided.lastReader(1), divided.writer(0));
}

// %new and %other are stored together, because both depend on %m, and %new may have its memory.
TEST(Sweeps, ValuesThatDependOnTheSameInputPerRowAreStoredTogether) {
  const Divided divided = divide(
      "%s = sum(%x, axes=[0]) %new = add(%m, %s) %other = tanh(%m) %b = broadcast(%s, axes=[0]) "
      "%y = mul(%x, %b) %both = add(%other, %new) return %new, %other, %y, %both");
  EXPECT_EQ(divided.writer(0), divided.writer(1));
  EXPECT_EQ(divided.writer(0), divided.writer(3));
  EXPECT_LE(divided.lastReader(1), divided.writer(0));
}

TEST(Sweeps, AnOutputThatLaterSegmentsNeedIsStoredWithItsReduction) {
  const Divided divided = divide(
      "%s = sum(%x, axes=[0]) %new = add(%s, %m) %b = broadcast(%new, axes=[0]) %y = sub(%x, %b) "
      "return %y, %new");
  EXPECT_EQ(divided.sweeps.segments.size(), 2u);
  EXPECT_EQ(divided.writer(1), 0);
}

}  // namespace
}  // namespace heddle::codegen::sweeps_test
