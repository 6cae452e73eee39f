// Compares kernels of full, iota and indexed loads with closed formulas and with the reference
// evaluator.
#include <cmath>
#include <limits>

#include "codegen/emit/plan_kernel.h"
#include "codegen/plan/analysis.h"
#include "ir/reference/reference.h"
#include "ir/types/host_tensor.h"
#include "tests/codegen/kernel_runner.h"

namespace heddle::codegen::emit_indexed_loads_cpu_test {
namespace {

using testing::Buffer;
using testing::CpuKernels;
using testing::symbols;
using Index = std::vector<int64_t>;

// Runs the kernel and requires that every element has the bits of the reference. Any NaN equals any
// NaN.
void expectReference(const Fusion& f, const std::vector<Buffer*>& inputs,
                     std::vector<Buffer> outputs, const SizeBindings& sizes,
                     const std::vector<Scalar>& scalars = {}) {
  ReferenceInputs given;
  for (size_t i = 0; i < f.inputs().size(); ++i) {
    const ValueId id = f.inputs()[i];
    if (inputs[i] == nullptr) {
      given.scalars[id] = scalars[i];
    } else {
      given.tensors[id] = unpackFrom(inputs[i]->data(), inputs[i]->desc);
    }
  }
  std::vector<Buffer*> pointers;
  for (Buffer& out : outputs) pointers.push_back(&out);
  CpuKernels::shared().run(f, inputs, pointers, scalars);
  const std::vector<HostTensor> want = evaluateReference(f, given, sizes);
  for (size_t o = 0; o < outputs.size(); ++o) {
    ASSERT_EQ(want[o].sizes, outputs[o].desc.sizes) << "output " << o;
    int64_t linear = 0;
    outputs[o].forEach([&](const Index& at) {
      const double expected = toDouble(want[o].at(linear++));
      const double got = outputs[o].at(at);
      ASSERT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected)))
          << "output " << o << " at " << str(at) << ": " << got << ", reference " << expected;
    });
  }
}

TEST(EmitIndexedLoadsCpu, IotaIsIndependentOfStrides) {
  FusionBuilder b("iota");
  ValueId x = b.input("x", DType::I64, symbols("abc"));
  for (int64_t axis : {0, 1, 2}) b.output(b.pointwise("add", {x, b.iota(symbols("abc"), axis)}));
  b.output(b.pointwise("minimum", {b.iota(symbols("abc"), 1), x}));
  Fusion f = std::move(b).build();
  for (const Index& sizes : {Index{3, 5, 40}, Index{1, 7, 1}, Index{2, 3, 9001}}) {
    const Index permuted{1, sizes[0], sizes[0] * sizes[1]};
    for (const Index& strides : {Index{}, permuted, Index{0, 1, 0}}) {
      Buffer x_in(DType::I64, sizes, strides);
      std::vector<Buffer> outs(4, Buffer(DType::I64, sizes));
      outs[1] = Buffer(DType::I64, sizes, permuted);
      x_in.fill(3);
      CpuKernels::shared().run(f, {&x_in}, {&outs[0], &outs[1], &outs[2], &outs[3]});
      x_in.forEach([&](const Index& at) {
        for (size_t o = 0; o < 3; ++o) {
          ASSERT_EQ(outs[o].at(at), x_in.at(at) + static_cast<double>(at[o])) << o << str(at);
        }
        ASSERT_EQ(outs[3].at(at), std::min(double(at[1]), x_in.at(at)));
      });
    }
  }
}

// On a rank that holds a block of the tensor, iota must give the indices of the unsharded tensor.
TEST(EmitIndexedLoadsCpu, IotaOfABlockStartsAtItsOffset) {
  FusionBuilder b("block");
  ValueId x = b.input("x", DType::F32, symbols("ab"));
  b.output(b.pointwise("add", {x, b.iota(symbols("ab"), 0)}));
  b.output(b.reduce("max", b.pointwise("add", {x, b.iota(symbols("ab"), 1)}), {0, 1}));
  Fusion f = std::move(b).build();
  for (int64_t rows : {3, 1}) {
    Buffer x_in(DType::F32, {rows, 7}), out(DType::F32, {rows, 7}), most(DType::F32, {});
    for (Buffer* block : {&x_in, &out}) {
      block->desc.global = {12, 14};
      block->desc.offset = {8, 7};
    }
    CpuKernels::shared().run(f, {&x_in}, {&out, &most});
    out.forEach([&](const Index& at) { ASSERT_EQ(out.at(at), 8.0 + double(at[0])); });
    EXPECT_EQ(most.at({}), 13.0);
  }
}

