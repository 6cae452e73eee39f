// Checks the error messages of composite ops.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tests/ir/composite/refusal.h"

namespace heddle::composite_errors_test {
namespace {

// Returns the error of one statement without its position. `names` are the names of the results.
std::string refusal(const std::string& call, const std::string& names = "%r") {
  return testing::refusalOf(
      "%x: f32[2, 6], %y: f32[2, 3], %d: f64[2, 6], %h: bf16[2, 6], %i: i64[2, 6], %n: i64[2], "
      "%e: f32[2, 0], %w: f32[6], %v: f32[1], %z: f32[], %b: bool[2, 6], %s: i64, %f: f64, "
      "%k: f32[t, 6], %o: f32[1, 6]",
      names + " = " + call);
}

TEST(CompositeErrors, WrongOperandsAndAttributesAreRefused) {
  EXPECT_EQ(refusal("mean(%x, %y)"), "mean takes 1 operand(s), got 2");
  EXPECT_EQ(refusal("layer_norm()"), "layer_norm takes 1 to 3 operand(s), got 0");
  EXPECT_EQ(refusal("cat()"), "cat takes 1 or more operand(s), got 0");
  EXPECT_EQ(refusal("topk(%x)", "%r, %q"), "topk: attribute 'k' is missing");
  EXPECT_EQ(refusal("mean(%s)"), "mean: operand %s: i64 is a scalar, expected a tensor");
}

TEST(CompositeErrors, WrongReductionsAreRefused) {
  EXPECT_EQ(refusal("mean(%i)"), "mean: %i: i64[2, 6] is not of a float type");
  EXPECT_EQ(refusal("var(%i)"), "var: %i: i64[2, 6] is not of a float type");
  EXPECT_EQ(refusal("std(%b)"), "std: %b: bool[2, 6] is not of a float type");
  EXPECT_EQ(refusal("var_mean(%i)", "%r, %q"), "var_mean: %i: i64[2, 6] is not of a float type");
  EXPECT_EQ(refusal("welford(%i)", "%r, %q, %p"), "welford: %i: i64[2, 6] is not of a float type");
  EXPECT_EQ(refusal("mean(%x, axes=[2])"), "mean: axis 2 is out of range for 2 axes");
  EXPECT_EQ(refusal("any(%x, axes=[-3])"), "any: axis -3 is out of range for 2 axes");
  EXPECT_EQ(refusal("all(%x, axes=[0, -2])"), "all: axis 0 is listed twice");
  EXPECT_EQ(refusal("amax(%x, axes=[0, 0])"), "amax: axis 0 is listed twice");
  EXPECT_EQ(refusal("amin(%x, axes=[7])"), "amin: axis 7 is out of range for 2 axes");
  EXPECT_EQ(refusal("argmax(%x, axis=2)"), "argmax: axis 2 is out of range for 2 axes");
  EXPECT_EQ(refusal("argmin(%e, axis=1)"), "argmin: %e: f32[2, 0] has no elements along axis 1");
}

TEST(CompositeErrors, WrongShapesAreRefused) {
  EXPECT_EQ(refusal("expand_as(%x, %w)"), "expand_as: %x: f32[2, 6] has more axes than %w: f32[6]");
  EXPECT_EQ(refusal("squeeze(%x, axes=[3])"), "squeeze: axis 3 is out of range for 2 axes");
  EXPECT_EQ(refusal("unsqueeze(%x, axis=3)"), "unsqueeze: axis 3 is out of range for 3 axes");
  EXPECT_EQ(refusal("transpose(%x, axes=[0])"), "transpose: got 1 axes, expected 2");
  EXPECT_EQ(refusal("transpose(%x, axes=[0, 2])"), "transpose: axis 2 is out of range for 2 axes");
  EXPECT_EQ(refusal("flatten(%x, start_axis=1, end_axis=0)"),
            "flatten: axis 1 is not before axis 0 of %x: f32[2, 6]");
  EXPECT_EQ(refusal("slice_axis(%x, axis=0, step=-1)"),
            "slice_axis: the step is -1, expected 1 or more");
  EXPECT_EQ(refusal("select(%x, axis=1, index=6)"),
            "select: axis 1 of %x: f32[2, 6] has no element 6");
  EXPECT_EQ(refusal("select(%x, axis=0, index=-3)"),
            "select: axis 0 of %x: f32[2, 6] has no element -3");
  EXPECT_EQ(refusal("cat(%x, %w)"),
            "cat: %x: f32[2, 6] and %w: f32[6] cannot be joined: they differ in rank");
  EXPECT_EQ(refusal("cat(%z, %z)"),
            "cat: %z: f32[] and %z: f32[] cannot be joined: they have no axes");
  EXPECT_EQ(refusal("cat(%x, %y)"),
            "cat: shapes disagree, 6 and 3 (axis 1 of %x: f32[2, 6] and axis 1 of %y: f32[2, 3], "
            "operands of cat)");
  EXPECT_EQ(refusal("cat(%x, %x, axis=2)"), "cat: axis 2 is out of range for 2 axes");
  EXPECT_EQ(refusal("stack(%x, %w)"), "stack: %x: f32[2, 6] and %w: f32[6] differ in rank");
  EXPECT_EQ(refusal("chunk(%x, chunks=0)"), "chunk: chunks is 0, expected 1 to 4096");
  EXPECT_EQ(refusal("chunk(%x, chunks=3)", "%r, %q, %p"),
            "f:1:223: chunk has 2 result(s), but the text names 3");
  EXPECT_EQ(refusal("repeat(%x, repeats=[2])"), "repeat: %x: f32[2, 6] has 2 axes, got 1 repeats");
  EXPECT_EQ(refusal("repeat(%x, repeats=[2, -1])"), "repeat: axis 1 is repeated -1 times");
  EXPECT_EQ(refusal("reshape(%x, sizes=[-1, -1])"), "reshape: more than one size is -1");
  EXPECT_EQ(refusal("reshape(%e, sizes=[-1, 0])"),
            "reshape: -1 beside a size of 0 could be any size");
  EXPECT_EQ(refusal("reshape(%x, sizes=[-1, 5])"),
            "reshape: %x: f32[2, 6] has 12 elements, the new shape has 10");
}

TEST(CompositeErrors, WrongNewTensorsAndIndicesAreRefused) {
  EXPECT_EQ(refusal("zeros()"), "zeros: attribute 'sizes' is missing");
  EXPECT_EQ(refusal("eye(sizes=[1, 2, 3])"), "eye: got 3 sizes, expected 1 or 2");
  EXPECT_EQ(refusal("arange(stop=3, step=0)"), "arange: from 0 to 3 in steps of 0 never ends");
  EXPECT_EQ(refusal("arange(start=3, stop=0)"), "arange: steps of 1 do not lead from 3 to 0");
  EXPECT_EQ(refusal("arange(stop=inf)"), "arange: from 0 to inf in steps of 1 never ends");
  EXPECT_EQ(refusal("tril(%w)"), "tril: %w: f32[6] needs two axes or more");
  EXPECT_EQ(refusal("triu(%w)"), "triu: %w: f32[6] needs two axes or more");
  EXPECT_EQ(refusal("one_hot(%n, num_classes=0)"), "one_hot: num_classes is 0, expected 1 or more");
  EXPECT_EQ(refusal("one_hot(%x, num_classes=3)"),
            "one_hot: the index %x: f32[2, 6] must be of an integer type");
  EXPECT_EQ(refusal("index_select(%x, %i, axis=0)"),
            "index_select: the index %i: i64[2, 6] must have one axis");
  EXPECT_EQ(refusal("index_select(%x, %n, axis=2)"),
            "index_select: axis 2 is out of range for 2 axes");
  EXPECT_EQ(refusal("embedding(%n, %w)"), "embedding: the weight %w: f32[6] must be [v, d]");
  EXPECT_EQ(refusal("embedding(%b, %x)"),
            "embedding: the index %b: bool[2, 6] must be of an integer type");
  EXPECT_EQ(refusal("gather(%x, %n, axis=0)"),
            "gather: %x: f32[2, 6] and its index %n: i64[2] differ in rank");
  EXPECT_EQ(refusal("gather(%y, %i, axis=0)"),
            "gather: the index %i: i64[2, 6] is larger than %y: f32[2, 3] along axis 1");
  EXPECT_EQ(refusal("sort(%x, axis=2)", "%r, %q"), "sort: axis 2 is out of range for 2 axes");
  EXPECT_EQ(refusal("topk(%x, k=7)", "%r, %q"),
            "topk: axis 1 of %x: f32[2, 6] does not have k=7 elements");
  EXPECT_EQ(refusal("topk(%x, k=-1)", "%r, %q"),
            "topk: axis 1 of %x: f32[2, 6] does not have k=-1 elements");
}

TEST(CompositeErrors, WrongRandomOpsAreRefused) {
  EXPECT_EQ(refusal("uniform(%s, %s)"),
            "uniform: write sizes=[...] or a tensor of these sizes first");
  EXPECT_EQ(refusal("normal(%x, %s, %s, sizes=[2])"),
            "normal: both sizes=[...] and %x: f32[2, 6] give the sizes; omit one");
  EXPECT_EQ(refusal("random_bits(%f, %s, sizes=[2])"),
            "random_bits: the seed %f: f64 must be an i64 scalar");
  EXPECT_EQ(refusal("random_bits(%s, %x, sizes=[2])"),
            "random_bits: the offset %x: f32[2, 6] must be an i64 scalar");
  EXPECT_EQ(refusal("uniform(%s, %s, sizes=[2], low=2)"), "uniform: low=2 is above high=1");
  EXPECT_EQ(refusal("uniform(%s, %s, sizes=[2], high=1e6, dtype=f16)"),
            "uniform: low=0 and high=1000000 are not both finite in f16");
  EXPECT_EQ(refusal("uniform(%s, %s, sizes=[2], dtype=i64)"),
            "uniform: i64 is not f64, f32, f16 or bf16");
  EXPECT_EQ(refusal("normal(%s, %s, sizes=[2], std=-1)"), "normal: std is -1, expected 0 or more");
  EXPECT_EQ(refusal("bernoulli(%s, %s, sizes=[2], p=1.5)"), "bernoulli: p is 1.5, expected 0 to 1");
  EXPECT_EQ(refusal("bernoulli(%s, %s, sizes=[2], p=nan)"), "bernoulli: p is nan, expected 0 to 1");
  EXPECT_EQ(refusal("bernoulli(%i, %s, %s)"), "bernoulli: %i: i64[2, 6] is not of a float type");
  EXPECT_EQ(refusal("randint(%s, %s, sizes=[2], low=3, high=3)"),
            "randint: low=3 must be below high=3");
  EXPECT_EQ(
      refusal("randint(%s, %s, sizes=[2], low=-9223372036854775807, high=9223372036854775807)"),
      "randint: from low=-9223372036854775807 to high=9223372036854775807 there are more than "
      "2^63 - 1 numbers");
  EXPECT_EQ(refusal("dropout(%x, %s, %s, p=-0.5)", "%r, %q"),
            "dropout: p is -0.5, expected 0 to 1");
  EXPECT_EQ(refusal("dropout(%i, %s, %s)", "%r, %q"),
            "dropout: %i: i64[2, 6] is not of a float type");
  EXPECT_EQ(refusal("dropout_backward(%x, %x)"),
            "dropout_backward: the mask %x: f32[2, 6] must be bool");
  EXPECT_EQ(refusal("dropout_backward(%x, %b, p=2)"), "dropout_backward: p is 2, expected 0 to 1");
}

TEST(CompositeErrors, WrongActivationsAreRefused) {
  EXPECT_EQ(refusal("gelu(%i)"), "gelu: %i: i64[2, 6] is not of a float type");
  EXPECT_EQ(refusal("gelu(%x, approximate=erf)"),
            "gelu: found approximate=erf, expected none or tanh");
  EXPECT_EQ(refusal("gelu_backward(%x, %x, approximate=erf)"),
            "gelu_backward: found approximate=erf, expected none or tanh");
  EXPECT_EQ(refusal("swiglu(%x, %h)"), "swiglu: %x: f32[2, 6] and %h: bf16[2, 6] differ in dtype");
  EXPECT_EQ(refusal("geglu(%x, %w)"), "geglu: %x: f32[2, 6] and %w: f32[6] differ in rank");
  EXPECT_EQ(refusal("reglu(%x, %y)"),
            "reglu: shapes disagree, 6 and 3 (axis 1 of %x: f32[2, 6] and axis 1 of "
            "%y: f32[2, 3], operands of reglu)");
  EXPECT_EQ(refusal("glu(%y)"), "glu: axis 1 of %y: f32[2, 3] has an odd extent");
  EXPECT_EQ(refusal("silu_backward(%x, %i)"),
            "silu_backward: %i: i64[2, 6] is not of a float type");
  EXPECT_EQ(refusal("swiglu_backward(%h, %x, %x)", "%r, %q"),
            "swiglu_backward: %h: bf16[2, 6] and %x: f32[2, 6] differ in dtype");
}

TEST(CompositeErrors, WrongNormsAreRefused) {
  EXPECT_EQ(refusal("softmax(%i)"), "softmax: %i: i64[2, 6] is not of a float type");
  EXPECT_EQ(refusal("softmax(%z, axis=1)"), "softmax: axis 1 is out of range for 0 axes");
  EXPECT_EQ(refusal("log_softmax(%x, axis=2)"), "log_softmax: axis 2 is out of range for 2 axes");
  EXPECT_EQ(refusal("softmax_backward(%x, %y)"),
            "softmax_backward: shapes disagree, 6 and 3 (axis 1 of %x: f32[2, 6] and axis 1 of "
            "%y: f32[2, 3], operands of softmax_backward)");
  EXPECT_EQ(refusal("log_softmax_backward(%d, %x)"),
            "log_softmax_backward: %d: f64[2, 6] and %x: f32[2, 6] differ in dtype");
  EXPECT_EQ(refusal("layer_norm(%x, dims=3)"),
            "layer_norm: cannot normalize the last 3 of the axes of %x: f32[2, 6]");
  EXPECT_EQ(refusal("layer_norm(%x, %w, dims=2)"),
            "layer_norm: %w: f32[6] does not have the last 2 axes of %x: f32[2, 6]");
  EXPECT_EQ(refusal("layer_norm(%w, %w, %x)"),
            "layer_norm: %x: f32[2, 6] does not have the last 1 axes of %w: f32[6]");
  EXPECT_EQ(refusal("layer_norm(%x, %v)"),
            "layer_norm: shapes disagree, 6 and 1 (axis 1 of %x: f32[2, 6] and axis 0 of "
            "%v: f32[1], operands of layer_norm)");
  EXPECT_EQ(refusal("layer_norm(%d, %w)"),
            "layer_norm: %w: f32[6] does not have the dtype of %d: f64[2, 6]");
  EXPECT_EQ(refusal("rms_norm(%w, %x)"),
            "rms_norm: cannot normalize the last 2 of the axes of %w: f32[6]");
  EXPECT_EQ(refusal("layer_norm_backward(%y, %x)", "%r, %q, %p"),
            "layer_norm_backward: shapes disagree, 3 and 6 (axis 1 of %y: f32[2, 3] and axis 1 of "
            "%x: f32[2, 6], operands of layer_norm_backward)");
  EXPECT_EQ(refusal("rms_norm_backward(%x, %i)", "%r, %q"),
            "rms_norm_backward: %i: i64[2, 6] is not of a float type");
  EXPECT_EQ(refusal("group_norm(%x, groups=4)"),
            "group_norm: the channels of %x: f32[2, 6] cannot be split into 4 groups");
  EXPECT_EQ(refusal("group_norm(%w, groups=1)"), "group_norm: %w: f32[6] needs two axes or more");
  EXPECT_EQ(refusal("group_norm(%x, %x, groups=2)"),
            "group_norm: %x: f32[2, 6] must have one axis, the channels");
  EXPECT_EQ(refusal("batch_norm(%w, %w, %w)", "%r, %q, %p"),
            "batch_norm: %w: f32[6] needs two axes or more");
  EXPECT_EQ(refusal("batch_norm(%x, %v, %w)", "%r, %q, %p"),
            "batch_norm: shapes disagree, 6 and 1 (axis 1 of %x: f32[2, 6] and axis 0 of "
            "%v: f32[1], operands of batch_norm)");
}

TEST(CompositeErrors, BatchNormOfOneElementIsRefused) {
  EXPECT_EQ(refusal("batch_norm(%o, %w, %w)", "%r, %q, %p"),
            "batch_norm: %o: f32[1, 6] has one element per channel, but the variance needs more");
  EXPECT_EQ(refusal("batch_norm_backward(%o, %o)", "%r, %q, %p"),
            "batch_norm_backward: %o: f32[1, 6] has one element per channel, but the variance "
            "needs more");
}

TEST(CompositeErrors, WrongLossesAreRefused) {
  EXPECT_EQ(refusal("cross_entropy(%x, %n, reduction=avg)"),
            "cross_entropy: found reduction=avg, expected mean, sum or none");
  EXPECT_EQ(
      refusal("cross_entropy(%x, %i)"),
      "cross_entropy: the target %i: i64[2, 6] must have the axes of %x: f32[2, 6] except the "
      "classes");
  EXPECT_EQ(refusal("cross_entropy(%x, %b)"),
            "cross_entropy: the index %b: bool[2, 6] must be of an integer type");
  EXPECT_EQ(refusal("cross_entropy(%x, %w)"),
            "cross_entropy: %x: f32[2, 6] and %w: f32[6] differ in rank");
  EXPECT_EQ(refusal("cross_entropy(%x, %d)"),
            "cross_entropy: %x: f32[2, 6] and %d: f64[2, 6] differ in dtype");
  EXPECT_EQ(refusal("cross_entropy(%x, %x, ignore_index=2)"),
            "cross_entropy: ignore_index is 2, but the target %x: f32[2, 6] holds probabilities");
  EXPECT_EQ(refusal("cross_entropy(%x, %n, %x)"),
            "cross_entropy: the weight %x: f32[2, 6] must have one axis, the classes");
  EXPECT_EQ(refusal("cross_entropy(%x, %n, %v)"),
            "cross_entropy: shapes disagree, 6 and 1 (axis 1 of %x: f32[2, 6] and axis 0 of "
            "%v: f32[1], operands of cross_entropy)");
  EXPECT_EQ(refusal("cross_entropy(%z, %n)"), "cross_entropy: %z: f32[] needs an axis of classes");
  EXPECT_EQ(refusal("cross_entropy(%x, %n, label_smoothing=1.5)"),
            "cross_entropy: label_smoothing is 1.5, expected 0 to 1");
  EXPECT_EQ(refusal("cross_entropy_backward(%w, %x, %n)"),
            "cross_entropy_backward: %w: f32[6] must have no axes, like the loss");
  EXPECT_EQ(refusal("cross_entropy_backward(%z, %d, %n)"),
            "cross_entropy_backward: %z: f32[] and %d: f64[2, 6] differ in dtype");
  EXPECT_EQ(refusal("mse_loss(%x, %i)"), "mse_loss: %i: i64[2, 6] is not of a float type");
  EXPECT_EQ(refusal("mse_loss(%x, %y)"),
            "mse_loss: shapes disagree, 6 and 3 (axis 1 of %x: f32[2, 6] and axis 1 of %y: f32[2, "
            "3], operands of mse_loss)");
  EXPECT_EQ(refusal("mse_loss(%x, %x, reduction=max)"),
            "mse_loss: found reduction=max, expected mean, sum or none");
  EXPECT_EQ(refusal("embedding_backward(%x, %i, num_embeddings=3)"),
            "embedding_backward: %x: f32[2, 6] must have the axes of %i: i64[2, 6] and one more");
  for (const char* row : {"3", "-4"}) {
    EXPECT_EQ(
        refusal(fmt::format("embedding_backward(%x, %n, num_embeddings=3, padding_idx={})", row)),
        fmt::format("embedding_backward: padding_idx is {}, expected -3 to below 3", row));
  }
}

TEST(CompositeErrors, WrongAttentionIsRefused) {
  EXPECT_EQ(refusal("rope(%w)"), "rope: %w: f32[6] needs two axes or more");
  EXPECT_EQ(refusal("rope(%y)"), "rope: axis 1 of %y: f32[2, 3] has an odd extent");
  EXPECT_EQ(refusal("rope(%x, base=0)"), "rope: base is 0, expected more than 0");
  EXPECT_EQ(refusal("rope(%x, %y)"), "rope: takes (x) with base, or (x, cos, sin)");
  EXPECT_EQ(refusal("rope(%x, %w, %w)"), "rope: %w: f32[6] must be [t, d/2]");
  const std::string op = "scaled_dot_product_attention";
  EXPECT_EQ(refusal(op + "(%w, %w, %w)"), op + ": %w: f32[6] needs two axes or more");
  EXPECT_EQ(refusal(op + "(%x, %h, %x)"),
            op + ": %x: f32[2, 6] and %h: bf16[2, 6] differ in dtype");
  EXPECT_EQ(refusal(op + "(%x, %y, %y)"),
            op +
                ": shapes disagree, 6 and 3 (axis 1 of %x: f32[2, 6] and axis 1 of "
                "%y: f32[2, 3], operands of " +
                op + ")");
  EXPECT_EQ(refusal(op + "(%x, %x, %x, %i)"),
            op + ": the mask %i: i64[2, 6] must be bool or of a float type");
  EXPECT_EQ(refusal(op + "_backward(%d, %x, %x, %x)", "%r, %q, %p"),
            op + "_backward: %d: f64[2, 6] does not have the dtype and rank of %x: f32[2, 6]");
}

// If a size is refused as a number, it is also refused when a run binds a symbol to this number.
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

// A literal beside a tensor of 8-bit or 32-bit integers must fit the dtype of the tensor. This rule
// is for comparisons, divisions and bounds.
TEST(CompositeErrors, LiteralsOutsideASmallIntegerTypeAreRefused) {
  const auto refused = [](const std::string& call) {
    try {
      parseFusion("heddle 1 fusion f(%u: u8[4], %i: i8[4], %b: bool[4]) { %r = " + call +
                  " return %r }");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string bytes = " is no number of u8, which holds 0 to 255";
  EXPECT_NE(refused("lt(%u, 300)").find("lt at line 1: 300" + bytes), std::string::npos);
  for (const char* call :
       {"eq(%u, -1)", "remainder(%u, 256)", "div_floor(%u, 300)", "threshold(%u, 300, 7)",
        "where(%b, %u, 300)", "clamp(%u, 300, 400)", "clamp(%u, -7, -1)", "maximum(%u, 256)",
        "minimum(%u, -1)", "bitwise_left_shift(%u, 256)"}) {
    EXPECT_NE(refused(call).find(bytes), std::string::npos) << call << ": " << refused(call);
  }
  EXPECT_NE(refused("ge(%i, 128)").find("128 is no number of i8, which holds -128 to 127"),
            std::string::npos);
  EXPECT_NE(refused("threshold(%i, nan, 7)").find("nan is no number of i8"), std::string::npos);
  EXPECT_NE(refused("threshold(%u, inf, 7)").find("inf is no number of u8"), std::string::npos);
  EXPECT_NE(refused("flip(1.5, axes=[0])").find("operand 1.5 is a scalar"), std::string::npos);
  for (const char* call :
       {"add(%u, 300)", "mul(%u, -1)", "bitwise_and(%u, 511)", "lt(%u, 255)", "clamp(%u, -1, 300)",
        "minimum(%u, 300)", "div(%u, 300)", "lt(%u, 1.5)"}) {
    EXPECT_EQ(refused(call), "no error") << call;
  }
}

}  // namespace
}  // namespace heddle::composite_errors_test
