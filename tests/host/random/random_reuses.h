#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tests/host/random/random_fusions.h"
#include "tests/host/random/random_reference.h"

// Compares random fusions whose outputs are stored in inputs with the reference, on one rank and on
// several. Streams run in adversarial order.
namespace heddle::host::random_reuses {

constexpr int kInputs = 4;

class FusionWriter {
 public:
  // `stores` says whether outputs are stored in inputs.
  FusionWriter(uint64_t seed, bool sharded, bool stores = true)
      : random_(seed), sharded_(sharded), stores_(stores) {}

  // Returns a fusion over square matrices %x0 to %x3. If `stores` is true, some of its outputs are
  // stored in inputs.
  std::string write() {
    std::string text =
        sharded_ ? "heddle 1\nmesh @m = [x=ranks]\nfusion f(" : "heddle 1\nfusion f(";
    for (int i = 0; i < kInputs; ++i) {
      text += fmt::format("{}%x{}: f32[n, n]{}", i > 0 ? ", " : "", i, sharding());
      values_.push_back(fmt::format("%x{}", i));
    }
    text += ") with n = 6 {\n";
    const int ops = 2 + below(7);
    for (int i = 0; i < ops; ++i) text += statement(i);
    return text + "  return " + outputs() + "\n}\n";
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  std::string sharding() {
    const std::array<std::string, 4> all = {"", " shard(@m)", " shard(@m, 0: x)",
                                            " shard(@m, 1: x)"};
    return sharded_ ? all[static_cast<size_t>(below(4))] : "";
  }
  // Prefers recent values.
  std::string operand() {
    const int count = static_cast<int>(values_.size());
    return values_[static_cast<size_t>(std::max(below(count), below(count)))];
  }

  std::string statement(int number) {
    const std::string y = fmt::format("%y{}", number);
    const std::string a = operand(), b = operand();
    values_.push_back(y);
    switch (below(9)) {
      case 0:
      case 1:
        return fmt::format("  {} = add({}, {})\n", y, a, b);
      case 2:
      case 3:
        return fmt::format("  {} = sub({}, {})\n", y, a, b);
      case 4:
        return fmt::format("  {} = permute({}, axes=[1, 0])\n", y, a);
      case 5:
        return fmt::format("  {} = flip({}, axes=[{}])\n", y, a, below(2));
      case 6:
        return fmt::format("  {0}s = sum({1}, axes=[{2}], keepdim=true)\n  {0} = sub({3}, {0}s)\n",
                           y, a, below(2), b);
      case 7:
        return fmt::format("  {} = matmul({}, {})\n", y, a, b);
      default:
        return fmt::format("  {} = relu({})\n", y, a);
    }
  }

  std::string outputs() {
    std::vector<int> free;
    for (int i = 0; i < kInputs; ++i) free.push_back(i);
    std::shuffle(free.begin(), free.end(), random_);
    std::string text;
    const int count = 1 + below(4);
    for (int i = 0; i < count; ++i) {
      text += (i > 0 ? ", " : "") +
              (below(4) == 0 ? values_[static_cast<size_t>(below(kInputs))] : operand());
      if (!stores_ || below(4) == 0) continue;
      text += fmt::format(" in %x{}", free.back());
      free.pop_back();
    }
    return text;
  }

  std::mt19937_64 random_;
  const bool sharded_;
  const bool stores_;
  std::vector<std::string> values_;
};

inline void expectReference(uint64_t seed, int ranks, DeviceKind kind) {
  const std::string text = FusionWriter(seed, ranks > 1).write();
  const Fusion fusion = parseFusion(text, "random");
  EXPECT_TRUE(sameGraph(parseFusion(print(fusion), "again"), fusion)) << text;
  testing::expectReference(text, seed, ranks, kind, {{"n", 6}});
}

}  // namespace heddle::host::random_reuses