TEST(EmitIndexedLoadsCpu, OperandsOfDifferentBlocksAreRefused) {
  FusionBuilder b("blocks");
  ValueId x = b.name("x").input("x", DType::I64, symbols("a"));
  b.output(b.pointwise("add", {x, b.iota(symbols("a"), 0)}));
  Fusion f = std::move(b).build();
  TensorDesc in = denseDesc(DType::I64, {4}), out = in;
  out.offset = {4};
  try {
    planKernel(f, {in}, {out}, Target::Cpp);
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("expected a shard that begins at index 0"),
              std::string::npos)
        << e.what();
  }
}

TEST(EmitIndexedLoadsCpu, FullFillsEveryDtype) {
  FusionBuilder b("full");
  ValueId s = b.scalarInput("s", DType::F64);
  ValueId k = b.scalarInput("k", DType::I64);
  ValueId x = b.input("x", DType::F64, symbols("ab"));
  std::vector<Buffer> outs;
  for (DType dtype : kAllDTypes) {
    for (ValueId scalar : {s, k, b.constant(2.7), b.constant(int64_t{-3}), b.constant(true)}) {
      ValueId filled = b.full(scalar, symbols("ab"), dtype);
      if (isFloat8(dtype)) filled = b.cast(filled, DType::F32);
      b.output(b.pointwise("where", {b.pointwise("lt", {x, filled}), filled, x}));
      outs.emplace_back(DType::F64, Index{5, 33});
    }
  }
  Fusion f = std::move(b).build();
  Buffer in(DType::F64, {5, 33});
  in.fill(1);
  expectReference(f, {nullptr, nullptr, &in}, outs, {{"a", 5}, {"b", 33}},
                  {Scalar(1.0 / 3), Scalar(int64_t{77}), 0.0});
  // Floats outside the range of an integer type saturate.
  FusionBuilder d("beyond");
  ValueId y = d.input("x", DType::F64, symbols("ab"));
  std::vector<Buffer> limits;
  for (DType dtype : {DType::U8, DType::I8, DType::I32, DType::I64}) {
    for (double value : {300.7, -1.7, 1e10, -1e30, HUGE_VAL}) {
      d.output(d.pointwise("add", {y, d.full(d.constant(value), symbols("ab"), dtype)}));
      limits.emplace_back(DType::F64, Index{5, 33});
    }
  }
  expectReference(std::move(d).build(), {&in}, limits, {{"a", 5}, {"b", 33}});
  // These kernels have no tensor input.
  for (DType dtype : kAllDTypes) {
    FusionBuilder c("alone");
    c.output(c.full(c.scalarInput("s", DType::F64), symbols("ab"), dtype));
    expectReference(std::move(c).build(), {nullptr}, {Buffer(dtype, {5, 33}, {1, 5})},
                    {{"a", 5}, {"b", 33}}, {Scalar(-1.0 / 3)});
  }
}

