// Creates random fusions with cats: two to five pieces along any axis, which are computed values,
// inputs, views, other cats or empty. Compares their results on one to three ranks with the
// reference evaluator on the unsharded fusion. Streams run in adversarial order, and fresh memory
// is NaN, so an element of a cat that nothing writes is an error.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "host/compile.h"
#include "host/passes/pipeline.h"
#include "ir/base/check.h"
#include "ir/composite/composite.h"
#include "ir/graph/builder.h"
#include "ir/segment/segment.h"
#include "ir/text/fusion_text.h"
#include "tests/host/rank_harness.h"
#include "tests/sanitized.h"
#include "tools/random/choices.h"

namespace heddle::host::random_cats_cpu_test {
namespace {

constexpr size_t kRank = 3;

// All values have three axes. The extents of a value may differ from those of the inputs, because
// cats lengthen an axis and slices shorten it.
class Generator {
 public:
  explicit Generator(uint64_t seed) : choose_(seed) {}

  int ranks() const { return ranks_; }

  Fusion make() {
    ranks_ = static_cast<int>(choose_.pick({1, 1, 2, 3}));
    b_.mesh({"m", {{MeshAxis::X, ranks_}}, {}});
    const bool constants = choose_.oneIn(3);
    for (const char* symbol : {"a", "b", "c"}) {
      const int64_t size = choose_.pick<int64_t>({0, 1, 2, 3, 4, 5, 8, 16});
      extents_.push_back(constants ? Size(size) : Size::symbol(symbol));
      b_.sizeDefault(symbol, size);
    }
    for (const char* name : {"x", "y"}) addInput(name);
    for (int64_t ops = choose_.between(3, 9); ops > 0; --ops) addOp();
    addCat();
    b_.output(values_.back());
    for (int64_t more = choose_.below(3); more > 0; --more) b_.output(choose_.pick(values_));
    return std::move(b_).build();
  }

 private:
  void addInput(const char* name) {
    const ValueId id = b_.input(name, DType::F32, extents_);
    values_.push_back(id);
    if (choose_.oneIn(2)) return;
    Sharding sharding;
    sharding.axes.resize(kRank);
    sharding.axes[static_cast<size_t>(choose_.below(kRank))] = {MeshAxis::X};
    b_.shard(id, sharding);
  }

  std::vector<Size> sizesOf(ValueId id) const { return b_.fusion().tensor(id).sizes(); }
  void push(ValueId id) { values_.push_back(id); }

  void addOp() {
    const ValueId x = choose_.pick(values_);
    const int64_t axis = choose_.below(kRank);
    switch (choose_.below(9)) {
      case 0:
      case 1:
        return push(b_.pointwise(choose_.pick({"sin", "neg", "relu"}), {x}));
      case 2:
        return push(b_.pointwise(choose_.pick({"add", "mul"}), {x, partnerOf(x)}));
      case 3:
        return push(softmax(b_, x, axis));
      case 4:
        return push(b_.flip(x, {axis}));
      case 5:
        return push(b_.permute(x, {axis, (axis + 1) % 3, (axis + 2) % 3}));
      case 6:
        push(b_.set(x));
        return b_.requireOrder(values_.back(), {2, 0, 1});
      case 7:
        return push(b_.reduce("sum", x, {axis}, true));
      default:
        return addCat();
    }
  }

  // Returns a value with the sizes of x. It may be x itself.
  ValueId partnerOf(ValueId x) {
    const ValueId y = choose_.pick(values_);
    return sizesOf(y) == sizesOf(x) ? y : x;
  }

  void addCat() {
    const ValueId first = choose_.pick(values_);
    const int64_t axis = choose_.below(kRank);
    std::vector<ValueId> pieces = {first};
    for (int64_t more = choose_.between(1, 4); more > 0; --more) {
      pieces.push_back(pieceLike(first, axis));
    }
    choose_.shuffle(pieces);
    push(cat(b_, pieces, axis));
  }

  // Returns a value whose sizes differ from those of x at most along the axis.
  ValueId pieceLike(ValueId x, int64_t axis) {
    std::vector<Size> want = sizesOf(x);
    for (int tries = 2; tries > 0; --tries) {
      const ValueId y = choose_.pick(values_);
      std::vector<Size> sizes = sizesOf(y);
      sizes[static_cast<size_t>(axis)] = want[static_cast<size_t>(axis)];
      if (sizes == want) return y;
    }
    if (choose_.oneIn(4)) return sliceAxis(b_, x, axis, Size(0), Size(choose_.below(3)));
    if (choose_.oneIn(4)) return b_.reduce("max", x, {axis}, true);
    return b_.pointwise("cos", {x});
  }

  random::Choices choose_;
  FusionBuilder b_{"random"};
  int ranks_ = 1;
  std::vector<Size> extents_;
  std::vector<ValueId> values_;
};

// Returns the number of cats that become groups of their own (GroupKind::Cat).
int64_t countCats(const Fusion& fusion, int ranks) {
  const SegmentedFusion segmented = segment(runFusionPasses(fusion, ranks, {}));
  return std::count_if(segmented.groups.begin(), segmented.groups.end(),
                       [](const Group& group) { return group.kind == GroupKind::Cat; });
}

// Runs one case, and returns the number of its cats that become groups of their own.
int64_t check(uint64_t seed) {
  Generator generator(seed);
  const Fusion fusion = generator.make();
  testing::HarnessOptions options;
  options.ranks = generator.ranks();
  options.seed = seed;
  options.sizes = testing::defaultSizes(fusion.size_defaults);
  options.cpu.adversarial_seed = seed;
  const std::string what = fmt::format("seed {}, {} ranks\n{}", seed, options.ranks, print(fusion));
  std::vector<HostTensor> got;
  try {
    got = testing::runProgram(compile(fusion, options.ranks), options);
  } catch (const std::exception& e) {
    ADD_FAILURE() << e.what() << "\n" << what;
    return 0;
  }
  const std::vector<HostTensor> expected = testing::expectedOf(fusion, options);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_LE(testing::relativeError(got[i], expected[i]), 1e-4) << "output " << i << ", " << what;
  }
  return countCats(fusion, options.ranks);
}

// Compiling would take long, so the reference evaluator runs the kernels.
TEST(RandomCats, ReferenceKernelsMatchTheUnshardedFusion) {
  setenv("HEDDLE_CXX", "/nonexistent/compiler", 1);
  const char* from = std::getenv("HEDDLE_RANDOM_FROM");
  const char* count = std::getenv("HEDDLE_RANDOM_COUNT");
  const uint64_t first = from != nullptr ? std::strtoull(from, nullptr, 10) : 1;
  const uint64_t cases = count != nullptr ? std::strtoull(count, nullptr, 10)
                                          : heddle::testing::casesOf<uint64_t>(200, 12);
  int64_t cats = 0;
  for (uint64_t seed = first; seed < first + cases; ++seed) cats += check(seed);
  unsetenv("HEDDLE_CXX");
  EXPECT_GE(cats * 3, static_cast<int64_t>(cases));
}

TEST(RandomCats, CompiledKernelsMatchTheUnshardedFusion) {
  for (uint64_t seed = 100001; seed <= heddle::testing::casesOf(100012U, 100002U); ++seed)
    check(seed);
}

}  // namespace
}  // namespace heddle::host::random_cats_cpu_test
