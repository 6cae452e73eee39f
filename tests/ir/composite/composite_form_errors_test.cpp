// Checks the error messages for wrong sizes, indices, dtypes and attention heads.
#include <gtest/gtest.h>

#include "ir/base/error.h"
#include "ir/composite/composite.h"
#include "ir/text/fusion_text.h"
#include "tests/ir/composite/refusal.h"

namespace heddle::composite_form_errors_test {
namespace {

struct Refusal {
  const char* call;
  const char* message;  // without its position in the text
};

std::string messageOf(const std::string& call) {
  return testing::refusalOf(
      "%x: f32[2, 6], %w: f32[6], %c: f32[4, 6, 3], %z: f32[], %b: bool[2, 6], %i: i64[2, 6], "
      "%n: i64[2], %g: i64[3, 1], %q: f8e4m3[2, 6], %s: i64, %f: f64, %a6: f32[2, 6, 4, 5], "
      "%a4: f32[2, 4, 3, 5], %a3: f32[2, 3, 3, 5], %m: f32[9, 2, 6, 4, 3], %p: f32[6, 3]",
      call);
}

TEST(CompositeFormErrors, WrongSizesAreRefused) {
  const Refusal refusals[] = {
      {"%r = zeros(sizes=[2, -1])", "zeros: the size of axis 1 is -1, expected 0 or more"},
      {"%r = ones(sizes=[-3])", "ones: the size of axis 0 is -3, expected 0 or more"},
      {"%r = eye(sizes=[-3])", "eye: the size of axis 0 is -3, expected 0 or more"},
      {"%r = full(1, sizes=[0, -3], dtype=f32)",
       "full: the size of axis 1 is -3, expected 0 or more"},
      {"%r = iota(sizes=[-3], axis=0)", "iota: the size of axis 0 is -3, expected 0 or more"},
      {"%r = iota(sizes=[], axis=0)", "iota: axis 0 is out of range for 0 axes"},
      {"%r = uniform(%s, %s, sizes=[2, -4])",
       "uniform: the size of axis 1 is -4, expected 0 or more"},
      {"%r = randint(%s, %s, sizes=[-4], high=3)",
       "randint: the size of axis 0 is -4, expected 0 or more"},
      {"%r = reshape(%x, sizes=[-2, -6])", "reshape: the size of axis 0 is -2, expected 0 or more"},
      {"%r = reshape(%x, sizes=[-1, -6])", "reshape: the size of axis 1 is -6, expected 0 or more"},
      {"%r = expand(%x, sizes=[6])", "expand: %x: f32[2, 6] has 2 axes, got 1 sizes"},
      {"%r = expand(%x, sizes=[-1, 2, 6])", "expand: the size of axis 0 is -1, expected 0 or more"},
      {"%r = expand(%x, sizes=[2, -2])", "expand: the size of axis 1 is -2, expected 0 or more"},
      {"%r = pad(%x, lows=[0], highs=[1])",
       "pad: %x: f32[2, 6] has 2 axes, got 1 lows and 1 highs"},
      {"%r = pad(%x, lows=[-3, 0], highs=[0, 0])",
       "pad: axis 0 of %x: f32[2, 6] is too short to remove 3 elements in front and 0 at the end"},
      {"%r = pad(%x, lows=[0, 0], highs=[0, 1], mode=reflect)",
       "pad: found mode=reflect, expected constant"},
      {"%r = broadcast(%x, axes=[0, 0])", "broadcast: axis 0 is listed twice"},
      {"%r = flip(%x, axes=[1, -1])", "flip: axis 1 is listed twice"},
      {"%r = flip(%z, axes=[0, -1])", "flip: axis 0 is listed twice"},
      {"%r = sum(%z, axes=[1])", "sum: axis 1 is out of range for 0 axes"},
      {"%r = cumsum(%z, axis=-2)", "cumsum: axis -2 is out of range for 0 axes"},
      {"%r = select(%z, axis=0, index=0)", "select: axis 0 is out of range for 0 axes"},
      {"%r = expand(%x, sizes=[2, 3])",
       "expand: axis 1 of %x: f32[2, 6] is not 1 and cannot become 3"},
      {"%r = full(%x, sizes=[2], dtype=f32)", "full: %x: f32[2, 6] is a tensor, expected a scalar"},
      {"%r = pad(%x, %z, lows=[0, 0], highs=[0, 1])",
       "pad: %z: f32[] is a tensor, expected a scalar"},
      {"%r = arange(stop=1e300)", "arange: 1e+300 elements are too many"},
      {"%r = argsort(%x, first=-1)", "argsort: first is -1, expected 0 or more"},
  };
  for (const Refusal& each : refusals) EXPECT_EQ(messageOf(each.call), each.message) << each.call;
}

TEST(CompositeFormErrors, WrongIndicesAreRefused) {
  const Refusal refusals[] = {
      {"%r = take_along_axis(%x, %n, axis=0)",
       "take_along_axis: %x: f32[2, 6] and its index %n: i64[2] differ in rank"},
      {"%r = take_along_axis(%x, %g, axis=1)",
       "take_along_axis: the index %g: i64[3, 1] is larger than %x: f32[2, 6] along axis 0"},
      {"%r = take_along_axis(%x, %b, axis=1)",
       "take_along_axis: the index %b: bool[2, 6] must be i64 or i32"},
      {"%r = scatter(%x, %g, %x, axis=0)",
       "scatter: the index %g: i64[3, 1] is larger than %x: f32[2, 6] along axis 0"},
      {"%y = zeros(sizes=[2, 3]) %r = scatter_add(%y, %i, %x, axis=0)",
       "scatter_add: the index %i: i64[2, 6] is larger than %y: f32[2, 3] along axis 1"},
      {"%r = scatter(%x, %g, %x, axis=0, stretch=true)",
       "scatter: shapes disagree, 2 and 3 (axis 0 of %x: f32[2, 6] and axis 0 of %g: i64[3, 1], "
       "operands of scatter)"},
      {"%r = scatter_add(%x, %n, %x, axis=0)",
       "scatter_add: %x: f32[2, 6], its index %n: i64[2] and its source %x: f32[2, 6] differ in "
       "rank"},
      {"%r = scatter(%x, %i, %i, axis=0)",
       "scatter: %x: f32[2, 6] and its source %i: i64[2, 6] differ in dtype"},
      {"%r = index_select(%z, %n, axis=0)",
       "index_select: the index %n: i64[2] must have one element, as %z: f32[] has no axes"},
      {"%r, %p = topk(%z, k=2)", "topk: %z: f32[] has one element, got k=2"},
      {"%r = one_hot(%n)", "one_hot: attribute 'num_classes' is missing"},
      {"%r = linear(%x, %w, %w)",
       "linear: the weight %w: f32[6] needs two axes, or one without a bias"},
      {"%r = linear(%x, %x, %x)", "linear: the bias %x: f32[2, 6] needs one axis"},
      {"%r = linear(%z, %x)", "linear: %z: f32[] needs an axis or more"},
  };
  for (const Refusal& each : refusals) EXPECT_EQ(messageOf(each.call), each.message) << each.call;
}

// The message names the f8 operand and the op as the caller wrote them, not the ops of the
// composite.
TEST(CompositeFormErrors, Float8OperandsAreRefused) {
  const std::string refused =
      ": %q: f8e4m3[2, 6] is of an f8 type, which only casts, data movement and matrix products "
      "accept: cast it";
  for (const std::string call : {"sum(%q)",
                                 "mean(%q)",
                                 "var(%q)",
                                 "amax(%q)",
                                 "argmax(%q, axis=0)",
                                 "logsumexp(%q)",
                                 "cumsum(%q, axis=0)",
                                 "argsort(%q)",
                                 "softmax(%q)",
                                 "layer_norm(%q)",
                                 "rms_norm(%q)",
                                 "gelu(%q)",
                                 "swiglu(%q, %q)",
                                 "cross_entropy(%q, %n)",
                                 "cross_entropy(%x, %q)",
                                 "mse_loss(%q, %x)",
                                 "rope(%q)",
                                 "scaled_dot_product_attention(%q, %q, %q)",
                                 "exp(%q)",
                                 "scatter_add(%q, %i, %q, axis=0)",
                                 "embedding_backward(%q, %n, num_embeddings=3)",
                                 "dropout_backward(%q, %b)"}) {
    EXPECT_EQ(messageOf("%r = " + call), call.substr(0, call.find('(')) + refused);
  }
  for (const std::string call : {"sort(%q)", "topk(%q, k=2)"}) {
    EXPECT_EQ(messageOf("%r, %p = " + call), call.substr(0, call.find('(')) + refused);
  }
}

TEST(CompositeFormErrors, WrongParametersAreRefused) {
  const Refusal refusals[] = {
      {"%r, %k, %l = batch_norm(%c, %p, %w)",
       "batch_norm: %p: f32[6, 3] must have one axis, the channels"},
      {"%r, %k, %l = batch_norm(%x, %z, %w)",
       "batch_norm: %z: f32[] does not have the axes of %x: f32[2, 6] to which it applies"},
      {"%r = cross_entropy_backward(%x, %x, %n, reduction=none)",
       "cross_entropy_backward: %x: f32[2, 6] must have the axes of %x: f32[2, 6] except the "
       "classes"},
  };
  for (const Refusal& each : refusals) EXPECT_EQ(messageOf(each.call), each.message) << each.call;
}

TEST(CompositeFormErrors, JoiningNothingIsRefused) {
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

TEST(CompositeFormErrors, WrongAttentionHeadsAreRefused) {
  const std::string op = "scaled_dot_product_attention";
  const Refusal refusals[] = {
      {"(%x, %x, %x, gqa=true)", ": gqa needs an axis of heads, %x: f32[2, 6] has none"},
      {"(%a6, %a4, %a4, gqa=true)",
       ": the 6 heads of %a6: f32[2, 6, 4, 5] are no multiple of the 4 of %a4: f32[2, 4, 3, 5]"},
      {"(%a6, %a3, %a4, gqa=true)",
       ": shapes disagree, 3 and 4 (axis 1 of %a3: f32[2, 3, 3, 5] and axis 1 of "
       "%a4: f32[2, 4, 3, 5], operands of "},
      {"(%a6, %a3, %a3)",
       ": shapes disagree, 6 and 3 (axis 1 of %a6: f32[2, 6, 4, 5] and axis 1 of "
       "%a3: f32[2, 3, 3, 5], operands of "},
      {"(%a6, %a3, %a3, %m, gqa=true)",
       ": the mask %m: f32[9, 2, 6, 4, 3] has more axes than the scores"},
  };
  for (const Refusal& each : refusals) {
    std::string expected = op + each.message;
    if (expected.ends_with("operands of ")) expected += op + ")";
    EXPECT_EQ(messageOf("%r = " + op + each.call), expected) << each.call;
  }
}

}  // namespace
}  // namespace heddle::composite_form_errors_test