// arange, eye and tril are computed by their formulas, in one kernel without a tensor input.
TEST(EmitIndexedLoadsCpu, ComparedIndicesGiveEyeAndTril) {
  FusionBuilder b("eye");
  ValueId row = b.iota(symbols("ab"), 0);
  ValueId column = b.iota(symbols("ab"), 1);
  b.output(b.cast(b.pointwise("eq", {row, column}), DType::F32));
  b.output(b.pointwise("ge", {row, column}));
  b.output(b.pointwise("add", {b.pointwise("mul", {row, b.sizeOf(row, 1)}), column}));
  Fusion f = std::move(b).build();
  // A size that is read as a scalar is computed on the host. It must therefore be an input of the
  // kernel.
  EXPECT_NE(whyNotOneKernel(f), "");
  FusionBuilder c("eye");
  ValueId n = c.scalarInput("n", DType::I64);
  row = c.iota(symbols("ab"), 0);
  column = c.iota(symbols("ab"), 1);
  c.output(c.cast(c.pointwise("eq", {row, column}), DType::F32));
  c.output(c.pointwise("ge", {row, column}));
  c.output(c.pointwise("add", {c.pointwise("mul", {row, n}), column}));
  f = std::move(c).build();
  Buffer eye(DType::F32, {19, 23}), lower(DType::Bool, {19, 23}), linear(DType::I64, {19, 23});
  CpuKernels::shared().run(f, {nullptr}, {&eye, &lower, &linear}, {Scalar(int64_t{23})});
  eye.forEach([&](const Index& at) {
    ASSERT_EQ(eye.at(at), at[0] == at[1] ? 1 : 0);
    ASSERT_EQ(lower.at(at), at[0] >= at[1] ? 1 : 0);
    ASSERT_EQ(linear.at(at), double(at[0] * 23 + at[1]));
  });
}

// The kernel computes argmax as the minimum of where(x == max, iota, big). The cases reduce along
// either axis. Some reductions need two launches.
TEST(EmitIndexedLoadsCpu, ArgmaxIsRightInEveryReductionSchedule) {
  for (int64_t axis : {0, 1}) {
    FusionBuilder b("argmax");
    ValueId x = b.input("x", DType::F32, symbols("ab"));
    ValueId most = b.input("most", DType::F32, axis == 0 ? symbols("b") : symbols("a"));
    ValueId wide = b.expand(b.broadcast(most, {axis}), symbols("ab"));
    ValueId index = b.pointwise("where", {b.pointwise("eq", {x, wide}), b.iota(symbols("ab"), axis),
                                          b.constant(INT64_MAX)});
    ValueId first = b.reduce("min", index, {axis});
    b.output(first);
    // The code after the reduction uses the index of the kept axis.
    b.output(b.pointwise("sub",
                         {first, b.iota({axis == 0 ? Size::symbol("b") : Size::symbol("a")}, 0)}));
    Fusion f = std::move(b).build();
    for (const Index& sizes : {Index{40, 70}, Index{3, 100'003}, Index{100'003, 3}}) {
      for (bool column_major : {false, true}) {
        const Index strides = column_major ? Index{1, sizes[0]} : Index{};
        Buffer x_in(DType::F32, sizes, strides);
        const int64_t kept = sizes[axis == 0 ? 1 : 0];
        Buffer top(DType::F32, {kept}), out(DType::I64, {kept}), less(DType::I64, {kept});
        std::vector<int64_t> want(static_cast<size_t>(kept), -1);
        x_in.fill(5);
        for (int64_t k = 0; k < kept; ++k) top.set({k}, -100);
        x_in.forEach([&](const Index& at) {
          const int64_t k = at[axis == 0 ? 1 : 0];
          if (x_in.at(at) <= top.at({k})) return;
          top.set({k}, x_in.at(at));
          want[static_cast<size_t>(k)] = at[static_cast<size_t>(axis)];
        });
        CpuKernels::shared().run(f, {&x_in, &top}, {&out, &less});
        for (int64_t k = 0; k < kept; ++k) {
          ASSERT_EQ(out.at({k}), double(want[static_cast<size_t>(k)])) << str(sizes) << axis;
          ASSERT_EQ(less.at({k}), double(want[static_cast<size_t>(k)] - k));
        }
      }
    }
  }
}

