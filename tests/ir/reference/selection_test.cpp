#include "ir/reference/selection.h"

#include <gtest/gtest.h>

#include "ir/base/error.h"

namespace heddle::selection_test {
namespace {

IndexSet setOf(std::initializer_list<IndexRange> ranges) {
  IndexSet set;
  for (const IndexRange& range : ranges) set.add(range);
  return set;
}

// Returns a tensor in which each element has its row-major index as its value.
HostTensor counting(std::vector<int64_t> sizes) {
  HostTensor tensor(DType::I64, std::move(sizes));
  for (int64_t i = 0; i < tensor.numel(); ++i) tensor.as<int64_t>()[i] = i;
  return tensor;
}

std::vector<int64_t> valuesOf(const HostTensor& tensor) {
  return {tensor.as<int64_t>(), tensor.as<int64_t>() + tensor.numel()};
}

TEST(SelectionIndexSet, RangesMergeIfTheyTouch) {
  IndexSet set = setOf({{4, 6}, {0, 2}, {2, 3}, {9, 9}});
  EXPECT_EQ(set.ranges(), (std::vector<IndexRange>{{0, 3}, {4, 6}}));
  set.add(setOf({{3, 4}, {8, 10}}));
  EXPECT_EQ(set.ranges(), (std::vector<IndexRange>{{0, 6}, {8, 10}}));
  EXPECT_EQ(set.count(), 8);
  EXPECT_EQ(IndexSet::of({9, 1, 0, 9}).indices(), (std::vector<int64_t>{0, 1, 9}));
}

TEST(Selection, ElementsOfCombineTheIndicesOfAllAxes) {
  const HostTensor whole = counting({3, 2, 5});
  const Selection all = Selection::all(whole.sizes);
  const Selection some{{setOf({{0, 1}, {2, 3}}), setOf({{1, 2}}), setOf({{0, 2}, {4, 5}})}};
  const HostTensor part = elementsOf(whole, all, some);
  EXPECT_EQ(part.sizes, (std::vector<int64_t>{2, 1, 3}));
  EXPECT_EQ(valuesOf(part), (std::vector<int64_t>{5, 6, 9, 25, 26, 29}));
  const Selection fewer{{setOf({{2, 3}}), setOf({{1, 2}}), setOf({{1, 2}, {4, 5}})}};
  EXPECT_EQ(valuesOf(elementsOf(part, some, fewer)), (std::vector<int64_t>{26, 29}));
  EXPECT_EQ(elementsOf(part, some, some).data, part.data);
  const Selection outside{{setOf({{1, 2}}), setOf({{1, 2}}), setOf({{0, 1}})}};
  EXPECT_THROW(elementsOf(part, some, outside), InternalError);
}

TEST(Selection, ScalarsAndEmptySelectionsHaveNoAxesOrNoElements) {
  EXPECT_EQ(valuesOf(elementsOf(counting({}), Selection{}, Selection{})),
            (std::vector<int64_t>{0}));
  const HostTensor whole = counting({2, 3});
  const Selection none{{IndexSet(), setOf({{0, 2}})}};
  EXPECT_EQ(elementsOf(whole, Selection::all(whole.sizes), none).sizes,
            (std::vector<int64_t>{0, 2}));
}

}  // namespace
}  // namespace heddle::selection_test
