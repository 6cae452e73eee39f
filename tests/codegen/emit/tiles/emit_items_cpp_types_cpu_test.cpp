// Compares generated C++ kernels of every dtype with the reference evaluator.
#include <cmath>
#include <limits>

#include "ir/reference/reference.h"
#include "tests/codegen/kernel_runner.h"

namespace heddle::codegen::emit_items_cpp_types_cpu_test {
namespace {

using testing::Buffer;
using testing::CpuKernels;
using testing::symbols;

// Returns test values: the ends of the ranges of all dtypes, ties, values that are too small for a
// dtype, and values in between.
std::vector<double> interesting() {
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> values = {0.0, -0.0, inf, -inf, std::nan(""), 1.0 / 3, 1e30, -1e30, 1e-30};
  for (double edge : {1.0, 2.0, 127.0, 128.0, 255.0, 256.0, 448.0, 464.0, 480.0, 57344.0, 61440.0,
                      65504.0, 65520.0, 65536.0, 0x1p31, 0x1p32, 0x1p53, 0x1p63, 0x1p64}) {
    for (double value : {edge - 1, edge - 0.5, std::nextafter(edge, 0.0), edge,
                         std::nextafter(edge, inf), edge + 0.5, edge + 1}) {
      values.insert(values.end(), {value, -value});
    }
  }
  for (int exponent = -30; exponent < 20; ++exponent) {
    for (double digits : {1.0, 1.0625, 1.1875, 1.25, 1.375, 1.5, 1.75, 1.999}) {
      values.insert(values.end(), {std::ldexp(digits, exponent), -std::ldexp(digits, exponent)});
    }
  }
  return values;
}

HostTensor tensorOf(DType dtype, const std::vector<double>& values) {
  HostTensor tensor(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) tensor.set(static_cast<int64_t>(i), values[i]);
  return tensor;
}

// Returns the sum of all inputs. With this sum as an output, all ops form one kernel.
ValueId sumOfAll(FusionBuilder& b, const std::vector<ValueId>& inputs) {
  ValueId sum = b.cast(inputs[0], DType::F64);
  for (size_t i = 1; i < inputs.size(); ++i) {
    sum = b.pointwise("add", {sum, b.cast(inputs[i], DType::F64)});
  }
  return sum;
}

// Runs the kernel and the reference, and compares bits. Any NaN equals any NaN.
void expectSame(const Fusion& f, const std::vector<HostTensor>& tensors,
                const std::vector<Scalar>& scalars = {}) {
  const SizeBindings sizes = {{"m", tensors[0].sizes[0]}, {"n", tensors[0].sizes.back()}};
  ReferenceInputs reference;
  std::vector<Buffer> in, out;
  for (size_t i = 0; i < tensors.size(); ++i) {
    reference.tensors[f.inputs()[i]] = tensors[i];
    in.emplace_back(tensors[i].dtype, tensors[i].sizes);
    std::memcpy(in.back().data(), tensors[i].data.get(), static_cast<size_t>(tensors[i].bytes()));
  }
  for (size_t i = tensors.size(); i < f.inputs().size(); ++i) {
    reference.scalars[f.inputs()[i]] = scalars.at(i);
  }
  const std::vector<HostTensor> expected = evaluateReference(f, reference, sizes);
  std::vector<Buffer*> inputs, outputs;
  for (Buffer& b : in) inputs.push_back(&b);
  inputs.resize(f.inputs().size(), nullptr);
  for (const HostTensor& e : expected) out.emplace_back(e.dtype, e.sizes);
  for (Buffer& b : out) outputs.push_back(&b);
  CpuKernels::shared().run(f, inputs, outputs, scalars);
  for (size_t o = 0; o < out.size(); ++o) {
    for (int64_t i = 0; i < expected[o].numel(); ++i) {
      const Scalar want = expected[o].at(i);
      const Scalar got = loadElement(out[o].data(), out[o].desc.dtype, i);
      const bool both_nan = std::isnan(toDouble(want)) && std::isnan(toDouble(got));
      const bool same = want == got && std::signbit(toDouble(want)) == std::signbit(toDouble(got));
      ASSERT_TRUE(same || both_nan) << "%" << f.value(f.outputs()[o]).name << " of element " << i
                                    << ": " << toDouble(got) << ", expected " << toDouble(want);
    }
  }
}

TEST(EmitItemsCppTypesCpu, CastsBetweenAllDtypesMatchTheReference) {
  FusionBuilder b("casts");
  std::vector<ValueId> stored;
  std::vector<HostTensor> tensors;
  for (DType from : kAllDTypes) {
    stored.push_back(b.input(std::string(name(from)), from, symbols("n")));
    tensors.push_back(tensorOf(from, interesting()));
  }
  for (size_t i = 0; i < stored.size(); ++i) {
    for (DType to : kAllDTypes) {
      b.name(std::string(name(kAllDTypes[i])) + "_to_" + std::string(name(to)));
      b.output(b.cast(stored[i], to));
    }
  }
  // A value has the bits of its dtype even if it stays in a register.
  for (DType to : kAllDTypes) b.output(b.cast(b.cast(stored.back(), to), DType::F64));
  b.output(sumOfAll(b, stored));
  expectSame(std::move(b).build(), tensors);
}

TEST(EmitItemsCppTypesCpu, OpsOfEveryDtypeMatchTheReference) {
  FusionBuilder b("bits");
  std::vector<ValueId> xs;
  std::vector<HostTensor> tensors;
  std::vector<Scalar> scalars;
  for (DType dtype : kAllDTypes) {
    xs.push_back(b.input(std::string(name(dtype)), dtype, symbols("n")));
    tensors.push_back(tensorOf(dtype, interesting()));
    scalars.emplace_back(0.0);
  }
  const ValueId half = b.scalarInput("half", DType::F16);
  const ValueId byte = b.scalarInput("byte", DType::U8);
  scalars.insert(scalars.end(), {1.0 / 3, int64_t{200}});
  for (size_t i = 0; i < xs.size(); ++i) {
    const DType dtype = kAllDTypes[i];
    if (isFloat8(dtype)) {
      b.output(b.pointwise("where", {b.pointwise("isnan", {xs.back()}), xs[i], xs[i]}));
      continue;
    }
    if (dtype == DType::Bool) continue;
    const ValueId twice = b.pointwise("add", {xs[i], xs[i]});
    b.output(twice);
    b.output(b.pointwise("lt", {b.pointwise("mul", {twice, xs[i]}), xs[i]}));
    b.output(b.pointwise("neg", {xs[i]}));
    b.output(b.pointwise("sub", {xs[i], byte}));
    b.output(b.pointwise("maximum", {xs[i], half}));
  }
  b.output(b.pointwise("add", {xs[1], xs[2]}));             // u8 + i8
  b.output(b.pointwise("mul", {xs[2], xs[7]}));             // i8 * f16
  b.output(b.pointwise("add", {xs[7], xs[8]}));             // f16 + bf16
  b.output(b.pointwise("sub", {xs[4], b.constant(0.25)}));  // i64 - a scalar
  b.output(sumOfAll(b, xs));
  expectSame(std::move(b).build(), tensors, scalars);
}

TEST(EmitItemsCppTypesCpu, ReductionsOfNarrowDtypesMatchTheReference) {
  FusionBuilder b("reductions");
  std::vector<HostTensor> tensors;
  std::vector<ValueId> xs;
  for (DType dtype : {DType::U8, DType::I8, DType::I32, DType::F16}) {
    const ValueId x = b.input(std::string(name(dtype)), dtype, symbols("mn"));
    HostTensor tensor(dtype, {5, 301});
    // The values are multiples of 8 below 128. Their sums are exact even in f16, and no value is
    // the identity of a reduction.
    for (int64_t i = 0; i < tensor.numel(); ++i) tensor.set(i, int64_t{8} * (1 + i * 7 % 15));
    tensors.push_back(tensor);
    xs.push_back(x);
    for (const char* op : {"sum", "max", "min"}) b.output(b.reduce(op, x, {1}));
    if (dtype != DType::F16) b.output(b.reduce("prod", x, {1}));
  }
  b.output(b.reduce("max", sumOfAll(b, xs), {1}));
  expectSame(std::move(b).build(), tensors);
}

}  // namespace
}  // namespace heddle::codegen::emit_items_cpp_types_cpu_test