TEST(EmitIndexedLoadsCpu, FlipAndPadAreRightForEveryLayout) {
  FusionBuilder b("flip_pad");
  ValueId x = b.input("x", DType::F32, symbols("ab"));
  ValueId s = b.scalarInput("s", DType::F64);
  for (const Index& axes : {Index{0}, Index{1}, Index{0, 1}}) {
    b.output(b.pointwise("sub", {b.flip(x, axes), x}));
  }
  Fusion flips = std::move(b).build();
  FusionBuilder c("pad");
  x = c.input("x", DType::F32, symbols("ab"));
  s = c.scalarInput("s", DType::F64);
  ValueId wide = c.pad(x, {2, -1}, {1, 3}, s);
  c.output(wide);
  c.output(c.pointwise(
      "add", {wide, c.flip(c.input("y", DType::F32,
                                   {Size::symbol("a") + Size(3), Size::symbol("b") + Size(2)}),
                           {1})}));
  Fusion pads = std::move(c).build();
  for (const Index& sizes : {Index{5, 7}, Index{1, 5}, Index{64, 200}}) {
    for (const Index& strides :
         {Index{}, Index{1, sizes[0]}, Index{0, 1}, Index{3 * sizes[1], 2}}) {
      Buffer in(DType::F32, sizes, strides);
      in.fill(2);
      const SizeBindings bound{{"a", sizes[0]}, {"b", sizes[1]}};
      expectReference(flips, {&in, nullptr}, std::vector<Buffer>(3, Buffer(DType::F32, sizes)),
                      bound, {0.0, 0.0});
      const Index out{sizes[0] + 3, sizes[1] + 2};
      Buffer y(DType::F32, out, {1, out[0]});
      y.fill(8);
      expectReference(pads, {&in, nullptr, &y}, std::vector<Buffer>(2, Buffer(DType::F32, out)),
                      bound, {0.0, 0.1, 0.0});
    }
  }
}

// index_select, embedding and gather receive indices inside and outside of the operand.
TEST(EmitIndexedLoadsCpu, IndicesOutsideTheOperandReadNanOrZero) {
  for (DType dtype : kAllDTypes) {
    FusionBuilder b("take");
    ValueId x = b.input("x", dtype, symbols("abc"));
    ValueId i = b.input("i", DType::I64, symbols("mn"));
    b.output(b.take(x, i, 1));
    Fusion take = std::move(b).build();
    FusionBuilder c("along");
    x = c.input("x", dtype, symbols("abc"));
    c.output(c.takeAlongAxis(x, c.input("j", DType::I64, symbols("akc")), 1));
    Fusion along = std::move(c).build();
    for (int64_t rows : {17, 1, 0}) {
      Buffer in(dtype, {3, rows, 5}, {1, 15, 3});
      Buffer index(DType::I64, {2, 70}), per(DType::I64, {3, 4, 5});
      in.fill(1);
      index.fill(6);  // -8 .. 8
      per.fill(7);
      index.set({1, 3}, 4e18);
      index.set({0, 2}, double(rows - 1));
      per.set({2, 3, 4}, -9e18);
      expectReference(take, {&in, &index}, {Buffer(dtype, {3, 2, 70, 5})},
                      {{"a", 3}, {"b", rows}, {"c", 5}, {"m", 2}, {"n", 70}});
      expectReference(along, {&in, &per}, {Buffer(dtype, {3, 4, 5}, {1, 15, 3})},
                      {{"a", 3}, {"b", rows}, {"c", 5}, {"k", 4}});
    }
  }
}

// The kernel reads one tensor element by element and in three indexed ways. One of the indices is
// computed.
TEST(EmitIndexedLoadsCpu, OneKernelReadsATensorInSeveralWays) {
  FusionBuilder b("several");
  ValueId x = b.input("x", DType::F64, symbols("aa"));
  ValueId i = b.input("i", DType::I64, symbols("aa"));
  ValueId next = b.pointwise("sub", {b.iota(symbols("aa"), 1), i});
  ValueId sum = b.pointwise("add", {x, b.flip(x, {0})});
  sum = b.pointwise("add", {sum, b.takeAlongAxis(x, next, 1)});
  sum = b.pointwise("add", {sum, b.takeAlongAxis(x, i, 0)});
  b.output(sum);
  b.output(b.reduce("max", sum, {1}));
  Fusion f = std::move(b).build();
  ASSERT_EQ(whyNotOneKernel(f), "");
  Buffer in(DType::F64, {9, 9}), index(DType::I64, {9, 9}, {1, 9});
  in.fill(4);
  index.forEach([&](const Index& at) { index.set(at, double((at[0] * 5 + at[1]) % 9)); });
  expectReference(f, {&in, &index}, {Buffer(DType::F64, {9, 9}), Buffer(DType::F64, {9})},
                  {{"a", 9}});
}

