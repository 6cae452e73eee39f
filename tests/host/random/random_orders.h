#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "host/compile.h"
#include "ir/base/check.h"
#include "ir/composite/composite.h"
#include "ir/graph/builder.h"
#include "ir/text/fusion_text.h"
#include "tests/host/rank_harness.h"
#include "tools/random/choices.h"

// Creates random fusions whose inputs have random memory orders and whose outputs require random
// orders. Compares the results on one to three ranks with the reference evaluator, which knows no
// orders. Also compares the strides of the outputs with the required orders. Streams run in
// adversarial order, and fresh memory is NaN.
namespace heddle::host::random_orders {

inline constexpr size_t kRank = 3;

// All values have three axes.
class Generator {
 public:
  explicit Generator(uint64_t seed) : choose_(seed) {}

  int ranks() const { return ranks_; }

  Fusion make() {
    ranks_ = static_cast<int>(choose_.pick({1, 1, 2, 3}));
    b_.mesh({"m", {{MeshAxis::X, ranks_}}, {}});
    const bool constants = choose_.oneIn(2);
    for (const char* symbol : {"a", "b", "c"}) {
      const int64_t size = choose_.pick<int64_t>({1, 2, 3, 4, 6, 8});
      extents_.push_back(constants ? Size(size) : Size::symbol(symbol));
      b_.sizeDefault(symbol, size);
    }
    for (const char* name : {"x", "y", "z"}) addInput(name);
    for (int64_t ops = choose_.between(2, 8); ops > 0; --ops) addOp();
    addOutput(values_.back());
    for (int64_t more = choose_.below(3); more > 0; --more) addOutput(choose_.pick(values_));
    return std::move(b_).build();
  }

 private:
  AxisOrder randomOrder() {
    AxisOrder order = rowMajor(kRank);
    choose_.shuffle(order);
    return order;
  }

  Sharding randomSharding() {
    Sharding sharding;
    sharding.axes.resize(kRank);
    if (!choose_.oneIn(3)) {
      sharding.axes[static_cast<size_t>(choose_.below(kRank))] = {MeshAxis::X};
    }
    return sharding;
  }

  void addInput(const char* name) {
    TensorView type;
    type.dtype = choose_.oneIn(4) ? DType::F64 : DType::F32;
    for (const Size& size : extents_) type.domain.push_back({size, IterKind::Iteration});
    if (!choose_.oneIn(3)) {
      type.layout.observed = {randomOrder(), std::vector<bool>(kRank, true)};
    }
    values_.push_back(b_.input(name, std::move(type)));
    if (choose_.oneIn(2)) b_.shard(values_.back(), randomSharding());
  }

  void addOutput(ValueId id) {
    const bool is_ordered = !choose_.oneIn(3);
    b_.output(id, is_ordered ? std::optional(randomOrder()) : std::nullopt);
    if (choose_.oneIn(3)) b_.output(id, randomOrder());
  }

  std::vector<Size> sizesOf(ValueId id) const { return b_.fusion().tensor(id).sizes(); }
  void push(ValueId id) { values_.push_back(id); }

  void addOp() {
    const size_t before = values_.size();
    const ValueId x = choose_.pick(values_);
    addOp(x, choose_.below(kRank));
    if (values_.size() == before) return;
    const ValueId made = values_.back();
    const TensorView& tensor = b_.fusion().tensor(made);
    const bool is_whole =
        std::all_of(tensor.domain.begin(), tensor.domain.end(),
                    [](const IterDomain& axis) { return axis.kind == IterKind::Iteration; });
    if (is_whole && choose_.oneIn(5)) b_.shard(made, randomSharding());
    if (choose_.oneIn(8)) b_.requireOrder(made, randomOrder());
  }

  void addOp(ValueId x, int64_t axis) {
    switch (choose_.below(12)) {
      case 0:
      case 1:
        return push(b_.pointwise(choose_.pick({"sin", "neg", "relu"}), {x}));
      case 2:
      case 3:
        return push(b_.pointwise(choose_.pick({"add", "mul"}), {x, partnerOf(x)}));
      case 4:
        return push(softmax(b_, x, axis));
      case 5:
        return push(b_.reduce("sum", x, {axis}, true));
      case 6:
        return push(b_.permute(x, randomOrder()));
      case 7:
        return push(b_.set(x));
      case 8:
        return push(cat(b_, {x, partnerOf(x)}, axis));
      case 9:
        return regroup(x);
      case 10:
        return product(x);
      default:
        return push(sliceAxis(b_, x, axis, Size(0), Size(1)));
    }
  }

