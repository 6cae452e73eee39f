#include "ir/segment/segment.h"

#include <gtest/gtest.h>

#include "ir/graph/builder.h"
#include "tests/sanitized.h"

namespace heddle::segment_test {
namespace {

TEST(Segment, GroupsOfTenThousandExpressionsHaveBoundedSize) {
  FusionBuilder b("chain");
  ValueId x = b.input("x", DType::F32, {Size::symbol("n")});
  ValueId v = x;
  constexpr size_t kOps = heddle::testing::casesOf<size_t>(10'000, 600);
  for (size_t i = 0; i < kOps; ++i) v = b.pointwise("add", {v, x});
  b.output(v);
  Fusion fusion = std::move(b).build();
  SegmentedFusion segmented = segment(fusion);
  EXPECT_EQ(segmented.groups.size(), (kOps + 255) / 256);
  ASSERT_FALSE(segmented.groups[0].cuts.empty());
  EXPECT_NE(segmented.groups[0].cuts[0].why.find("the group is full"), std::string::npos);
  SegmentedFusion again = segment(fusion);
  EXPECT_EQ(again.group_of, segmented.group_of);
  EXPECT_EQ(dumpText(again), dumpText(segmented));
}

}  // namespace
}  // namespace heddle::segment_test