// The kernels sum rows that an index selects (an embedding bag), a flipped tensor and a padded
// tensor.
TEST(EmitIndexedLoadsCpu, ReductionsOfIndexedLoadsKnowTheirExtents) {
  FusionBuilder b("bag");
  ValueId x = b.input("x", DType::F32, symbols("vh"));
  b.output(b.reduce("sum", b.take(x, b.input("i", DType::I64, symbols("bn")), 0), {1}));
  Fusion bag = std::move(b).build();
  FusionBuilder c("padded");
  x = c.input("x", DType::F32, symbols("vh"));
  c.output(c.reduce("sum", c.pad(x, {1, -2}, {0, 4}, c.constant(1.0)), {1}));
  Fusion padded = std::move(c).build();
  FusionBuilder d("flipped");
  x = d.input("x", DType::F32, symbols("vh"));
  d.output(d.reduce("max", d.pointwise("mul", {d.flip(x, {0}), x}), {0, 1}));
  Fusion flipped = std::move(d).build();
  for (int64_t h : {5, 300}) {
    const SizeBindings sizes{{"v", 50}, {"h", h}, {"b", 4}, {"n", 6}};
    Buffer in(DType::F32, {50, h}), index(DType::I64, {4, 6});
    in.fill(1);
    index.forEach([&](const Index& at) { index.set(at, double((at[0] * 7 + at[1] * 3) % 50)); });
    expectReference(bag, {&in, &index}, {Buffer(DType::F32, {4, h})}, sizes);
    expectReference(padded, {&in}, {Buffer(DType::F32, {51})}, sizes);
    expectReference(flipped, {&in}, {Buffer(DType::F32, {})}, sizes);
  }
  // This reduction takes two launches.
  Buffer large(DType::F32, {3, 400'000});
  large.fill(3);
  expectReference(flipped, {&large}, {Buffer(DType::F32, {})}, {{"v", 3}, {"h", 400'000}});
}

TEST(EmitIndexedLoadsCpu, ReductionResultServesAsIndex) {
  FusionBuilder b("after");
  ValueId x = b.input("x", DType::I64, symbols("ab"));
  ValueId table = b.input("table", DType::F32, symbols("t"));
  b.output(b.take(table, b.reduce("sum", x, {1}), 0));
  Fusion f = std::move(b).build();
  Buffer in(DType::I64, {6, 20}), places(DType::F32, {15});
  in.fill(3);
  places.fill(1);
  expectReference(f, {&in, &places}, {Buffer(DType::F32, {6})}, {{"a", 6}, {"b", 20}, {"t", 15}});
}

TEST(EmitIndexedLoadsCpu, AllSizesShareOneSource) {
  FusionBuilder b("text");
  ValueId x = b.input("x", DType::F32, symbols("ab"));
  ValueId rows = b.take(x, b.input("i", DType::I64, symbols("n")), 0);
  b.output(b.pointwise("add", {rows, b.iota(symbols("nb"), 1)}));
  Fusion f = std::move(b).build();
  auto text = [&](int64_t a, int64_t n, int64_t h) {
    return planKernel(f, {denseDesc(DType::F32, {a, h}), denseDesc(DType::I64, {n})},
                      {denseDesc(DType::F32, {n, h})}, Target::Cpp)
        .source.text;
  };
  EXPECT_EQ(text(10, 20, 30), text(7, 1000, 2));
}

TEST(EmitIndexedLoadsCpu, IndexedOperandMustBeInMemory) {
  FusionBuilder b("cut");
  ValueId x = b.input("x", DType::F32, symbols("a"));
  x = b.name("twice").pointwise("add", {x, x});
  b.output(b.name("back").flip(x, {0}));
  EXPECT_EQ(whyNotOneKernel(std::move(b).build()),
            "flip of %back reads %twice at computed indices: it must be in memory");
}

}  // namespace
}  // namespace heddle::codegen::emit_indexed_loads_cpu_test
