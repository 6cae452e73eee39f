// Checks the error messages of the parser of fusions.
#include <gtest/gtest.h>

#include "ir/base/error.h"
#include "ir/text/fusion_text.h"

namespace heddle::parse_errors_test {
namespace {

std::string errorOf(const std::string& text) {
  try {
    parseFusion(text, "f");
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

// Returns the error of a statement on line 4 with the values a: f32[t, h], b: f32[h], s: f64.
std::string bodyError(const std::string& statement) {
  return errorOf(
      "heddle 1\nmesh @m = [y=2, x=2]\nfusion f(%a: f32[t, h], %b: f32[h], %s: f64) {\n" +
      statement + "\nreturn %a }");
}

std::string inputError(const std::string& input) {
  return errorOf("heddle 1\nmesh @m = [y=2, x=2]\nfusion f(" + input + ") { return %a }");
}

TEST(ParseErrors, WrongHeadersAreReported) {
  EXPECT_EQ(errorOf(""), "f:1:1: found end of text, expected 'heddle'");
  EXPECT_EQ(errorOf("heddle 2"), "f:1:8: found version 2, expected version 1");
  EXPECT_EQ(errorOf("heddle 1 program"), "f:1:10: found 'program', expected 'fusion'");
  EXPECT_EQ(errorOf("heddle 1 fusion ("), "f:1:17: found '(', expected the name of the fusion");
  EXPECT_EQ(errorOf("heddle 1 fusion f() { return }"),
            "f:1:30: found '}', expected a value, as in %x");
  EXPECT_EQ(errorOf("heddle 1 fusion f(%a: f32[t]) { return %a } x"),
            "f:1:45: found 'x', expected end of text");
  EXPECT_EQ(errorOf("heddle 1 fusion f(%a: f32[t]) { return %a"),
            "f:1:42: found end of text, expected '}'");
}

TEST(ParseErrors, WrongResultCountsAreReported) {
  EXPECT_EQ(bodyError("%c, %d = softmax(%a)"),
            "f:4:1: softmax has 1 result(s), but the text names 2");
  EXPECT_EQ(bodyError("%c, = softmax(%a)"),
            "f:4:5: found '=', expected a statement, as in %y = relu(%x), or return");
  EXPECT_EQ(bodyError("%c = softmax(%a, %b)"), "f:4: softmax takes 1 operand(s), got 2");
}

TEST(ParseErrors, WrongMeshesAreReported) {
  EXPECT_EQ(errorOf("heddle 1 mesh m"), "f:1:15: found 'm', expected the name of a mesh, as in @m");
  EXPECT_EQ(errorOf("heddle 1 mesh @m = [w=2]"),
            "f:1:21: found 'w', expected a mesh axis: x, y or z");
  EXPECT_EQ(errorOf("heddle 1 mesh @m = [x=0]"),
            "f:1:23: a mesh axis has at least 1 device, got 0");
  EXPECT_EQ(errorOf("heddle 1 mesh @m = [x=2, y=2]"),
            "f:1:26: mesh axes are listed as [x], [y, x] or [z, y, x], the innermost last");
  EXPECT_EQ(errorOf("heddle 1 mesh @m = [x=2] ranks=[1]"),
            "f:1:26: mesh @m lists 1 ranks for 2 devices");
  EXPECT_EQ(errorOf("heddle 1 mesh @m = [x=2] ranks=[1, 1]"), "f:1:26: rank 1 is listed twice");
  EXPECT_EQ(errorOf("heddle 1 mesh @m = [y=99999999, x=99999999]"),
            "f:1:15: mesh @m has too many devices");
  EXPECT_EQ(errorOf("heddle 1 mesh @m = [y=9223372036854775807, x=ranks]"),
            "f:1:15: mesh @m has too many devices");
  EXPECT_EQ(errorOf("heddle 1 mesh @m = [y=ranks, x=ranks]"),
            "f:1:30: only one mesh axis can take its size from the job");
  EXPECT_EQ(errorOf("heddle 1 mesh @m = [x=2] mesh @m = [x=2]"),
            "f:1:31: mesh @m is defined twice");
}

TEST(ParseErrors, WrongInputsAreReported) {
  EXPECT_EQ(inputError("a"), "f:3:10: found 'a', expected an input, as in %x: f32[t]");
  EXPECT_EQ(inputError("%a = f32"), "f:3:13: found '=', expected ':'");
  EXPECT_EQ(inputError("%a: f15[t]"),
            "f:3:14: found 'f15', "
            "expected a type: bool, u8, i8, i32, i64, f8e4m3, f8e5m2, f16, bf16, f32, f64");
  EXPECT_EQ(inputError("%a: f32[t"), "f:3:19: found ')', expected ',' or ']'");
  EXPECT_EQ(inputError("%a: f32[t] %b: f32[t]"), "f:3:21: found '%b', expected ',' or ')'");
  EXPECT_EQ(inputError("%a: f32[t], %a: f64"), "f:3:22: %a is defined twice");
  EXPECT_EQ(inputError("%a: f32[-1]"), "f:3:18: the extent -1 is negative");
  EXPECT_EQ(inputError("%a: f32[mid(t, 2)]"),
            "f:3:18: found 'mid', expected ceildiv, floordiv, min, max or given");
  EXPECT_EQ(inputError("%a: f32[broadcast(2)]"),
            "f:3:28: the extent of a broadcast axis must be 1");
  EXPECT_EQ(inputError("%a: f32[4 / 0]"),
            "f:3:20: the size floordiv(4, 0) overflows or divides by zero");
  EXPECT_EQ(inputError("%a: i64 = 0.5"), "f:3:20: 0.5 is not a value of i64");
  EXPECT_EQ(inputError("%a: i8 = 200"), "f:3:19: 200 is not a value of i8");
  EXPECT_EQ(inputError("%a: f32 = 1e300"), "f:3:20: 1e+300 is not a value of f32");
  EXPECT_EQ(inputError("%a: f32 = 16777217"), "f:3:20: 16777217 is not a value of f32");
  EXPECT_EQ(inputError("%a: f64 = x"), "f:3:20: found 'x', expected a number, true or false");
  EXPECT_EQ(inputError("%a: f32[t] order=[1]"),
            "f:3:27: found order=[1], expected each of the 1 axes of the tensor once, as in "
            "order=[0]");
  EXPECT_EQ(inputError("%a: f32[t] contiguous=[true, true]"),
            "f:3:32: contiguous has 2 entries for a tensor of rank 1");
  EXPECT_EQ(inputError("%a: f32[t] order=[0] order=[0]"), "f:3:31: order is given twice");
  EXPECT_EQ(inputError("%a: f32[t]) with t = 4, t = 5 {"), "f:3:34: size t has two defaults");
  EXPECT_EQ(inputError("%a: f32[t]) with t = -4 {"), "f:3:31: the size -4 is negative");
}

TEST(ParseErrors, WrongShardingsAreReported) {
  EXPECT_EQ(inputError("%a: f32[t] shard(@k)"), "f:3:27: there is no mesh @k");
  EXPECT_EQ(inputError("%a: f32[t] shard(@m, 1: x)"),
            "f:3:31: axis 1 is out of range for a tensor of rank 1");
  EXPECT_EQ(inputError("%a: f32[t] shard(@m, 0: z)"), "f:3:34: mesh @m has no axis z");
  EXPECT_EQ(inputError("%a: f32[t] shard(@m, 0: x) partial(sum: x)"),
            "f:3:50: mesh axis x is used twice in one sharding");
  EXPECT_EQ(inputError("%a: f32[t] partial(mean: x)"),
            "f:3:29: found 'mean', expected a reduction: sum, prod, min, max or avg");
  EXPECT_EQ(inputError("%a: f32[t] inferred"),
            "f:3:29: found ')', expected shard, partial or stream");
  EXPECT_EQ(inputError("%a: f32[t] stream(0: 0)"), "f:3:31: expected at least 1 chunk, got 0");
  EXPECT_EQ(inputError("%a: i64[t] partial(avg: x)"),
            "f:3: %a: i64[t]: partial(avg) needs a float type");
}

TEST(ParseErrors, WrongMemoryOrdersAreReported) {
  const std::string expected = "expected each of the 2 axes of the tensor once, as in order=[0, 1]";
  EXPECT_EQ(bodyError("%c = relu(%a) order=[0, 0]"), "f:4:21: found order=[0, 0], " + expected);
  EXPECT_EQ(bodyError("%c = relu(%a) order=[0, 2]"), "f:4:21: found order=[0, 2], " + expected);
  EXPECT_EQ(bodyError("%c = relu(%a) order=[0, -1]"), "f:4:21: found order=[0, -1], " + expected);
  EXPECT_EQ(bodyError("%c = relu(%a) order=[0, 1, 2]"),
            "f:4:21: found order=[0, 1, 2], " + expected);
  EXPECT_EQ(bodyError("%c = relu(%a) order=[]"), "f:4:21: found order=[], " + expected);
  EXPECT_EQ(bodyError("%c = add(%s, 1) order=[0]"),
            "f:4:17: %c is a scalar, which has no memory order");
  EXPECT_EQ(bodyError("%c = relu(%a) order=[0, 1] order=[0, 1]"), "f:4:28: order is given twice");
  EXPECT_EQ(bodyError("%c = relu(%a) stride_order=[1, 0]"),
            "f:4:15: stride_order= is now written order=");
  EXPECT_EQ(bodyError("%c = relu(%a) hint_order=[1, 0]"),
            "f:4:15: hint_order= is now written hinted order=");
  EXPECT_EQ(inputError("%a: f32[t, h] hinted order=[1, 0]"),
            "f:3:24: hinted order describes computed values only; write order= for an input");
}

TEST(ParseErrors, WrongStatementsAreReported) {
  EXPECT_EQ(bodyError("relu(%a)"),
            "f:4:1: found 'relu', expected a statement, as in %y = relu(%x), or return");
  EXPECT_EQ(bodyError("%c relu(%a)"), "f:4:4: found 'relu', expected '=' or ':'");
  EXPECT_EQ(bodyError("%c = rellu(%a)"), "f:4: there is no op 'rellu'; the nearest name is 'relu'");
  EXPECT_EQ(bodyError("%c = sofmax(%a)"),
            "f:4: there is no op 'sofmax'; the nearest name is 'softmax'");
  EXPECT_EQ(bodyError("%c = relu(%q)"), "f:4:11: found '%q', expected a value defined above");
  EXPECT_EQ(bodyError("%c = relu(a)"),
            "f:4:11: found 'a', expected a value, a number or an attribute");
  EXPECT_EQ(bodyError("%c = relu(%a"), "f:5:1: found 'return', expected ',' or ')'");
  EXPECT_EQ(bodyError("%a = relu(%a)"), "f:4:1: %a is defined twice");
  EXPECT_EQ(bodyError("%c = relu(%a, %b)"), "f:4: relu at line 4 takes 1 operand(s), got 2");
  EXPECT_EQ(bodyError("%c = gelu(%a, %b)"), "f:4: gelu takes 1 operand(s), got 2");
  EXPECT_EQ(bodyError("%c: f32[t] = relu(%a)"),
            "f:4:5: %c is f32[t, h], but the text states f32[t]");
  EXPECT_EQ(bodyError("%c = relu(%a) contiguous=[true, true]"),
            "f:4:15: contiguous describes inputs only");
  EXPECT_EQ(bodyError("%c = add(%s, 1) shard(@m)"),
            "f:4:17: %c is a scalar, which has no sharding");
}

TEST(ParseErrors, WrongAttributesAreReported) {
  EXPECT_EQ(bodyError("%c = sum(%a, axs=[0])"),
            "f:4:14: found 'axs', expected an attribute of sum: axes or keepdim");
  EXPECT_EQ(bodyError("%c = relu(%a, axes=[0])"),
            "f:4:15: found 'axes', expected ')', because relu has no attributes");
  EXPECT_EQ(bodyError("%c = sum(%a, axes=0)"), "f:4:19: found '0', expected '['");
  EXPECT_EQ(bodyError("%c = sum(%a, axes=[0], axes=[1])"), "f:4:24: axes is given twice");
  EXPECT_EQ(bodyError("%c = sum(%a, axes=[0], %b)"),
            "f:4:24: found '%b', expected an attribute, as in axis=0");
  EXPECT_EQ(bodyError("%c = permute(%a)"),
            "f:4: permute at line 4: attribute 'axes' is missing (a list of integers)");
  EXPECT_EQ(bodyError("%c = sum(%a, axes=[2])"),
            "f:4: sum at line 4: axis 2 is out of range for 2 axes");
  EXPECT_EQ(bodyError("%c = cast(%a, dtype=int)"),
            "f:4:21: found 'int', expected a type: bool, u8, i8, i32, i64, f8e4m3, "
            "f8e5m2, f16, bf16, f32, f64");
  EXPECT_EQ(bodyError("%c = gelu(%a, approximate=erf)"),
            "f:4: gelu: found approximate=erf, expected none or tanh");
}

TEST(ParseErrors, DeepAndLongSizesAreRefused) {
  const std::string deep = std::string(5000, '(') + "t";
  EXPECT_EQ(inputError("%a: f32[" + deep), "f:3:218: nested deeper than 200");
  const std::string minus = std::string(5000, '-') + "t";
  EXPECT_NE(inputError("%a: f32[" + minus).find("nested deeper than 200"), std::string::npos);
  std::string sum = "t";
  for (int i = 0; i < 3000; ++i) sum += "+t";
  EXPECT_NE(inputError("%a: f32[" + sum).find("a size of more than 1000 operators"),
            std::string::npos);
}

}  // namespace
}  // namespace heddle::parse_errors_test
