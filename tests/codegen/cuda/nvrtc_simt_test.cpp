#include <gtest/gtest.h>

#include "codegen/compile/child_process.h"
#include "codegen/compile/elf_file.h"
#include "codegen/compile/image_cache.h"
#include "codegen/emit/plan_kernel.h"
#include "codegen/kernel.h"
#include "codegen/kernel_choice.h"
#include "codegen/plan/generated.h"
#include "ir/base/check.h"
#include "ir/base/error.h"
#include "ir/graph/builder.h"
#include "ir/text/fusion_text.h"
#include "tests/codegen/simt/nvrtc.h"

namespace heddle::codegen::nvrtc_simt_test {
namespace {

class NvrtcSimt : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    compiler_ = testing::nvrtc(GetParam());
    if (compiler_ == nullptr) GTEST_SKIP() << "libheddle_cuda.so with NVRTC is not there";
  }

  // Plans a kernel for dense tensors of these sizes and compiles it. Returns the number of stages
  // (launches) of the kernel.
  size_t compile(const Fusion& f, const std::vector<std::vector<int64_t>>& inputs,
                 const std::vector<std::vector<int64_t>>& outputs) {
    std::vector<TensorDesc> in;
    std::vector<TensorDesc> out;
    for (size_t i = 0; i < inputs.size(); ++i) {
      in.push_back(denseDesc(f.value(f.inputs()[i]).tensor.dtype, inputs[i]));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      out.push_back(denseDesc(f.value(f.outputs()[i]).tensor.dtype, outputs[i]));
    }
    return compileDescs(f, in, out);
  }
  // Like compile(), but all tensors have one axis of 100 elements, and every second element of the
  // inputs is unused. A thread then computes one element at a time, so NVRTC has much less text to
  // compile. DensePointwiseOpsCompileInEveryDtype and EveryKindOfStrideCompiles cover several
  // elements at a time.
  void compileStepped(const Fusion& f) {
    const auto descsOf = [&](const std::vector<ValueId>& values, int64_t step) {
      std::vector<TensorDesc> descs;
      for (const ValueId id : values) {
        descs.push_back(denseDesc(f.value(id).tensor.dtype, {100}));
        descs.back().strides = {step};
      }
      return descs;
    };
    compileDescs(f, descsOf(f.inputs(), 2), descsOf(f.outputs(), 1));
  }
  size_t compileDescs(const Fusion& f, const std::vector<TensorDesc>& in,
                      const std::vector<TensorDesc>& out) {
    KernelPlan plan = planKernel(f, in, out, Target::Cuda);
    const std::vector<std::byte> image = testing::cubinOf(plan.source, *compiler_);
    const std::string_view bytes(reinterpret_cast<const char*>(image.data()), image.size());
    for (const LaunchStage& stage : plan.stages) {
      EXPECT_EQ(faultOfCubin(bytes, stage.entry), "");
      EXPECT_NE(faultOfCubin(bytes.substr(0, bytes.size() - 1), stage.entry), "");
      EXPECT_GT(stage.grid, 0);
      EXPECT_EQ(stage.block % 32, 0);
      EXPECT_LE(stage.block, 1024);
      EXPECT_LE(stage.grid_y, 65535);
    }
    return plan.stages.size();
  }

  std::unique_ptr<KernelCompiler> compiler_;
};

std::vector<Size> symbols(const std::string& names) {
  std::vector<Size> sizes;
  for (char c : names) sizes.push_back(Size::symbol(std::string(1, c)));
  return sizes;
}

// Covers rows that a part of a warp, a warp or a block holds, rows of odd length, and rows that a
// block reads in parts.
TEST_P(NvrtcSimt, RowsOfAllLengthsCompile) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F64}) {
    FusionBuilder b;
    const ValueId x = b.input("x", dtype, symbols("nm"));
    const ValueId most = b.reduce("max", x, {1}, true);
    const ValueId powers = b.pointwise("exp", {b.pointwise("sub", {x, most})});
    b.output(b.pointwise("div", {powers, b.reduce("sum", powers, {1}, true)}));
    const Fusion softmax = std::move(b).build();
    for (const int64_t m : {3, 64, 1024, 8192, 5001, 100000}) {
      if (GetParam() != std::string("sm_90") && m != 1024) continue;
      EXPECT_EQ(compile(softmax, {{200, m}}, {{200, m}}), 1u) << m;
    }
  }
}

