// Compares random small fusions with random shardings on several ranks with the reference evaluator
// on the unsharded fusion. Streams run in adversarial order, and fresh memory is NaN.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "host/compile.h"
#include "ir/base/check.h"
#include "ir/graph/builder.h"
#include "ir/text/fusion_text.h"
#include "tests/host/rank_harness.h"
#include "tests/sanitized.h"

namespace heddle::host::random_sharding_cpu_test {
namespace {

struct Case {
  Fusion fusion;
  int ranks = 1;
};

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  Case make() {
    Case result;
    addMeshes(result);
    const bool constants = chance(3);
    for (const char* symbol : {"a", "b", "c"}) {
      const int64_t size = pick({0, 1, 2, 3, 4, 5, 7, 8, 9});
      extents_.push_back(constants ? Size(size) : Size::symbol(symbol));
      b_.sizeDefault(symbol, size);
    }
    inputs();
    const int ops = 3 + below(6);
    for (int i = 0; i < ops; ++i) addOp();
    b_.output(values_.back().id);
    if (chance(2)) b_.output(values_[static_cast<size_t>(below(size()))].id);
    result.fusion = std::move(b_).build();
    return result;
  }

 private:
  struct Made {
    ValueId id;
    bool exact;  // every device computes the same bits; only such values are compared or cast
  };

  int below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  bool chance(int one_in) { return below(one_in) == 0; }
  int size() const { return static_cast<int>(values_.size()); }
  template <class T>
  T pick(std::initializer_list<T> from) {
    return *(from.begin() + below(static_cast<int>(from.size())));
  }

  // Adds one or two meshes. A mesh contains all ranks of the job or some of them.
  void addMeshes(Case& made) {
    const auto x = MeshAxis::X;
    const auto y = MeshAxis::Y;
    const auto z = MeshAxis::Z;
    const std::vector<std::pair<int, Meshes>> all = {
        {1, {{"m", {{x, 1}}, {}}}},
        {2, {{"m", {{x, 2}}, {}}}},
        {3, {{"m", {{x, 3}}, {}}}},
        {4, {{"m", {{x, 4}}, {}}}},
        {4, {{"m", {{y, 2}, {x, 2}}, {}}}},
        {3, {{"m", {{y, 1}, {x, 3}}, {}}}},
        {4, {{"m", {{y, 2}, {x, 2}}, {3, 1, 0, 2}}}},
        {4, {{"m", {{x, 2}}, {3, 1}}}},
        {3, {{"m", {{x, 2}}, {0, 1}}, {"n", {{x, 1}}, {2}}}},
        {3, {{"m", {{x, 2}}, {0, 1}}, {"n", {{x, 2}}, {1, 2}}}},
        {4, {{"m", {{x, 2}}, {0, 1}}, {"n", {{x, 2}}, {2, 3}}}},
        {4, {{"m", {{y, 2}, {x, 2}}, {}}, {"n", {{x, 3}}, {1, 2, 3}}}},
        {8, {{"m", {{y, 2}, {x, 4}}, {}}}},
        {8, {{"m", {{z, 2}, {y, 2}, {x, 2}}, {}}}},
        {8, {{"m", {{x, 8}}, {}}}},
    };
    // Jobs of 8 ranks are slow on few processors, so only one case in six may have them.
    const size_t few = chance(6) ? all.size() : all.size() - 3;
    const auto& [ranks, meshes] = all[static_cast<size_t>(below(static_cast<int>(few)))];
    made.ranks = ranks;
    meshes_ = meshes;
    for (const DeviceMesh& mesh : meshes_) b_.mesh(mesh);
  }

  const DeviceMesh& meshOf(const Sharding& sharding) const { return meshes_[sharding.mesh]; }

  Sharding randomSharding(const TensorView& tensor) {
    Sharding sharding;
    sharding.mesh = MeshId(chance(3) ? meshes_.size() - 1 : 0);
    sharding.axes.resize(tensor.rank());
    for (const DeviceMesh::Axis& axis : meshOf(sharding).axes) {
      if (tensor.rank() == 0 || chance(3)) continue;
      const auto logical = static_cast<size_t>(below(static_cast<int>(tensor.rank())));
      auto& list = sharding.axes[logical];
      if (tensor.domain[logical].kind == IterKind::Broadcast || (!list.empty() && !chance(4))) {
        continue;
      }
      list.insert(chance(2) ? list.begin() : list.end(), axis.axis);
    }
    return sharding;
  }

