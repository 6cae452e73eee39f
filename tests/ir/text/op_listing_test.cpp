// Tests the list of ops, and that docs/ops.md equals the list.
#include "ir/text/op_listing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "ir/ops/op.h"

namespace heddle::op_listing_test {
namespace {

TEST(OpListing, EachOpHasItsOwnLine) {
  const std::string text = "\n" + listOps();
  for (const OpDef& op : opTable()) {
    EXPECT_NE(text.find("\n" + std::string(op.name) + " "), std::string::npos) << op.name;
  }
  EXPECT_GE(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')), opTable().size());
}

TEST(OpListing, OpsPageIsCurrent) {
  std::ifstream file("docs/ops.md");
  const std::string page{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_EQ(page, opsMarkdown()) << "create it again: heddle ops --markdown > docs/ops.md";
}

}  // namespace
}  // namespace heddle::op_listing_test
