#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "ir/base/check.h"
#include "tests/host/random/random_reference.h"

// Compares random fusions of many small independent chains with the reference, on one rank and on
// several. Segmentation lets most of these chains share launches. Streams run in adversarial order.
namespace heddle::host::random_parts {

class FusionWriter {
 public:
  FusionWriter(uint64_t seed, bool sharded) : random_(seed), sharded_(sharded) {}

  // Returns a fusion with chains on tensors of different sizes. The chains may read the tensors %s
  // and %t without axes, and the sum of another chain.
  std::string write() {
    const int chains = 3 + below(10);
    std::string body;
    for (int chain = 0; chain < chains; ++chain) body += chainText(chain);
    return fmt::format(
        "heddle 1\n{}fusion f(%s: f32[], %t: f32[], %k: f64 = 0.5{}) {{\n{}  return {}\n}}\n",
        sharded_ ? "mesh @m = [x=ranks]\n" : "", inputs_, body, outputs_.substr(2));
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }

  std::string chainText(int chain) {
    std::string sizes;
    const int rank = 1 + below(3);
    for (int axis = 0; axis < rank; ++axis) {
      sizes += fmt::format("{}{}", axis > 0 ? ", " : "", std::array{1, 3, 8, 13, 61, 70}[below(6)]);
    }
    const std::array<std::string, 4> shardings = {"", " shard(@m)", " shard(@m, 0: x)", ""};
    const std::string input = fmt::format("%x{}", chain);
    const std::array<std::string, 3> dtypes = {"f32", "f32", "bf16"};
    const std::string dtype = dtypes[static_cast<size_t>(below(3))];
    inputs_ += fmt::format(", {}: {}[{}]{}", input, dtype, sizes,
                           sharded_ ? shardings[static_cast<size_t>(below(4))] : "");
    std::string text;
    std::string value = input;
    const int ops = 1 + below(4);
    for (int i = 0; i < ops; ++i) text += statement(fmt::format("%y{}_{}", chain, i), input, value);
    if (below(6) == 0) {
      text += fmt::format("  %q{0} = sum({1})\n  %r{0} = mul(%q{0}, 0.01)\n", chain, value);
      sums_.push_back(fmt::format("%r{}", chain));
    }
    // Every fourth result replaces its input.
    const bool reuses = below(4) == 0 && dtype == "f32";
    outputs_ += ", " + value + (reuses ? " in " + input : "");
    return text;
  }

  // Appends an op that reads `value`, and makes its result the new `value`.
  std::string statement(const std::string& result, const std::string& input, std::string& value) {
    const std::string of = value;
    value = result;
    switch (below(8)) {
      case 0:
        return fmt::format("  {} = mul({}, %s)\n", result, of);
      case 1:
        return fmt::format("  {} = add({}, %t)\n", result, of);
      case 2:
        return fmt::format("  {} = sub({}, {})\n", result, of, input);
      case 3:
        return fmt::format("  {} = mul({}, %k)\n", result, of);
      case 4:
        return fmt::format("  {} = flip({}, axes=[0])\n", result, of);
      case 5:
        return sums_.empty() ? fmt::format("  {} = abs({})\n", result, of)
                             : fmt::format("  {} = add({}, {})\n", result, of, sums_.back());
      case 6:
        return fmt::format("  {} = tanh({})\n", result, of);
      default:
        return fmt::format("  {} = relu({})\n", result, of);
    }
  }

  std::mt19937_64 random_;
  const bool sharded_;
  std::string inputs_;
  std::string outputs_;
  std::vector<std::string> sums_;
};

inline void expectReference(uint64_t seed, int ranks, DeviceKind kind) {
  testing::expectReference(FusionWriter(seed, ranks > 1).write(), seed, ranks, kind);
}

}  // namespace heddle::host::random_parts