  void input(const char* name, DType dtype, std::vector<Size> sizes) {
    TensorView type;
    type.dtype = dtype;
    for (Size& size : sizes) type.domain.push_back({std::move(size), IterKind::Iteration});
    if (chance(6)) {
      type.layout.observed = {rowMajor(type.rank()), std::vector<bool>(type.rank(), true)};
    }
    const ValueId id = b_.input(name, std::move(type));
    values_.push_back({id, true});
    if (chance(4)) return;
    Sharding sharding = randomSharding(b_.fusion().tensor(id));
    for (const DeviceMesh::Axis& axis : meshOf(sharding).axes) {
      // The values are equal on all ranks, so a maximum or minimum over ranks changes none.
      if (sharding.logicalAxisOf(axis.axis) >= 0 || !chance(6)) continue;
      sharding.partial.push_back({axis.axis, pick({ReduceOp::Max, ReduceOp::Min})});
    }
    b_.shard(id, sharding);
  }

  void inputs() {
    input("x", DType::F32, {extents_[0], extents_[1]});
    input("y", DType::F32, {extents_[0], extents_[1]});
    input("w", DType::F32, {extents_[1], extents_[2]});
    input("v", DType::F32, {extents_[1]});
    input("i", DType::I64, {extents_[0], extents_[1]});
    input("h", DType::BF16, {extents_[1], extents_[0]});
  }

  const TensorView& tensor(const Made& made) const { return b_.fusion().tensor(made.id); }

  void addOp() {
    const size_t before = b_.fusion().values().size();
    try {
      addAnyOp();
    } catch (const UserError&) {
      return;  // the operands do not fit, so no op is added
    }
    if (b_.fusion().values().size() == before) return;
    const Made& made = values_.back();
    if (chance(3)) b_.shard(made.id, randomSharding(tensor(made)));
    if (chance(6)) {
      AxisOrder order = rowMajor(tensor(made).rank());
      std::reverse(order.begin(), order.end());
      b_.requireOrder(made.id, order);
    }
  }

  // Returns a random value that broadcasts with x. Returns x if a few random candidates do not fit.
  Made partnerOf(const Made& x) {
    for (int attempt = 0; attempt < 2 * size(); ++attempt) {
      const Made& y = values_[static_cast<size_t>(below(size()))];
      std::vector<Size> a = tensor(x).sizes();
      std::vector<Size> b = tensor(y).sizes();
      bool fits = true;
      for (size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
        const Size& of_a = a[a.size() - i];
        const Size& of_b = b[b.size() - i];
        fits = fits && (of_a == of_b || of_a.isConstant(1) || of_b.isConstant(1));
      }
      if (fits) return y;
    }
    return x;
  }

  void addAnyOp() {
    const Made x = values_[static_cast<size_t>(below(size()))];
    const Made y = partnerOf(x);
    const int rank = static_cast<int>(tensor(x).rank());
    switch (below(17)) {
      case 0:
        return push(b_.pointwise(pick({"relu", "neg", "abs"}), {x.id}), x.exact);
      case 1:
        return push(b_.pointwise("tanh", {x.id}), false);
      case 2:
      case 3:
        return push(b_.pointwise(pick({"add", "sub", "mul"}), {x.id, y.id}), false);
      case 4:
        return reduce(x, rank);
      case 5:
        return matmul(x);
      case 6:
        return permute(x, rank);
      case 7:
        return reshape(x, rank);
      case 8:
        return slice(x, rank);
      case 9:
      case 10:
        return push(b_.set(x.id), x.exact);
      case 11:
        return take(x, rank);
      case 12:
        return vectors(x, rank);
      case 13:
        return lines(x, rank);
      case 14:
        return places(x, rank);
      case 15:
        return scatter(x, rank);
      default:
        return typed(x, y);
    }
  }

  void push(ValueId id, bool exact) { values_.push_back({id, exact}); }

  void reduce(const Made& x, int rank) {
    if (rank == 0) return;
    std::vector<int64_t> axes{below(rank)};
    if (rank > 1 && chance(4)) axes = {0, 1};
    const bool sum = chance(2);
    const DType dtype = tensor(x).dtype;
    const char* op = sum ? "sum" : pick({"max", "min"});
    push(b_.reduce(op, x.id, axes, chance(2)), x.exact && (!sum || !isFloat(dtype)));
  }

