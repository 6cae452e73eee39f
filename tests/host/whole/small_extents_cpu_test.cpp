// Compares sharded ops on tensors with extents 0 to 3 with results of NumPy
// (tests/goldens/small_extents.py). There are more ranks than elements, so some ranks hold empty
// blocks. These ranks must add nothing to a result.
#include <gtest/gtest.h>

#include <random>

#include "host/compile.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tests/goldens/goldens.h"
#include "tests/host/rank_harness.h"
#include "tests/sanitized.h"

namespace heddle::host::small_extents_cpu_test {
namespace {

using heddle::testing::Golden;

// Chooses ranks, mesh and shardings at random, and whether extents are constants or symbols.
class Sharder {
 public:
  explicit Sharder(uint32_t seed) : random_(seed) {
    ranks = pick({2, 2, 3, 4, 8});
    two_axes_ = (ranks == 4 || ranks == 8) && below(3) == 0;
    symbols_ = below(2) == 0;
  }

  std::string fusionOf(const Golden& golden) {
    std::string inputs;
    for (size_t i = 0; i < golden.inputs.size(); ++i) {
      inputs += fmt::format("{}%x{}: {}", i == 0 ? "" : ", ", i, typeOf(golden.inputs[i]));
    }
    std::string defaults;
    for (const auto& [extent, symbol] : names_) {
      defaults += fmt::format("{}{} = {}", defaults.empty() ? " with " : ", ", symbol, extent);
    }
    std::vector<std::string> results;
    for (size_t i = 0; i < golden.outputs.size(); ++i) results.push_back(fmt::format("%r{}", i));
    const std::string names = fmt::format("{}", fmt::join(results, ", "));
    return fmt::format(
        "heddle 1\nmesh @m = {}\nfusion f({}){} {{\n  {} = {}\n  return {}\n}}\n",
        two_axes_ ? fmt::format("[y=2, x={}]", ranks / 2) : fmt::format("[x={}]", ranks), inputs,
        defaults, names, golden.call, names);
  }

  int ranks = 1;

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  int pick(std::initializer_list<int> from) {
    return *(from.begin() + below(static_cast<int>(from.size())));
  }

  // Axes of equal extent share a symbol, so that ops that need equal extents accept them.
  std::string extentText(int64_t extent) {
    if (!symbols_) return std::to_string(extent);
    return names_.emplace(extent, fmt::format("n{}", extent)).first->second;
  }

  std::string typeOf(const HostTensor& tensor) {
    std::vector<std::string> extents;
    std::vector<std::string> axes(tensor.sizes.size());
    for (int64_t extent : tensor.sizes) extents.push_back(extentText(extent));
    for (const char* mesh_axis : {"y", "x"}) {
      if ((mesh_axis[0] == 'y' && !two_axes_) || axes.empty() || below(4) == 0) continue;
      std::string& axis = axes[static_cast<size_t>(below(static_cast<int>(axes.size())))];
      axis += (axis.empty() ? "" : ", ") + std::string(mesh_axis);
    }
    std::string sharding = "shard(@m";
    for (size_t i = 0; i < axes.size(); ++i) {
      if (!axes[i].empty()) sharding += fmt::format(", {}: [{}]", i, axes[i]);
    }
    return fmt::format("{}[{}] {})", name(tensor.dtype), fmt::join(extents, ", "), sharding);
  }

  std::mt19937 random_;
  bool two_axes_ = false;
  bool symbols_ = false;
  std::map<int64_t, std::string> names_;
};

void expectSharded(const Golden& golden, uint32_t seed) {
  Sharder sharder(seed);
  const std::string text = sharder.fusionOf(golden);
  SCOPED_TRACE(fmt::format("{} ranks, seed {}\n{}", sharder.ranks, seed, text));
  try {
    const Fusion fusion = parseFusion(text);
    testing::HarnessOptions options;
    options.ranks = sharder.ranks;
    options.sizes = testing::defaultSizes(fusion.size_defaults);
    for (size_t i = 0; i < golden.inputs.size(); ++i) {
      options.tensors[fmt::format("x{}", i)] = golden.inputs[i];
    }
    const std::vector<HostTensor> got =
        testing::runProgram(compile(fusion, options.ranks), options);
    for (size_t i = 0; i < golden.outputs.size(); ++i) {
      EXPECT_EQ(heddle::testing::compare(got.at(i), golden, i), "");
    }
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
}

// The parameter is one of kParts parts of the cases. ctest runs the parts at the same time.
class SmallExtentsCpu : public ::testing::TestWithParam<size_t> {};
constexpr size_t kParts = 4;

// The reference evaluator runs the kernels of every case, but with sanitizers only of some cases.
TEST_P(SmallExtentsCpu, ReferenceKernelsOnManyRanksMatchNumPy) {
  setenv("HEDDLE_CXX", "/nonexistent/compiler", 1);
  const std::vector<Golden> goldens = heddle::testing::readGoldens("small_extents");
  constexpr size_t stride = heddle::testing::kOneIn;
  for (size_t i = stride * GetParam(); i < goldens.size(); i += stride * kParts) {
    expectSharded(goldens[i], static_cast<uint32_t>(i + 1));
  }
  unsetenv("HEDDLE_CXX");
}

// Compiling takes long, so only every n-th case runs. HEDDLE_SMALL_STEP gives n.
// HEDDLE_SMALL_FROM gives the first case, and changes the seeds.
TEST_P(SmallExtentsCpu, CompiledKernelsOnManyRanksMatchNumPy) {
  const char* from = std::getenv("HEDDLE_SMALL_FROM");
  const char* step = std::getenv("HEDDLE_SMALL_STEP");
  const size_t first = from == nullptr ? 0 : std::stoull(from);
  const size_t stride = step == nullptr ? 13 * heddle::testing::kOneIn : std::stoull(step);
  const std::vector<Golden> goldens = heddle::testing::readGoldens("small_extents");
  for (size_t i = first % stride + stride * GetParam(); i < goldens.size(); i += stride * kParts) {
    expectSharded(goldens[i], static_cast<uint32_t>(first + i + 1));
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, SmallExtentsCpu, ::testing::Range(size_t{0}, kParts));

}  // namespace
}  // namespace heddle::host::small_extents_cpu_test
