#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "ir/host_tensor.h"

// Cases of tests/goldens/ops.json, and the fusion that computes each.
namespace heddle::testing {

struct Golden {
  std::string op;
  nlohmann::json attrs;
  std::vector<HostTensor> inputs;
  HostTensor output;
  std::string text;  // the case in short, for messages
};

inline Scalar scalarOf(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  const double inf = std::numeric_limits<double>::infinity();
  return value == "nan" ? std::nan("") : value == "inf" ? inf : -inf;
}

inline HostTensor tensorOf(const nlohmann::json& json) {
  HostTensor tensor(dtypeFromName(json["dtype"].get<std::string>()).value(),
                    json["sizes"].get<std::vector<int64_t>>());
  int64_t i = 0;
  for (const nlohmann::json& value : json["values"]) tensor.set(i++, scalarOf(value));
  return tensor;
}

inline std::vector<Golden> readGoldens() {
  std::ifstream file("tests/goldens/ops.json");
  const nlohmann::json json = nlohmann::json::parse(file);
  std::vector<Golden> goldens;
  for (const nlohmann::json& c : json["cases"]) {
    Golden golden{c["op"], c["attrs"], {}, tensorOf(c["output"]), {}};
    golden.text = golden.op + " " + c["attrs"].dump();
    for (const nlohmann::json& input : c["inputs"]) {
      golden.inputs.push_back(tensorOf(input));
      golden.text += " " + input["dtype"].get<std::string>() + input["sizes"].dump();
    }
    goldens.push_back(std::move(golden));
  }
  return goldens;
}

inline ValueId applyGolden(FusionBuilder& b, const Golden& golden, const std::vector<ValueId>& in) {
  const nlohmann::json& attrs = golden.attrs;
  if (golden.op == "softmax") return softmax(b, in[0], attrs["axis"].get<int64_t>());
  if (golden.op == "layer_norm")
    return layerNorm(b, in[0], in[1], in[2], attrs["eps"].get<double>());
  if (golden.op == "swiglu") return swiglu(b, in[0], in[1]);
  if (golden.op == "gelu") {
    return gelu(b, in[0], attrs["approximate"] == "tanh" ? GeluKind::Tanh : GeluKind::None);
  }
  if (golden.op == "matmul") return b.matmul(in[0], in[1]);
  if (golden.op == "cast") {
    return b.cast(in[0], dtypeFromName(attrs["dtype"].get<std::string>()).value());
  }
  if (attrs.contains("axes")) {
    return b.reduce(golden.op, in[0], attrs["axes"].get<std::vector<int64_t>>(),
                    attrs["keepdim"].get<bool>());
  }
  return b.pointwise(golden.op, in);
}

inline Fusion fusionOf(const Golden& golden) {
  FusionBuilder b("golden");
  std::vector<ValueId> in;
  for (const HostTensor& tensor : golden.inputs) {
    const std::vector<Size> sizes(tensor.sizes.begin(), tensor.sizes.end());
    in.push_back(b.input("x" + std::to_string(in.size()), tensor.dtype, sizes));
  }
  b.output(applyGolden(b, golden, in));
  return std::move(b).build();
}

inline bool isSum(const Golden& golden) {
  return golden.op == "matmul" || golden.op == "sum" || golden.op == "layer_norm" ||
         golden.op == "gelu";
}

// The sum of the finite operands: what a sum in any order may be off by is relative to it.
inline double magnitude(const Golden& golden) {
  double sum = 0;
  for (const HostTensor& input : golden.inputs) {
    for (int64_t i = 0; i < input.numel(); ++i) {
      const double value = std::fabs(toDouble(input.at(i)));
      if (std::isfinite(value)) sum += value;
    }
  }
  return sum;
}

// Empty when right. Integers and bools are equal; floats differ by at most four units in the last
// place of their dtype: of the element (what is below the smallest normal number may be 0) or,
// where sums may cancel, of the sum of the operands.
inline std::string compare(const HostTensor& got, const Golden& golden) {
  const HostTensor& expected = golden.output;
  constexpr double kUlps = 4;
  if (got.dtype != expected.dtype) {
    return "dtype " + std::string(name(got.dtype)) + ", expected " +
           std::string(name(expected.dtype));
  }
  if (got.sizes != expected.sizes)
    return "sizes " + str(got.sizes) + ", expected " + str(expected.sizes);
  const double unit = got.dtype == DType::BF16  ? std::ldexp(1.0, -7)
                      : got.dtype == DType::F32 ? std::ldexp(1.0, -23)
                                                : std::ldexp(1.0, -52);
  const double normal = got.dtype == DType::F64 ? 2.3e-308 : 1.2e-38;
  const double scale = isSum(golden) ? magnitude(golden) : 0;
  for (int64_t i = 0; i < expected.numel(); ++i) {
    const Scalar a = got.at(i);
    const Scalar e = expected.at(i);
    const auto* x = std::get_if<double>(&a);
    const auto* y = std::get_if<double>(&e);
    const bool same = x == nullptr || y == nullptr ? a == e
                      : std::isnan(*y)             ? std::isnan(*x)
                      : std::isinf(*y)             ? *x == *y
                                                   : std::fabs(*x - *y) <=
                                             kUlps * unit * std::max(scale, std::fabs(*y)) + normal;
    if (same) continue;
    return fmt::format("element {} is {}, expected {}", i, toDouble(a), toDouble(e));
  }
  return "";
}

}  // namespace heddle::testing