// Covers bundles (groups of neighbouring rows): in registers, in shared memory, and at unaligned
// addresses.
TEST_P(NvrtcSimt, RowsAlongMiddleAxesCompile) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F64}) {
    const Fusion softmax =
        parseFusion(fmt::format("heddle 1 fusion f(%x: {}[n, m, k]) {{ %y = softmax(%x, axis=1) "
                                "return %y }}",
                                name(dtype)),
                    "f");
    for (const int64_t m : {3, 100, 1500}) {
      for (const int64_t k : {333, 1024}) {
        if (GetParam() != std::string("sm_90") && m != 100) continue;
        EXPECT_EQ(compile(softmax, {{64, m, k}}, {{64, m, k}}), 1u) << m << " " << k;
      }
    }
  }
}

// Covers a transpose, pointwise rows of odd length, and parts of a cat that begin within vectors.
TEST_P(NvrtcSimt, SquaresUnalignedRowsAndNeighboursCompile) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F64, DType::U8}) {
    const std::string type(name(dtype));
    const Fusion neg = parseFusion(
        fmt::format("heddle 1 fusion f(%x: {}[n, m]) {{ %y = neg(%x) return %y }}", type), "f");
    TensorDesc transposed = denseDesc(dtype, {200, 136});
    transposed.strides = {1, 200};
    EXPECT_EQ(compileDescs(neg, {transposed}, {denseDesc(dtype, {200, 136})}), 1u);
    const Fusion bias =
        parseFusion(fmt::format("heddle 1 fusion f(%x: {0}[n, m], %w: {0}[m]) {{ %b "
                                "= broadcast(%w, axes=[0]) %y = mul(%x, %b) return "
                                "%y }}",
                                type),
                    "f");
    EXPECT_EQ(compile(bias, {{200, 1001}, {1001}}, {{200, 1001}}), 1u);
    const Fusion cat = parseFusion(fmt::format("heddle 1 fusion f(%x: {0}[9, 8], %z: {0}[9, 5]) {{ "
                                               "%c = cat(%x, %z, axis=1) %y = neg(%c) return %y }}",
                                               type),
                                   "f");
    EXPECT_EQ(compile(cat, {{9, 8}, {9, 5}}, {{9, 13}}), 1u);
  }
}

// Covers rows that have a result but no elements, an expensive body, and many reductions.
TEST_P(NvrtcSimt, ExtremeRowsCompile) {
  if (GetParam() != std::string("sm_90")) GTEST_SKIP() << "one architecture is enough";
  const auto rows = [](int calls, int reductions) {
    FusionBuilder b;
    ValueId x = b.input("x", DType::BF16, symbols("nm"));
    for (int i = 0; i < calls; ++i) x = b.pointwise(i % 2 == 0 ? "erf" : "log1p", {x});
    const ValueId most = b.reduce("max", x, {1}, true);
    for (int i = 0; i < reductions; ++i) {
      const ValueId shifted = b.pointwise("sub", {x, most});
      b.output(b.reduce(i % 2 == 0 ? "sum" : "prod", shifted, {1}));
    }
    return std::move(b).build();
  };
  EXPECT_EQ(compile(rows(0, 1), {{5, 0}}, {{5}}), 1u);
  EXPECT_EQ(compile(rows(100, 1), {{200, 8192}}, {{200}}), 1u);
  EXPECT_EQ(compile(rows(0, 120), {{200, 16384}}, std::vector<std::vector<int64_t>>(120, {200})),
            1u);
}

