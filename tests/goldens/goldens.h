#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "ir/types/host_tensor.h"

// Reads the cases of tests/goldens/*.json and builds fusions that compute them. common.py describes
// the content of the files.
namespace heddle::testing {

struct Golden {
  std::string family;
  std::string call;                // "softmax(%x0, axis=1)"
  std::vector<std::string> setup;  // statements before the call: "%t0 = permute(%x1, axes=[1, 0])"
  std::vector<HostTensor> inputs;
  std::vector<HostTensor> outputs;
  double ulps = 4;
  bool sums = false;
  bool reference = false;  // only the reference evaluator runs the case
  std::string text;        // a short form of the case, for messages

  std::string op() const { return call.substr(0, call.find('(')); }
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

inline std::string typeText(const HostTensor& tensor) {
  return fmt::format("{}[{}]", name(tensor.dtype), fmt::join(tensor.sizes, ", "));
}

inline std::vector<Golden> readGoldens(const std::string& family) {
  std::ifstream file("tests/goldens/" + family + ".json");
  const nlohmann::json json = nlohmann::json::parse(file);
  std::vector<HostTensor> tensors;
  for (const nlohmann::json& tensor : json["tensors"]) tensors.push_back(tensorOf(tensor));
  std::vector<Golden> goldens;
  for (const nlohmann::json& c : json["cases"]) {
    Golden golden;
    golden.family = family;
    golden.call = c["call"];
    golden.setup = c.value("setup", golden.setup);
    for (size_t at : c["inputs"]) golden.inputs.push_back(tensors.at(at));
    for (size_t at : c["outputs"]) golden.outputs.push_back(tensors.at(at));
    golden.ulps = c.value("ulps", 4.0);
    golden.sums = c.value("sums", false);
    golden.reference = c.value("reference", false);
    golden.text = family + ": ";
    for (const std::string& statement : golden.setup) golden.text += statement + "; ";
    golden.text += golden.call;
    for (const HostTensor& input : golden.inputs) golden.text += " " + typeText(input);
    goldens.push_back(std::move(golden));
  }
  return goldens;
}

inline std::vector<std::string> goldenFamilies() {
  std::vector<std::string> families;
  std::error_code absent;  // no families if the current folder has no tests/goldens
  for (const auto& entry : std::filesystem::directory_iterator("tests/goldens", absent)) {
    if (entry.path().extension() == ".json") families.push_back(entry.path().stem().string());
  }
  std::sort(families.begin(), families.end());
  return families;
}

// Renames %x0, %x1, ... in a statement to %PREFIX0, %PREFIX1, ..., and %t0, %t1, ... to %PREFIXt0,
// %PREFIXt1, ...
inline std::string renamed(const std::string& statement, const std::string& prefix) {
  std::string text;
  for (size_t i = 0; i < statement.size(); ++i) {
    const bool named = statement[i] == '%' && i + 2 < statement.size() &&
                       (statement[i + 1] == 'x' || statement[i + 1] == 't') &&
                       std::isdigit(static_cast<unsigned char>(statement[i + 2])) != 0;
    text += statement[i];
    if (!named) continue;
    text += prefix + (statement[++i] == 't' ? "t" : "");
  }
  return text;
}

// Builds one fusion that computes several cases. The inputs of case i are c<i>_0, c<i>_1, ..., and
// its results are r<i>_0, r<i>_1, ... The outputs are all results in order. With `joined`, one more
// output reads all results, so that all cases can become one kernel. All results must then have the
// same shape.
inline Fusion fusionOf(const std::vector<const Golden*>& goldens, bool joined = false) {
  std::string inputs;
  std::string body;
  std::vector<std::string> results;
  for (size_t i = 0; i < goldens.size(); ++i) {
    const Golden& golden = *goldens[i];
    for (size_t k = 0; k < golden.inputs.size(); ++k) {
      inputs += fmt::format("{}%c{}_{}: {}", inputs.empty() ? "" : ", ", i, k,
                            typeText(golden.inputs[k]));
    }
    std::vector<std::string> mine;
    for (size_t k = 0; k < golden.outputs.size(); ++k) {
      mine.push_back(fmt::format("%r{}_{}", i, k));
    }
    const std::string prefix = fmt::format("c{}_", i);
    for (const std::string& statement : golden.setup) {
      body += "  " + renamed(statement, prefix) + "\n";
    }
    body += fmt::format("  {} = {}\n", fmt::join(mine, ", "), renamed(golden.call, prefix));
    results.insert(results.end(), mine.begin(), mine.end());
  }
  if (joined) {
    for (size_t i = 0; i < results.size(); ++i) {
      body += fmt::format("  %b{0} = cast({1}, dtype=bool)\n", i, results[i]);
      if (i > 0)
        body +=
            fmt::format("  %j{0} = logical_or({1}{2}, %b{0})\n", i, i == 1 ? "%b" : "%j", i - 1);
    }
    results.push_back(results.size() > 1 ? fmt::format("%j{}", results.size() - 1) : "%b0");
  }
  return parseFusion(fmt::format("heddle 1\nfusion golden({}) {{\n{}  return {}\n}}\n", inputs,
                                 body, fmt::join(results, ", ")));
}

inline Fusion fusionOf(const Golden& golden) { return fusionOf({&golden}); }

// Returns the sum of the absolute values of the finite operands. The rounding error of a sum is
// proportional to this value, whatever the order of the terms.
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

// - `unit`: distance from 1 to the next number of the dtype
// - `normal`: absolute error that is always allowed, for tiny values. It is the smallest normal
//   number of the dtype. For f16, whose smallest normal number is not tiny, it is four times the
//   smallest subnormal number.
struct Precision {
  double unit;
  double normal;
};
inline Precision precisionOf(DType dtype) {
  if (isFloat8(dtype)) return {0, 0};  // only casts create f8 values, and casts are exact
  if (dtype == DType::F16) return {std::ldexp(1.0, -10), std::ldexp(1.0, -22)};
  if (dtype == DType::BF16) return {std::ldexp(1.0, -7), 1.2e-38};
  if (dtype == DType::F32) return {std::ldexp(1.0, -23), 1.2e-38};
  return {std::ldexp(1.0, -52), 2.3e-308};
}

// Returns an empty text if the output is right. Integers and bools must be equal. Floats may differ
// by `ulps` units in the last place of the expected element. If `sums` is set, the terms of a sum
// may cancel. The units are then those of magnitude(). The error Precision::normal is allowed in
// addition.
inline std::string compare(const HostTensor& got, const Golden& golden, size_t output) {
  const HostTensor& expected = golden.outputs.at(output);
  if (got.dtype != expected.dtype || got.sizes != expected.sizes) {
    return fmt::format("output {} is {}, expected {}", output, typeText(got), typeText(expected));
  }
  const Precision precision = precisionOf(got.dtype);
  const double scale = golden.sums ? magnitude(golden) : 0;
  for (int64_t i = 0; i < expected.numel(); ++i) {
    const Scalar a = got.at(i);
    const Scalar e = expected.at(i);
    const auto* x = std::get_if<double>(&a);
    const auto* y = std::get_if<double>(&e);
    const bool same =
        x == nullptr || y == nullptr ? a == e
        : std::isnan(*y)             ? std::isnan(*x)
        : std::isinf(*y)
            ? *x == *y
            : std::fabs(*x - *y) <=
                  golden.ulps * precision.unit * std::max(scale, std::fabs(*y)) + precision.normal;
    if (same) continue;
    return fmt::format("output {}, element {} is {}, expected {}", output, i, toDouble(a),
                       toDouble(e));
  }
  return "";
}

}  // namespace heddle::testing