  // Returns a value with the sizes of x. It may be x itself.
  ValueId partnerOf(ValueId x) {
    const ValueId y = choose_.pick(values_);
    return sizesOf(y) == sizesOf(x) ? y : x;
  }

  // Merges two axes, computes, and splits them again.
  void regroup(ValueId x) {
    const std::vector<Size> sizes = sizesOf(x);
    const bool first = choose_.oneIn(2);
    std::vector<Size> merged = first ? std::vector<Size>{sizes[0] * sizes[1], sizes[2]}
                                     : std::vector<Size>{sizes[0], sizes[1] * sizes[2]};
    ValueId flat = b_.reshape(x, merged, true);
    if (choose_.oneIn(2)) flat = b_.pointwise("cos", {flat});
    push(b_.reshape(flat, sizes, true));
  }

  void product(ValueId x) {
    const DType dtype = b_.fusion().tensor(x).dtype;
    const ValueId y = b_.permute(b_.cast(partnerOf(x), dtype), {0, 2, 1});
    const ValueId product = b_.matmul(x, y);
    push(choose_.oneIn(2) ? product : b_.pointwise("tanh", {product}));
  }

  random::Choices choose_;
  FusionBuilder b_{"random"};
  int ranks_ = 1;
  std::vector<Size> extents_;
  std::vector<ValueId> values_;
};

// Returns the strides of memory in this order, computed without the code under test.
inline std::vector<int64_t> stridesIn(const AxisOrder& order, const std::vector<int64_t>& alloc) {
  std::vector<int64_t> strides(order.size());
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(order[i]);
    strides[axis] = stride;
    stride *= std::max<int64_t>(alloc[axis], 1);
  }
  return strides;
}

inline void expectOrders(const Fusion& fusion, const testing::RankOutputs& outputs,
                         const std::string& what) {
  for (size_t i = 0; i < outputs.descs.size(); ++i) {
    const std::optional<AxisOrder>& order = fusion.outputOrders()[i];
    const TensorDesc& desc = outputs.descs[i];
    if (!order || !desc.held || desc.numel() == 0) continue;
    const std::vector<int64_t> expected = stridesIn(*order, desc.alloc);
    for (size_t axis = 0; axis < desc.rank(); ++axis) {
      if (desc.alloc[axis] == 1) continue;
      EXPECT_EQ(desc.strides[axis], expected[axis])
          << "axis " << axis << " of output " << i << ", " << what;
    }
  }
}

inline void check(uint64_t seed, DeviceKind kind) {
  Generator generator(seed);
  const Fusion fusion = generator.make();
  testing::HarnessOptions options;
  options.ranks = generator.ranks();
  options.seed = seed;
  options.kind = kind;
  options.sizes = testing::defaultSizes(fusion.size_defaults);
  options.cpu.adversarial_seed = seed;
  const std::string what = fmt::format("seed {}, {} ranks\n{}", seed, options.ranks, print(fusion));
  std::vector<testing::RankOutputs> ranks(static_cast<size_t>(options.ranks));
  try {
    const Program program = compile(fusion, options.ranks);
    auto worlds = makeInProcessWorldsFor(options.kind, options.ranks);
    testing::onEachWorld(worlds, [&](int rank, std::unique_ptr<comm::World>& world) {
      const std::unique_ptr<Device> device = testing::makeTestDevice(options);
      ranks[static_cast<size_t>(rank)] = testing::runRank(program, *world, *device, options);
      world->barrier();  // the device must outlive the work of the other ranks
    });
  } catch (const std::exception& e) {
    ADD_FAILURE() << e.what() << "\n" << what;
    return;
  }
  for (const testing::RankOutputs& rank : ranks) expectOrders(fusion, rank, what);
  const std::vector<HostTensor> got = testing::assemble(ranks);
  const std::vector<HostTensor> expected = testing::expectedOf(fusion, options);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_LE(testing::relativeError(got[i], expected[i]), 1e-4) << "output " << i << ", " << what;
  }
}

}  // namespace heddle::host::random_orders