// A row of 400 KB is shared by a cluster of blocks. Compute capability 8.0 has no clusters.
TEST_P(NvrtcSimt, ClustersCompileFromComputeCapability90) {
  EXPECT_EQ(compiler_->supportsClusters(), GetParam() != std::string("sm_80"));
  const Fusion f =
      parseFusion("heddle 1 fusion f(%x: bf16[n, m]) { %y = softmax(%x, axis=1) return %y }", "f");
  const std::vector<TensorDesc> descs{denseDesc(DType::BF16, {300, 200000})};
  for (int64_t blocks : {4, 8}) {
    const KernelChoice choice{"rows", {{"cluster", blocks}}};
    const KernelPlan plan =
        planKernel(f, descs, descs, Target::Cuda, {}, {}, nullptr, nullptr, &choice);
    ASSERT_EQ(parseKernelChoice(plan.candidate)->find("cluster"), blocks);
    if (GetParam() == std::string("sm_80")) {
      EXPECT_THROW(testing::cubinOf(plan.source, *compiler_), UserError);
      continue;
    }
    const std::vector<std::byte> image = testing::cubinOf(plan.source, *compiler_);
    const std::string_view bytes(reinterpret_cast<const char*>(image.data()), image.size());
    EXPECT_EQ(faultOfCubin(bytes, plan.stages.at(0).entry), "");
  }
}

// Kernels convert every other dtype to one of these dtypes before they compute.
// CastsBetweenAllDtypesCompile covers the conversions.
constexpr DType kComputedDTypes[] = {DType::F32, DType::F64, DType::BF16, DType::I64, DType::Bool};

// Each kernel computes a few ops of one dtype, because the time that NVRTC needs for a kernel grows
// faster than its length.
TEST_P(NvrtcSimt, EveryPointwiseOpCompilesInEveryDtype) {
  // Most code does not depend on the architecture, so only f32 is compiled for each of them.
  for (DType dtype : kComputedDTypes) {
    if (GetParam() != std::string("sm_90") && dtype != DType::F32) continue;
    SCOPED_TRACE(name(dtype));
    constexpr size_t kOutputs = 16;
    size_t compiled = 0;
    for (auto op = opTable().begin(); op != opTable().end();) {
      FusionBuilder b;
      const ValueId condition = b.input("c", DType::Bool, symbols("n"));
      const ValueId x = b.input("x", dtype, symbols("n"));
      size_t outputs = 0;
      for (; op != opTable().end() && outputs < kOutputs; ++op) {
        if (op->kind != OpKind::Pointwise || op->name == "cast") continue;
        std::vector<ValueId> operands(static_cast<size_t>(op->arity), x);
        for (int i = 0; i < op->bool_operands; ++i) operands[static_cast<size_t>(i)] = condition;
        try {
          const ValueId result = b.pointwise(op->name, operands);
          // Every output reads both inputs, because a segment must be connected.
          b.output(b.pointwise("logical_or", {result, b.pointwise("logical_or", {condition, x})}));
          ++outputs;
        } catch (const UserError&) {
          continue;  // the builder refuses this dtype
        }
      }
      if (outputs == 0) break;
      const Fusion f = std::move(b).build();
      compileStepped(f);
      compiled += outputs;
    }
    EXPECT_GT(compiled, 20u);
  }
}

// In these kernels a thread computes several neighbouring elements. They share the state of an op
// (OpDef::state), so every such op is included.
TEST_P(NvrtcSimt, DensePointwiseOpsCompileInEveryDtype) {
  for (DType dtype : kComputedDTypes) {
    if (GetParam() != std::string("sm_90") && dtype != DType::F32) continue;
    SCOPED_TRACE(name(dtype));
    FusionBuilder b;
    const ValueId x = b.input("x", dtype, symbols("n"));
    const ValueId seed = b.scalarInput("seed", DType::I64);
    ValueId sum = b.pointwise("eq", {x, x});
    size_t with_state = 0;
    for (const OpDef& op : opTable()) {
      if (op.state.empty()) continue;
      const ValueId drawn = b.pointwise(op.name, {seed, seed, b.iota(symbols("n"), 0)});
      sum = b.pointwise("add", {sum, drawn});
      ++with_state;
    }
    EXPECT_GE(with_state, 2u);
    b.output(b.cast(sum, dtype));
    b.output(b.cast(b.pointwise("add", {x, x}), dtype));
    compile(std::move(b).build(), {{4096}, {}}, {{4096}, {4096}});
  }
}

