// Tests elementwise ops of the reference evaluator in cases that the goldens do not have.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/base/check.h"
#include "ir/ops/op.h"
#include "ir/reference/reference.h"
#include "ir/text/fusion_text.h"

namespace heddle::reference_elementwise_test {
namespace {

// Returns the result of `call` on the tensors %x0, %x1, ...
HostTensor evaluate(const std::string& call, const std::vector<HostTensor>& inputs) {
  std::string declared;
  for (size_t i = 0; i < inputs.size(); ++i) {
    declared += fmt::format("{}%x{}: {}[{}]", i == 0 ? "" : ", ", i, name(inputs[i].dtype),
                            fmt::join(inputs[i].sizes, ", "));
  }
  const Fusion fusion = parseFusion(
      fmt::format("heddle 1\nfusion f({}) {{\n  %r = {}\n  return %r\n}}\n", declared, call));
  ReferenceInputs given;
  for (size_t i = 0; i < inputs.size(); ++i) given.tensors[fusion.inputs()[i]] = inputs[i];
  return evaluateReference(fusion, given, {})[0];
}

template <class T>
HostTensor tensor(DType dtype, const std::vector<T>& values) {
  HostTensor result(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) {
    result.set(static_cast<int64_t>(i), Scalar(static_cast<T>(values[i])));
  }
  return result;
}

// The expected words are the known answer of Random123 for Philox4x32-10 with key and counter 0.
// tests/goldens/composite_random.py has more answers.
TEST(ReferenceElementwise, PhiloxGivesThePublishedAnswer) {
  const HostTensor index = tensor<int64_t>(DType::I64, {0, 1, 2, 3});
  const HostTensor words = evaluate("philox32(0, 0, %x0)", {index});
  const HostTensor pairs = evaluate("philox64(0, 0, %x0)", {index});
  const std::vector<uint64_t> known = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  for (size_t i = 0; i < known.size(); ++i) {
    EXPECT_EQ(toInt(words.at(static_cast<int64_t>(i))), static_cast<int64_t>(known[i]));
  }
  for (size_t i = 0; i < 2; ++i) {
    const uint64_t pair = known[2 * i + 1] << 32 | known[2 * i];
    EXPECT_EQ(toInt(pairs.at(static_cast<int64_t>(i))), static_cast<int64_t>(pair));
  }
}

TEST(ReferenceElementwise, ZerosKeepTheirSigns) {
  const HostTensor x = tensor<double>(DType::F64, {-0.0, 0.0, -0.25});
  struct Case {
    const char* call;
    std::vector<bool> negative;
  };
  for (const Case& c :
       {Case{"ceil(%x0)", {true, false, true}}, Case{"round(%x0)", {true, false, true}},
        Case{"trunc(%x0)", {true, false, true}}, Case{"sqrt(%x0)", {true, false, true}},
        Case{"sign(%x0)", {false, false, true}}, Case{"tanh(%x0)", {true, false, true}},
        Case{"relu(%x0)", {true, false, false}}, Case{"abs(%x0)", {false, false, false}},
        Case{"fmod(%x0, 1.0)", {true, false, true}},
        Case{"div_floor(%x0, 4.0)", {true, false, true}}}) {
    const HostTensor got = evaluate(c.call, {x});
    for (int64_t i = 0; i < 3; ++i) {
      const double value = toDouble(got.at(i));
      if (std::isnan(value)) continue;  // the sign of a NaN has no meaning
      EXPECT_EQ(std::signbit(value), c.negative[static_cast<size_t>(i)]) << c.call << " of " << i;
    }
  }
}

TEST(ReferenceElementwise, IntegerDivisionByZeroAndMinusOneIsDefined) {
  const HostTensor a = tensor<int64_t>(DType::I64, {7, -7, 0, INT64_MIN, INT64_MIN});
  const HostTensor b = tensor<int64_t>(DType::I64, {0, 0, 0, -1, 0});
  for (const char* op : {"div_floor", "div_trunc", "fmod", "remainder"}) {
    const HostTensor got = evaluate(fmt::format("{}(%x0, %x1)", op), {a, b});
    const bool divides = std::string_view(op).starts_with("div");
    for (int64_t i = 0; i < 5; ++i) {
      EXPECT_EQ(toInt(got.at(i)), i == 3 && divides ? INT64_MIN : 0) << op << " of " << i;
    }
  }
}

// The quotient a / b rounds to 3 in f32, but is below 3 in f64.
TEST(ReferenceElementwise, TruncatedQuotientIsComputedInItsDtype) {
  const float a = std::nextafter(3 * 0.1f, 0.0f);
  const HostTensor x = tensor<double>(DType::F32, {double{a}});
  const HostTensor y = tensor<double>(DType::F32, {double{0.1f}});
  EXPECT_EQ(toDouble(evaluate("div_trunc(%x0, %x1)", {x, y}).at(0)), std::trunc(a / 0.1f));
}

// The expected values come from the notes of docs/ops.md, for cases that PyTorch does not define.
TEST(ReferenceElementwise, EdgeCasesMatchTheOpsPage) {
  const HostTensor i = tensor<int64_t>(DType::I64, {2, 5});
  const HostTensor between =
      evaluate("lerp(%x0, %x1, 0.5)", {i, tensor<int64_t>(DType::I64, {3, 1})});
  EXPECT_EQ(between.dtype, DType::F32);
  EXPECT_EQ(toDouble(between.at(0)), 2.5);
  EXPECT_EQ(toDouble(between.at(1)), 3);

  const HostTensor chances = tensor<double>(DType::F64, {-1, 2, std::nan("")});
  const HostTensor hits = evaluate("bernoulli(%x0, 3, 4)", {chances});
  EXPECT_EQ(hits.dtype, DType::F64);
  for (int64_t k = 0; k < 3; ++k) EXPECT_EQ(toDouble(hits.at(k)), k == 1 ? 1 : 0) << k;
  EXPECT_EQ(evaluate("bernoulli(%x0, 3, 4, p=0.5)", {chances}).dtype, DType::Bool);

  const HostTensor none(DType::F32, {3, 0}), v(DType::F32, {3, 2});
  const std::string attention = "scaled_dot_product_attention(%x0, %x0, %x1";
  EXPECT_TRUE(std::isnan(toDouble(evaluate(attention + ")", {none, v}).at(0))));
  EXPECT_EQ(toDouble(evaluate(attention + ", scale=1.0)", {none, v}).at(0)), 0);
}

TEST(ReferenceElementwise, OmittedOperandsPrintAsConstants) {
  const Fusion fusion =
      parseFusion("heddle 1\nfusion f(%x: f32[n]) {\n  %y = softplus(%x)\n  return %y\n}\n");
  EXPECT_NE(print(fusion).find("constant(20.0)"), std::string::npos) << print(fusion);
  EXPECT_EQ(print(parseFusion(print(fusion))), print(fusion));
}

}  // namespace
}  // namespace heddle::reference_elementwise_test
