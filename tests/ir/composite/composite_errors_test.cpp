// Tests errors of composite ops that no text of a fusion can show. tests/text/verify contains the
// other errors (op_*.txt).
#include <gtest/gtest.h>

#include "ir/base/error.h"
#include "ir/composite/composite.h"
#include "ir/graph/verify.h"
#include "ir/text/fusion_text.h"

namespace heddle::composite_errors_test {
namespace {

// If the builder refuses a size as a number, a run that binds a symbol to this number is refused
// too.
TEST(CompositeErrors, SizesBoundByARunAreChecked) {
  const auto bound = [](const std::string& call, int64_t t, const std::string& names = "%r") {
    const Fusion fusion = parseFusion("heddle 1 fusion f(%x: f32[2, t], %m: f32[2]) { " + names +
                                      " = " + call + " return %r }");
    std::string message = "no error";
    try {
      bindSizes(fusion, {{2, t}, {2}});
    } catch (const UserError& error) {
      message = error.what();
    }
    const size_t at = message.find(" at line 1");
    return at == std::string::npos ? message : message.erase(at, 10);
  };
  EXPECT_EQ(bound("rope(%x)", 5),
            "rope: axis 1 of %x: f32[2, t] must have an even extent: t % 2 is 1, expected 0");
  EXPECT_EQ(bound("rope(%x)", 6), "no error");
  EXPECT_EQ(bound("glu(%x)", 3),
            "glu: axis 1 of %x: f32[2, t] must have an even extent: t % 2 is 1, expected 0");
  EXPECT_EQ(bound("topk(%x, k=3)", 2, "%r, %i"),
            "topk: axis 1 of %x: f32[2, t] must have k=3 elements or more: min(t, 3) is 2, "
            "expected 3");
  EXPECT_EQ(bound("topk(%x, k=3)", 3, "%r, %i"), "no error");
  EXPECT_EQ(bound("argmax(%x, axis=1)", 0),
            "argmax: %x: f32[2, t] must have elements along axis 1: min(t, 1) is 0, expected 1");
  EXPECT_EQ(bound("argmin(%x)", 0),
            "argmin: %x: f32[2, t] must have elements along axis 0: min(2*t, 1) is 0, expected 1");
  EXPECT_EQ(
      bound("permute(%x, axes=[1, 0]) %r, %p, %q = batch_norm(%y, %m, %m)", 1, "%y"),
      "batch_norm: %y: f32[t, 2] must not have one element per channel, t: min(t, 2) % 2 is 1, "
      "expected 0 (t = 1 is axis 1 of %x)");
  EXPECT_EQ(bound("permute(%x, axes=[1, 0]) %r, %p, %q = batch_norm(%y, %m, %m)", 2, "%y"),
            "no error");
}

TEST(CompositeErrors, JoiningNothingIsRefused) {
  for (const std::string op : {"cat", "stack"}) {
    FusionBuilder b;
    try {
      op == "cat" ? cat(b, {}) : stack(b, {});
      ADD_FAILURE() << op << " of nothing";
    } catch (const UserError& error) {
      EXPECT_EQ(error.what(), op + ": expected at least one tensor");
    }
  }
}

}  // namespace
}  // namespace heddle::composite_errors_test