TEST_P(NvrtcSimt, CastsBetweenAllDtypesCompile) {
  FusionBuilder b;
  ValueId x = b.input("x", DType::F64, symbols("n"));
  ValueId sum = x;  // reads all inputs, because a segment must be connected
  for (DType from : kAllDTypes) {
    const ValueId stored = b.input(std::string(name(from)), from, symbols("n"));
    sum = b.pointwise("add", {sum, b.cast(stored, DType::F64)});
    for (DType to : kAllDTypes) {
      b.output(b.cast(b.cast(x, from), to));
      b.output(b.cast(stored, to));
    }
  }
  b.output(sum);
  compileStepped(std::move(b).build());
}

TEST_P(NvrtcSimt, EveryReductionCompilesInEveryDtypeAndLayout) {
  for (DType dtype : kAllDTypes) {
    if (isFloat8(dtype)) continue;
    if (GetParam() != std::string("sm_90") && dtype != DType::F32) continue;
    for (int64_t axis : {0, 1}) {
      FusionBuilder b;
      ValueId x = b.input("x", dtype, symbols("ab"));
      size_t outputs = 0;
      for (const OpDef& op : opTable()) {
        if (op.kind != OpKind::Reduction) continue;
        b.output(b.reduce(op.name, x, {axis}));
        ++outputs;
      }
      Fusion f = std::move(b).build();
      // Each row is reduced by a warp or by a block. Columns take one launch, or are split into two
      // launches.
      for (int64_t n : {33, 4096}) {
        EXPECT_GE(compile(f, {{n, n}}, std::vector<std::vector<int64_t>>(outputs, {n})), 1u);
      }
    }
  }
}

TEST_P(NvrtcSimt, ReductionInRangesIsOneLaunch) {
  FusionBuilder b;
  ValueId x = b.input("x", DType::F32, symbols("abc"));
  b.output(b.pointwise("sqrt", {b.reduce("sum", b.pointwise("mul", {x, x}), {0, 1})}));
  b.output(b.pointwise("neg", {x}));
  Fusion f = std::move(b).build();
  EXPECT_EQ(compile(f, {{16, 512, 4096}}, {{4096}, {16, 512, 4096}}), 1u);
  FusionBuilder all;
  all.output(all.reduce("max", all.input("x", DType::BF16, symbols("a")), {0}));
  Fusion g = std::move(all).build();
  EXPECT_EQ(compile(g, {{10'000'001}}, {{}}), 1u);
}

