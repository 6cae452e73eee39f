#include "ir/base/id.h"

#include <gtest/gtest.h>

#include <concepts>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <unordered_set>

#include "ir/base/check.h"

namespace heddle::id_test {
namespace {

using AppleId = Id<struct AppleTag>;
using PearId = Id<struct PearTag>;

static_assert(sizeof(AppleId) == sizeof(int32_t) && std::is_trivially_copyable_v<AppleId>);
static_assert(!std::is_convertible_v<int, AppleId> && !std::is_convertible_v<AppleId, int>);
static_assert(!std::is_constructible_v<AppleId, PearId>);
static_assert(!std::is_assignable_v<AppleId&, PearId>);
static_assert(!std::equality_comparable_with<AppleId, PearId>);

template <class List, class Key>
concept IsIndexedBy = requires(List list, Key key) {
  list[key];
};
static_assert(IsIndexedBy<IdVector<AppleId, int>, AppleId>);
static_assert(!IsIndexedBy<IdVector<AppleId, int>, PearId>);
static_assert(!IsIndexedBy<IdVector<AppleId, int>, size_t>);

template <class Range>
std::vector<int32_t> numbersOf(const Range& range) {
  std::vector<int32_t> numbers;
  for (AppleId id : range) numbers.push_back(id.number());
  return numbers;
}

TEST(Id, DefaultIdNamesNothing) {
  EXPECT_FALSE(AppleId().valid());
  EXPECT_EQ(AppleId(), AppleId(-1));
  EXPECT_TRUE(AppleId(0).valid());
  EXPECT_EQ(AppleId(size_t{7}).index(), 7u);
}

TEST(Id, OrdersHashesAndPrintsByNumber) {
  EXPECT_LT(AppleId(), AppleId(0));
  EXPECT_LT(AppleId(2), AppleId(10));
  EXPECT_NE(AppleId(2), AppleId(10));
  const std::unordered_set<AppleId> set = {AppleId(3), AppleId(4), AppleId(3)};
  EXPECT_EQ(set.size(), 2u);
  EXPECT_EQ(fmt::format("{} {} {:03}", AppleId(12), AppleId(), AppleId(5)), "12 -1 005");
}

TEST(IdVector, PushBackReturnsTheIdOfTheElement) {
  IdVector<AppleId, std::string> names;
  EXPECT_EQ(names.endId(), AppleId(0));
  const AppleId first = names.push_back("a");
  const AppleId second = names.emplace_back(2, 'b');
  EXPECT_EQ(first, AppleId(0));
  EXPECT_EQ(second, AppleId(1));
  EXPECT_EQ(names[second], "bb");
  names[first] = "c";
  EXPECT_EQ(names.at(first), "c");
  EXPECT_EQ(names, (IdVector<AppleId, std::string>{"c", "bb"}));
}

TEST(IdVector, HoldsElementsThatOnlyMove) {
  IdVector<AppleId, std::unique_ptr<int>> list;
  EXPECT_EQ(*list[list.push_back(std::make_unique<int>(3))], 3);
}

TEST(IdVector, AtRefusesIdsThatNameNoElement) {
  IdVector<AppleId, int> list(2, 5);
  EXPECT_TRUE(list.has(AppleId(1)));
  EXPECT_FALSE(list.has(AppleId(2)));
  EXPECT_FALSE(list.has(AppleId()));
  EXPECT_THROW(list.at(AppleId(2)), std::out_of_range);
  EXPECT_THROW(list.at(AppleId()), std::out_of_range);
}

TEST(IdVector, IdsRunForwardAndBackward) {
  const IdVector<AppleId, bool> list(3, true);
  EXPECT_EQ(numbersOf(list.ids()), (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(numbersOf(list.ids().reversed()), (std::vector<int32_t>{2, 1, 0}));
  EXPECT_EQ(numbersOf(IdRange(AppleId(1), list.endId())), (std::vector<int32_t>{1, 2}));
  EXPECT_TRUE(numbersOf(IdVector<AppleId, bool>().ids().reversed()).empty());
}

}  // namespace
}  // namespace heddle::id_test