  void matmul(const Made& x) {
    for (int attempt = 0; attempt < size(); ++attempt) {
      const Made y = values_[static_cast<size_t>(below(size()))];
      const TensorView& a = tensor(x);
      const TensorView& b = tensor(y);
      if (a.rank() != 2 || b.rank() != 2 || a.dtype != b.dtype || a.dtype == DType::Bool ||
          !(a.domain[1].extent == b.domain[0].extent)) {
        continue;
      }
      return push(b_.matmul(x.id, y.id), false);
    }
  }

  void permute(const Made& x, int rank) {
    AxisOrder axes = rowMajor(static_cast<size_t>(rank));
    std::shuffle(axes.begin(), axes.end(), random_);
    push(b_.permute(x.id, axes), x.exact);
  }

  void reshape(const Made& x, int rank) {
    std::vector<Size> sizes = tensor(x).sizes();
    if (rank == 2 && chance(2)) {
      sizes = {product(sizes)};
    } else if (rank > 0 && chance(2)) {
      const auto axis = static_cast<size_t>(below(rank));
      if (!sizes[axis].isConstant()) return;
      const int64_t extent = sizes[axis].constant();
      const int64_t factor = extent % 2 == 0 ? 2 : 3;
      if (extent == 0 || extent % factor != 0) return;
      sizes[axis] = Size(factor);
      sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(axis) + 1, Size(extent / factor));
    } else {
      sizes.insert(sizes.begin() + below(rank + 1), Size(1));
    }
    if (sizes.size() < 4) push(b_.reshape(x.id, sizes), x.exact);
  }

  void slice(const Made& x, int rank) {
    if (rank == 0) return;
    std::vector<Size> starts(static_cast<size_t>(rank), Size(0));
    std::vector<Size> stops = tensor(x).sizes();
    Size& stop = stops[static_cast<size_t>(below(rank))];
    stop = Size::ceilDiv(stop, Size(2));
    push(b_.slice(x.id, starts, stops), x.exact);
  }

  // Reads elements at the integers of the input %i. Some of these indices are out of range.
  void take(const Made& x, int rank) {
    if (rank == 0 || rank > 2) return;
    const Made& index = values_[4];
    push(b_.take(x.id, b_.reduce("max", index.id, {below(2)}), below(rank)), x.exact);
  }

  // Adds the matrix product of a vector with itself, or of x and a table of constants. If the table
  // is needed with several shardings, a pass creates it once for each.
  void vectors(const Made& x, int rank) {
    const DType dtype = tensor(x).dtype;
    if (rank == 0 || dtype == DType::Bool) return;
    const Size inner = tensor(x).domain[static_cast<size_t>(rank) - 1].extent;
    if (rank == 1) return push(b_.matmul(x.id, x.id), false);
    const ValueId half = b_.constant(Scalar(0.5));
    ValueId table = b_.full(half, {inner, pick({extents_[0], extents_[2], Size(1)})}, dtype);
    if (chance(2)) b_.shard(table, randomSharding(b_.fusion().tensor(table)));
    push(b_.matmul(x.id, table), false);
  }

  // Adds argsort or cumsum. Only exact numbers are sorted, because inexact numbers may have another
  // order on another mesh.
  void lines(const Made& x, int rank) {
    if (rank == 0) return;
    const int64_t axis = below(rank);
    if (x.exact && chance(2)) return push(b_.argsort(x.id, axis), true);
    push(b_.cumsum(x.id, axis), false);
  }

  void places(const Made& x, int rank) {
    if (rank == 0) return;
    const auto axis = static_cast<int64_t>(below(rank));
    if (chance(2)) return push(b_.flip(x.id, {axis}), x.exact);
    std::vector<Size> lows(static_cast<size_t>(rank), 0);
    std::vector<Size> highs = lows;
    lows[static_cast<size_t>(axis)] = below(3);
    highs[static_cast<size_t>(axis)] = below(2);
    push(b_.pad(x.id, lows, highs), x.exact);
  }

