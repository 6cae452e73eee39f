// Runs C++ kernels whose stores bypass the caches. With HEDDLE_CPU_STREAM_BYTES=1, a kernel uses
// such stores whenever the rows of its outputs consist of full cache lines.
#include <cstdlib>

#include "codegen/frame/argument_value.h"
#include "ir/reference/reference.h"
#include "ir/text/fusion_text.h"
#include "tests/codegen/kernel_runner.h"

namespace heddle::codegen::streamed_stores_cpu_test {
namespace {

using testing::Buffer;
using testing::CpuKernels;

class StreamedStores : public ::testing::Test {
 protected:
  void SetUp() override { setenv("HEDDLE_CPU_STREAM_BYTES", "1", 1); }
  void TearDown() override { unsetenv("HEDDLE_CPU_STREAM_BYTES"); }
};

// Returns a tensor whose first element is `misplaced` bytes after the begin of a cache line.
Buffer placed(DType dtype, const std::vector<int64_t>& sizes, size_t misplaced) {
  Buffer buffer(dtype, sizes, {}, 128);
  const auto address = reinterpret_cast<uintptr_t>(buffer.bytes.data());
  buffer.shift = (64 - address % 64) % 64 + misplaced;
  return buffer;
}

HostTensor elementsOf(Buffer& buffer) {
  HostTensor values(buffer.desc.dtype, buffer.desc.sizes);
  int64_t at = 0;
  buffer.forEach([&](const std::vector<int64_t>& index) {
    values.set(at++, loadElement(buffer.data(), buffer.desc.dtype, buffer.offsetOf(index)));
  });
  return values;
}

// Runs the fusion twice: with an output at the begin of a cache line, and with an output 8 bytes
// after the begin. Expects the values of the reference evaluator, up to `tolerance`.
void expectReference(const std::string& text, std::vector<Buffer> inputs, const SizeBindings& sizes,
                     double tolerance = 0) {
  SCOPED_TRACE(text);
  const Fusion fusion = parseFusion("heddle 1 fusion f(" + text + " }", "f");
  ReferenceInputs values;
  std::vector<Buffer*> in;
  for (size_t i = 0; i < inputs.size(); ++i) {
    values.tensors[fusion.inputs()[i]] = elementsOf(inputs[i].fill(static_cast<unsigned>(i) + 3));
    in.push_back(&inputs[i]);
  }
  const HostTensor wanted = evaluateReference(fusion, values, sizes).at(0);
  for (const size_t misplaced : {0, 8}) {
    Buffer out = placed(wanted.dtype, wanted.sizes, misplaced);
    CpuKernels::shared().run(fusion, in, {&out});
    const HostTensor got = elementsOf(out);
    for (int64_t e = 0; e < wanted.numel(); ++e) {
      ASSERT_NEAR(toDouble(got.at(e)), toDouble(wanted.at(e)), tolerance) << "element " << e;
    }
  }
}

TEST_F(StreamedStores, PointwiseKernelsOfAllWidthsAreRight) {
  for (const auto& [name, dtype] : {std::pair{"f32", DType::F32},
                                    {"bf16", DType::BF16},
                                    {"i64", DType::I64},
                                    {"u8", DType::U8}}) {
    for (const int64_t columns : {64, 320, 8192 + 64, 61}) {
      expectReference(
          fmt::format("%x: {0}[a, b], %y: {0}[a, b]) {{ %z = add(%x, %y) return %z", name),
          {Buffer(dtype, {5, columns}), Buffer(dtype, {5, columns}, {1, 5})},
          {{"a", 5}, {"b", columns}});
    }
  }
}

TEST_F(StreamedStores, RowKernelsAreRight) {
  for (const int64_t columns : {64, 1024, 4096 + 320, 1001}) {
    expectReference("%x: f32[a, b]) { %y = softmax(%x, axis=-1) return %y",
                    {Buffer(DType::F32, {70, columns})}, {{"a", 70}, {"b", columns}}, 1e-6);
  }
}

TEST_F(StreamedStores, TransposesAreRight) {
  for (const int64_t rows : {64, 100, 192}) {
    expectReference("%x: f32[a, b], %y: f32[a, b]) { %z = add(%x, %y) return %z",
                    {Buffer(DType::F32, {rows, 320}, {1, rows}), Buffer(DType::F32, {rows, 320})},
                    {{"a", rows}, {"b", 320}});
  }
}

// Returns the argument `streams` of a pointwise kernel: 1 if its stores bypass the caches.
int64_t streamsOf(std::vector<int64_t> extents, std::vector<int64_t> strides) {
  Space space;
  space.extents.assign(extents.begin(), extents.end());
  space.kept = extents.size();
  SpaceTensor output;
  output.output = true;
  output.strides.assign(strides.begin(), strides.end());
  space.tensors.push_back(output);
  Schedule schedule;
  schedule.target = Target::Cpp;
  return valueOf({ArgumentValue::Kind::Streams}, {space, schedule, 1});
}

TEST_F(StreamedStores, LargeOutputsWithFullLinesAreStreamed) {
  setenv("HEDDLE_CPU_STREAM_BYTES", "4096", 1);
  EXPECT_EQ(streamsOf({16, 64}, {64, 1}), 1);
  EXPECT_EQ(streamsOf({15, 64}, {64, 1}), 0) << "fewer bytes";
  EXPECT_EQ(streamsOf({16, 65}, {65, 1}), 0) << "rows end inside of a line";
  EXPECT_EQ(streamsOf({16, 64}, {72, 1}), 0) << "rows begin inside of a line";
  EXPECT_EQ(streamsOf({64, 64}, {1, 64}), 0) << "lanes are not neighbours";
}

}  // namespace
}  // namespace heddle::codegen::streamed_stores_cpu_test
