// Tests library calls in the text of host programs: attributes and error messages.
#include <gtest/gtest.h>

#include "host/text/program_text.h"
#include "host/verify/verify.h"
#include "ir/base/check.h"

namespace heddle::host::library_calls_test {
namespace {

const std::string kHead =
    "heddle 1\nmesh @m = [x=2]\n"
    "program p(%x: f32[4, 3], %i: i64[2, 3], %s: f32[2, 3], %k: i64[4, 3], %h: f8e4m3[4, 3],"
    " %q: f8e4m3[2, 3], %n: i32[2, 3]) -> () {\n"
    "  slot %y: f32[4, 3]\n  slot %o: i64[4, 3]\n  slot %g: f8e4m3[4, 3]\n"
    "  slot %c: f32[4, 3] shard(@m, 1: x)\n"
    "  %y = allocate\n  %o = allocate\n  %g = allocate\n  %c = allocate\n";
const std::string kTail = "  free %y\n  free %o\n  free %g\n  free %c\n}\n";

std::string errorOf(const std::string& call) {
  try {
    verify(parseProgram(kHead + "  call_library " + call + "\n" + kTail, "p.hostir"));
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

void failsWith(const std::string& call, const std::string& expected) {
  const std::string error = errorOf(call);
  EXPECT_NE(error.find(expected), std::string::npos) << error;
}

TEST(LibraryCalls, LegalCallsAreAccepted) {
  for (const char* call :
       {"cumsum(%x, axis=1) -> (%y)", "cumsum(%k, axis=0) -> (%o)", "argsort(%x, axis=0) -> (%o)",
        "argsort(%k, descending=true, axis=1) -> (%o)", "scatter(%x, %i, %s, axis=0) -> (%y)",
        "scatter_add(axis=0, %x, %i, %s) -> (%y)", "scatter_add(%x, %n, %s, axis=0) -> (%y)",
        "scatter(%h, %i, %q, axis=0) -> (%g)"}) {
    EXPECT_EQ(errorOf(call), "no error") << call;
  }
}

TEST(LibraryCalls, AttributesPrintInTableOrder) {
  const std::string text = print(parseProgram(
      kHead + "  call_library argsort(descending=true, axis=1, %x) -> (%o)\n" + kTail));
  EXPECT_NE(text.find("call_library argsort(%x, axis=1, descending=true) -> (%o) stream=0\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(print(parseProgram(text)), text);
}

TEST(LibraryCalls, WrongNamesAndAttributesAreReported) {
  failsWith("sort(%x) -> (%y)",
            "p.hostir:12:16: there is no library function sort; there are matmul, ");
  failsWith("cumsum(%x) -> (%y)", "cumsum needs axis=; it takes 1 slot, axis=");
  failsWith("cumsum(%x, axes=[0]) -> (%y)", "p.hostir:12:27: found 'axes', expected 1 slot, axis=");
  failsWith("cumsum(%x, axis=true) -> (%y)", "expected an integer");
  failsWith("cumsum(%x, axis=0, axis=1) -> (%y)", "axis= once");
  failsWith("cumsum(%x, axis=2) -> (%y)", "cumsum: axis 2 of %y, which has the axes 0 to 1");
  failsWith("cumsum(%x, axis=-1) -> (%y)", "cumsum: axis -1 of %y");
  failsWith("matmul(%x, %x, axis=1) -> (%y)", "found 'axis', expected 2 slots");
}

TEST(LibraryCalls, Float8ComputationIsRefused) {
  for (const char* call : {"cumsum(%h, axis=1) -> (%g)", "argsort(%h, axis=1) -> (%o)",
                           "scatter_add(%h, %i, %q, axis=0) -> (%g)"}) {
    failsWith(call, ": %h is f8e4m3, which is only for casts, data movement and matrix products");
  }
}

TEST(LibraryCalls, WrongOperandsAreReported) {
  failsWith("cumsum(%x, %x, axis=0) -> (%y)", "cumsum takes 1 tensors and returns 1, got 2 and 1");
  failsWith("cumsum(%x, axis=0) -> (%o)", "cumsum: %o is i64, expected f32");
  failsWith("cumsum(%k, axis=0) -> (%y)", "cumsum: %y is f32, expected i64");
  failsWith("linear(%h, %h, dtype=bf16) -> (%y)", "linear: %y is f32, expected bf16");
  failsWith("argsort(%x, axis=0) -> (%y)", "argsort: %y is f32, expected i64");
  failsWith("scatter(%x, %s, %s, axis=0) -> (%y)", "scatter: %s is f32, expected i64");
  failsWith("scatter(%x, %i, %i, axis=0) -> (%y)", "scatter: %i is i64, expected f32");
  failsWith("scatter(%x, %i, %s, axis=1) -> (%y)",
            "scatter of [4, 3] by [2, 3] of [2, 3] along axis 1: sizes do not fit");
  failsWith("cumsum(%s, axis=1) -> (%y)", "cumsum of [2, 3] to [4, 3]: sizes do not fit");
  failsWith("cumsum(%x, axis=1) -> (%c)", "cumsum: axis 1 of %c is sharded");
}

TEST(LibraryCalls, WrongAttentionCallsAreReported) {
  const auto errorWith = [](const std::string& type, const std::string& v,
                            const std::string& call) {
    const std::string text = "heddle 1\nmesh @m = [x=2]\nprogram p(%q: " + type + ", %v: " + v +
                             ") -> (%y) {\n  slot %y: " + type +
                             "\n  %y = allocate\n  call_library " + call + "\n}\n";
    try {
      const Program program = parseProgram(text, "p.hostir");
      verify(program);
      EXPECT_EQ(print(parseProgram(print(program))), print(program));
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string good = "attention(%q, %q, %v, scale=0.5, causal=true) -> (%y)";
  EXPECT_EQ(errorWith("f16[2, 8, 16]", "f16[2, 8, 16]", good), "no error");
  EXPECT_EQ(errorWith("bf16[8, 16]", "bf16[8, 16]", "attention(%q, %q, %v) -> (%y)"), "no error");
  const auto fails = [&](const std::string& type, const std::string& v, const std::string& why) {
    const std::string error = errorWith(type, v, good);
    EXPECT_NE(error.find(why), std::string::npos) << error;
  };
  fails("f32[8, 16]", "f32[8, 16]", "attention: %y is f32, expected f16 or bf16");
  fails("f16[8, 16]", "bf16[8, 16]", "attention: %v is bf16, expected f16");
  fails("f16[8, 16]", "f16[2, 8, 16]", "attention: %v has rank 3 and %y rank 2");
  fails("f16[2, 2, 2, 8, 16]", "f16[2, 2, 2, 8, 16]", "has rank 5, expected 2 to 4");
  fails("f16[8, 16]", "f16[8, 16] shard(@m, 1: x)", "the width of %v must not be sharded");
  const std::string shared = "attention(%q, %v, %v, gqa=true) -> (%y)";
  EXPECT_EQ(errorWith("f16[6, 8, 16]", "f16[2, 5, 16]", shared), "no error");
  EXPECT_NE(errorWith("f16[8, 16]", "f16[5, 16]", shared)
                .find("attention: gqa needs an axis of heads, %y has rank 2"),
            std::string::npos);
  for (const char* call : {"attention(%q, %v, %v) -> (%y)", shared.c_str()}) {
    EXPECT_NE(errorWith("f16[7, 8, 16]", "f16[2, 5, 16]", call)
                  .find("attention of [7, 8, 16], [2, 5, 16] and [2, 5, 16] to [7, 8, 16]: sizes "
                        "do not fit"),
              std::string::npos)
        << call;
  }
}

TEST(LibraryCalls, WrongAttentionBackwardCallsAreReported) {
  const auto errorWith = [](const std::string& call, const std::string& g, const std::string& v) {
    const std::string text = fmt::format(
        "heddle 1\nmesh @m = [x=2]\nprogram p(%g: {0}, %q: f16[2, 8, 16], "
        "%k: f16[2, 6, 16], %v: {1}) -> (%a, %b, %c) {{\n  slot %a: f16[2, 8, 16]\n"
        "  slot %b: f16[2, 6, 16]\n  slot %c: {1}\n  %a = allocate\n"
        "  %b = allocate\n  %c = allocate\n  call_library attention_backward{2}\n}}\n",
        g, v, call);
    try {
      const Program program = parseProgram(text, "p.hostir");
      verify(program);
      EXPECT_EQ(print(parseProgram(print(program))), print(program));
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string good = "(%g, %q, %k, %v, causal=true, scale=0.5) -> (%a, %b, %c)";
  EXPECT_EQ(errorWith(good, "f16[2, 8, 24]", "f16[2, 6, 24]"), "no error");
  const auto fails = [&](const std::string& call, const std::string& why,
                         const std::string& g = "f16[2, 8, 16]",
                         const std::string& v = "f16[2, 6, 16]") {
    const std::string error = errorWith(call, g, v);
    EXPECT_NE(error.find(why), std::string::npos) << error;
  };
  fails("(%g, %q, %k) -> (%a, %b, %c)",
        "attention_backward takes 4 or 6 tensors and returns 3, got 3 and 3");
  fails("(%g, %q, %k, %v) -> (%a)",
        "attention_backward takes 4 or 6 tensors and returns 3, got 4 and 1");
  fails("(%g, %q, %k, %v, gqa=true) -> (%a, %b, %c)",
        "found 'gqa', expected 4 or 6 slots, causal= (optional), scale= (optional)");
  fails(good, "attention_backward: %g is bf16, expected f16", "bf16[2, 8, 16]");
  fails(good, "attention_backward: %v has rank 2 and %a rank 3", "f16[2, 8, 16]", "f16[6, 16]");
  fails(good, "the width of %v must not be sharded", "f16[2, 8, 16]",
        "f16[2, 6, 16] shard(@m, 2: x)");
  // The gradient of the result has as many tokens as q, and the width of v.
  fails(good,
        "attention_backward of [2, 8, 16], [2, 6, 16] and [2, 6, 24] with a gradient of "
        "[2, 8, 16]: sizes do not fit",
        "f16[2, 8, 16]", "f16[2, 6, 24]");
  fails("(%g, %q, %k, %v) -> (%b, %a, %c)",
        "attention_backward: a gradient of [2, 6, 16] for an operand of [2, 8, 16]");
  fails("(%g, %q, %k, %v) -> (%a, %b, %b)",
        "attention_backward: a result must not overlap the memory of another result");
  fails("(%g, %q, %k, %v) -> (%a, %b, %k)",
        "attention_backward: a result must not overlap the memory of an operand");
}

}  // namespace
}  // namespace heddle::host::library_calls_test