// Covers axes that no operand has, with 32-bit and 64-bit indices.
TEST_P(NvrtcSimt, GeneratedAxesCompile) {
  for (const int64_t n : {int64_t{100}, int64_t{3'000'000'000}}) {
    FusionBuilder b;
    const ValueId x = b.input("x", DType::BF16, symbols("a"));
    const ValueId wide = b.expand(x, {Size(n), Size::symbol("a")});
    const ValueId index = b.iota({Size(n), Size::symbol("a")}, 0);
    b.output(b.reduce("max", wide, {0}));
    b.output(b.reduce("sum", b.pointwise("mul", {index, wide}), {0}));
    const Fusion f = std::move(b).build();
    for (const int64_t a : {3, 40}) {
      EXPECT_EQ(compile(f, {{a}}, {{a}, {a}}), n == 100 || a == 3 ? 1u : 2u) << n << " " << a;
    }
  }
}

TEST_P(NvrtcSimt, EveryKindOfStrideCompiles) {
  FusionBuilder b;
  ValueId x = b.input("x", DType::BF16, symbols("abc"));
  ValueId y = b.input("y", DType::F32, symbols("abc"));
  b.output(b.pointwise("add", {x, y}));
  Fusion f = std::move(b).build();
  TensorDesc dense_x = denseDesc(DType::BF16, {6, 7, 40});
  TensorDesc dense = denseDesc(DType::F32, {6, 7, 40});
  TensorDesc transposed = dense;
  transposed.strides = {1, 240, 6};
  TensorDesc padded = dense;
  padded.strides = {7 * 41, 41, 1};
  TensorDesc stretched = dense;
  stretched.strides = {0, 1, 0};
  for (const TensorDesc& desc : {dense, transposed, padded, stretched}) {
    compileDescs(f, {dense_x, desc}, {dense});
  }
}

// Covers iota along every axis, with 32-bit and 64-bit indices, and indexed loads of every dtype.
TEST_P(NvrtcSimt, IndicesAndIndexedLoadsCompile) {
  FusionBuilder b;
  ValueId x = b.input("x", DType::F32, symbols("ab"));
  ValueId sum = b.pointwise("add", {b.iota(symbols("ab"), 0), b.iota(symbols("ab"), 1)});
  b.output(b.pointwise("add", {sum, b.full(b.constant(0.5), symbols("ab"), DType::F64)}));
  b.output(b.reduce("max", b.pointwise("mul", {sum, x}), {0}));
  Fusion indices = std::move(b).build();
  EXPECT_EQ(compile(indices, {{40, 70}}, {{40, 70}, {70}}), 1u);
  EXPECT_EQ(compile(indices, {{400'000, 3}}, {{400'000, 3}, {3}}), 1u);
  compile(indices, {{int64_t{1} << 20, int64_t{1} << 12}},
          {{int64_t{1} << 20, int64_t{1} << 12}, {int64_t{1} << 12}});

  FusionBuilder c;
  ValueId index = c.input("index", DType::I64, symbols("ab"));
  ValueId fill = c.scalarInput("fill", DType::F64);
  for (DType dtype : kAllDTypes) {
    ValueId y = c.input("y" + std::string(name(dtype)), dtype, symbols("ab"));
    for (ValueId read : {c.flip(y, {0, 1}), c.pad(y, {1, -2}, {-1, 2}, fill),
                         c.takeAlongAxis(y, index, 0), c.takeAlongAxis(y, index, 1)}) {
      if (isFloat8(dtype)) read = c.cast(read, DType::F32);
      c.output(c.pointwise("eq", {read, index}));
    }
  }
  Fusion reads = std::move(c).build();
  std::vector<std::vector<int64_t>> inputs(reads.inputs().size(), {33, 70});
  inputs[1] = {};
  compile(reads, inputs, std::vector<std::vector<int64_t>>(reads.outputs().size(), {33, 70}));
}

TEST_P(NvrtcSimt, CacheFindsTheKernelsOfAnImage) {
  TempFolder folder;
  KernelSource source{Target::Cuda, "extern \"C\" __global__ void k() {}\n"};
  source.entries = {"k"};
  EXPECT_FALSE(ImageCache(folder.path()).get(source, *compiler_)->bytes.empty());
  source.entries = {"k", "l"};
  source.text += "\n";
  EXPECT_THROW(ImageCache(folder.path()).get(source, *compiler_), UserError);
}

TEST_P(NvrtcSimt, ErrorsShowLogAndNumberedSource) {
  KernelSource source{Target::Cuda, "extern \"C\" __global__ void k() {\n  no_such_name();\n}\n"};
  try {
    compiler_->compile(source);
    FAIL() << "no error";
  } catch (const UserError& e) {
    std::string what = e.what();
    EXPECT_NE(what.find("no_such_name\" is undefined"), std::string::npos) << what;
    EXPECT_NE(what.find(" |   no_such_name();"), std::string::npos) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(Arch, NvrtcSimt, ::testing::Values("sm_80", "sm_90", "sm_100"));

}  // namespace
}  // namespace heddle::codegen::nvrtc_simt_test