  // Writes elements at the integers of the input %i. Some of these indices are out of range.
  void scatter(const Made& x, int rank) {
    const Made& index = values_[4];
    if (rank != 2 || !(tensor(x).sizes() == tensor(index).sizes())) return;
    const int64_t axis = below(2);
    if (chance(2)) return push(b_.scatter(x.id, index.id, x.id, axis), x.exact);
    push(b_.scatterAdd(x.id, index.id, x.id, axis), x.exact && !isFloat(tensor(x).dtype));
  }

  void typed(const Made& x, const Made& y) {
    if (!x.exact || !y.exact) return push(b_.cast(x.id, pick({DType::F32, DType::F64})), x.exact);
    switch (below(3)) {
      case 0:
        return push(b_.cast(x.id, pick({DType::I64, DType::Bool, DType::BF16})), true);
      case 1:
        return push(b_.pointwise(pick({"lt", "eq", "ge"}), {x.id, y.id}), true);
      default:
        return push(b_.pointwise("where", {b_.pointwise("lt", {x.id, y.id}), x.id, y.id}), true);
    }
  }

  std::mt19937 random_;
  FusionBuilder b_{"random"};
  Meshes meshes_;
  std::vector<Size> extents_;
  std::vector<Made> values_;
};

// Returns for each value whether it was computed from a bf16 value.
IdVector<ValueId, bool> coarseValues(const Fusion& fusion) {
  IdVector<ValueId, bool> coarse;
  for (const Value& value : fusion.values()) coarse.push_back(value.tensor.dtype == DType::BF16);
  for (const Expression& expr : fusion.exprs()) {
    for (ValueId input : expr.inputs) {
      if (coarse[input]) coarse[expr.outputs[0]] = true;
    }
  }
  return coarse;
}

// Runs one case. Returns false if it could not run. For example, a sharded axis that a reshape
// splits must divide evenly.
bool check(uint32_t seed) {
  const Case made = Generator(seed).make();
  testing::HarnessOptions options;
  options.ranks = made.ranks;
  options.seed = seed;
  options.sizes = testing::defaultSizes(made.fusion.size_defaults);
  options.cpu.adversarial_seed = seed;
  const std::string what =
      fmt::format("seed {}, {} ranks\n{}", seed, made.ranks, print(made.fusion));
  std::vector<HostTensor> got;
  try {
    CompileOptions in_chunks;
    in_chunks.passes.chunks = 1 + seed % 3;
    got = testing::runProgram(compile(made.fusion, made.ranks, in_chunks), options);
  } catch (const std::exception& e) {
    const std::string message = e.what();
    if (message.find("divide evenly") != std::string::npos) return false;
    ADD_FAILURE() << message << "\n" << what;
    return false;
  }
  const std::vector<HostTensor> expected = testing::expectedOf(made.fusion, options);
  const IdVector<ValueId, bool> coarse = coarseValues(made.fusion);
  for (size_t i = 0; i < expected.size(); ++i) {
    const double bound = coarse[made.fusion.outputs()[i]] ? 5e-2 : 1e-4;
    EXPECT_LE(testing::relativeError(got[i], expected[i]), bound) << "output " << i << ", " << what;
  }
  return true;
}

// The test is about the positions of data, and compiling would take long. The reference evaluator
// therefore runs the kernels. The environment variables HEDDLE_RANDOM_FROM and HEDDLE_RANDOM_COUNT
// replace the seeds.
TEST(RandomSharding, ReferenceKernelsMatchTheUnshardedFusion) {
  setenv("HEDDLE_CXX", "/nonexistent/compiler", 1);
  const char* from = std::getenv("HEDDLE_RANDOM_FROM");
  const char* count = std::getenv("HEDDLE_RANDOM_COUNT");
  const uint32_t first = from != nullptr ? static_cast<uint32_t>(std::atoi(from)) : 1;
  const int cases = count ? std::atoi(count) : heddle::testing::casesOf(300, 20);
  int ran = 0;
  for (int i = 0; i < cases; ++i) ran += check(first + static_cast<uint32_t>(i)) ? 1 : 0;
  unsetenv("HEDDLE_CXX");
  EXPECT_GE(ran * 10, cases * 8);
}

TEST(RandomSharding, CompiledKernelsMatchTheUnshardedFusion) {
  for (uint32_t i = 100001; i <= heddle::testing::casesOf(100008U, 100002U); ++i) check(i);
}

}  // namespace
}  // namespace heddle::host::random_sharding_cpu_test
