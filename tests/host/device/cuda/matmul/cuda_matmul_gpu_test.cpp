#include <cmath>
#include <thread>

#include "tests/host/device/matmul_cases.h"
#include "tests/host/gpu_device.h"

namespace heddle::host::cuda_matmul_gpu_test {
namespace {

class CudaMatmulGpu : public GpuDeviceFixture {
 protected:
  // Multiplies on `stream`, which must belong to the calling thread.
  void multiply(const Matrix& a, const Matrix& b, Matrix& c, Stream stream) {
    Allocator& pool = device_->allocator();
    void* memory[3];
    const Matrix* matrices[] = {&a, &b, &c};
    for (int i = 0; i < 3; ++i) {
      const auto bytes = static_cast<int64_t>(matrices[i]->bytes.size());
      memory[i] = pool.allocate(bytes, stream);
      device_->copy(memory[i], matrices[i]->bytes.data(), bytes, stream, {});
    }
    runMatmul(*device_, specOf(a, b, c), {memory[0], memory[1], nullptr, memory[2], nullptr},
              stream);
    device_->copy(c.bytes.data(), memory[2], static_cast<int64_t>(c.bytes.size()), stream, {});
    finish(stream);
    for (int i = 0; i < 3; ++i) {
      pool.deallocate(memory[i], static_cast<int64_t>(matrices[i]->bytes.size()), stream);
    }
  }
};

constexpr DType kFloats[] = {DType::F32, DType::F64, DType::F16, DType::BF16};

// heddle's own kernel multiplies integers and bools. cuBLASLt multiplies the other dtypes.
TEST_F(CudaMatmulGpu, EveryCaseMatchesLoops) {
  std::mt19937 random(11);
  for (DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::I32,
                      DType::I8, DType::Bool}) {
    for (const MatmulCase& sizes : matmulCases()) {
      SCOPED_TRACE(std::string(name(dtype)) + " " + sizes.what);
      Matrix a(dtype, sizes.a, sizes.a_strides);
      Matrix b(dtype, sizes.b, sizes.b_strides);
      Matrix c(dtype, sizes.c, sizes.c_strides);
      fillRandom(a, random);
      fillRandom(b, random);
      ASSERT_NO_THROW(multiply(a, b, c, stream_));
      // bf16 represents all integers up to 256. The sums here are far below 256.
      checkMatmul(a, b, c);
    }
  }
}

// An operand that begins at an odd element is less aligned than cuBLASLt assumes by default.
TEST_F(CudaMatmulGpu, MisalignedOperandsAreRight) {
  for (DType dtype : kFloats) {
    constexpr int64_t kSize = 32;
    Matrix a(dtype, {kSize, kSize}, {}), b(dtype, {kSize, kSize}, {}), c(dtype, {kSize, kSize}, {});
    std::mt19937 random(3);
    fillRandom(a, random);
    fillRandom(b, random);
    const int64_t shift = sizeOf(dtype);
    const int64_t bytes = kSize * kSize * shift;
    char* memory[3];
    for (char*& block : memory) block = static_cast<char*>(allocate(bytes + shift)) + shift;
    device_->copy(memory[0], a.bytes.data(), bytes, stream_, {});
    device_->copy(memory[1], b.bytes.data(), bytes, stream_, {});
    runMatmul(*device_, specOf(a, b, c), {memory[0], memory[1], nullptr, memory[2], nullptr},
              stream_);
    device_->copy(c.bytes.data(), memory[2], bytes, stream_, {});
    finish(stream_);
    checkMatmul(a, b, c);
  }
}

// 1 + 2^-13 needs more bits than TF32 has.
TEST_F(CudaMatmulGpu, F32KeepsFullPrecision) {
  Matrix a(DType::F32, {64, 64}, {}), b(DType::F32, {64, 64}, {}), c(DType::F32, {64, 64}, {});
  const double fine = 1.0 + std::ldexp(1.0, -13);
  for (int64_t i = 0; i < 64 * 64; ++i) {
    storeElement(a.bytes.data(), DType::F32, i, fine);
    storeElement(b.bytes.data(), DType::F32, i, i / 64 == i % 64 ? 1.0 : 0.0);
  }
  multiply(a, b, c, stream_);
  for (int64_t i = 0; i < 64; ++i) EXPECT_EQ(c.at({i, 63 - i}), fine);
}

// In f32, 1 + 256 * 2^-9 is 1.5. If each step were rounded to bf16, the sum would stay 1.
TEST_F(CudaMatmulGpu, Bf16AccumulatesInF32) {
  Matrix a(DType::BF16, {1, 257}, {}), b(DType::BF16, {257, 1}, {}), c(DType::BF16, {1, 1}, {});
  for (int64_t p = 0; p < 257; ++p) {
    storeElement(a.bytes.data(), DType::BF16, p, 1.0);
    storeElement(b.bytes.data(), DType::BF16, p, p == 0 ? 1.0 : std::ldexp(1.0, -9));
  }
  multiply(a, b, c, stream_);
  EXPECT_EQ(c.at({0, 0}), 1.5);
}

TEST_F(CudaMatmulGpu, BatchesBeyondOneCallAreRight) {
  constexpr int64_t kBatches = 70000;
  Matrix a(DType::F32, {kBatches, 1, 2}, {}), b(DType::F32, {kBatches, 2, 1}, {});
  Matrix c(DType::F32, {kBatches, 1, 1}, {});
  std::mt19937 random(2);
  fillRandom(a, random);
  fillRandom(b, random);
  multiply(a, b, c, stream_);
  checkMatmul(a, b, c);
}

TEST_F(CudaMatmulGpu, SeveralThreadsMultiplyConcurrently) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      Stream stream = device_->createStream();
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < 10; ++i) {
        Matrix a(DType::F32, {16 + i, 8}, {}), b(DType::F32, {8, 12}, {}),
            c(DType::F32, {16 + i, 12}, {});
        fillRandom(a, random);
        fillRandom(b, random);
        multiply(a, b, c, stream);
        checkMatmul(a, b, c);
      }
      device_->destroyStream(stream);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Covers every memory order, aligned and misaligned. Some orders are direct calls of cuBLASLt, some
// need packed operands, and some need heddle's own kernel.
TEST_F(CudaMatmulGpu, Float8IsRightInEveryMemoryOrder) {
  std::mt19937 random(8);
  const std::vector<int64_t> dense, a_turned{20 * 32, 1, 20}, b_turned{32 * 48, 1, 32};
  for (const auto& [left, right, result] : {std::tuple{DType::F8E4M3, DType::F8E4M3, DType::F32},
                                            {DType::F8E4M3, DType::F8E5M2, DType::BF16},
                                            {DType::F8E5M2, DType::F8E4M3, DType::F16},
                                            {DType::F8E5M2, DType::F8E5M2, DType::F32}}) {
    for (int mix = 0; mix < 8; ++mix) {
      SCOPED_TRACE(std::string(name(left)) + " " + std::to_string(mix));
      Matrix a(left, {3, 20, 32}, (mix & 1) != 0 ? a_turned : dense);
      Matrix b(right, {3, 32, 48}, (mix & 2) != 0 ? b_turned : dense);
      Matrix c(result, {3, 20, 48}, {});
      fillRandom(a, random);
      fillRandom(b, random);
      const int64_t shift = (mix & 4) != 0 ? 1 : 0;
      const auto put = [&](const Matrix& x, int64_t by) {
        const auto bytes = static_cast<int64_t>(x.bytes.size());
        char* memory = static_cast<char*>(allocate(bytes + by)) + by;
        device_->copy(memory, x.bytes.data(), bytes, stream_, {});
        return memory;
      };
      void* out = put(c, 0);
      runMatmul(*device_, specOf(a, b, c), {put(a, shift), put(b, shift), nullptr, out, nullptr},
                stream_);
      device_->copy(c.bytes.data(), out, static_cast<int64_t>(c.bytes.size()), stream_, {});
      finish(stream_);
      checkMatmul(a, b, c);
    }
  }
}

// Covers bias and activation after a matrix product of f8 operands. For an f32 result heddle's
// kernel computes them. For a bf16 result cuBLASLt has an algorithm that computes them.
TEST_F(CudaMatmulGpu, Float8BiasAndReluAreRight) {
  std::mt19937 random(9);
  for (const DType result : {DType::F32, DType::BF16}) {
    Matrix a(DType::F8E4M3, {16, 64}, {}), b(DType::F8E4M3, {64, 32}, {1, 64});
    Matrix c(result, {16, 32}, {}), plain(result, {16, 32}, {}), bias(result, {32}, {});
    for (Matrix* x : {&a, &b, &bias}) fillRandom(*x, random);
    multiply(a, b, plain, stream_);
    MatmulSpec spec = specOf(a, b, c);
    spec.bias = bias.desc;
    spec.activation = Activation::Relu;
    const std::set<std::string> questions = device_->algorithmQuestions(spec);
    ASSERT_EQ(questions.size(), 1u);
    EXPECT_FALSE(device_->chooseAlgorithm(*questions.begin(), stream_, "").empty());
    const Matrix* matrices[] = {&a, &b, &bias, &c};
    void* memory[4];
    for (int i = 0; i < 4; ++i) {
      const auto bytes = static_cast<int64_t>(matrices[i]->bytes.size());
      memory[i] = allocate(bytes);
      device_->copy(memory[i], matrices[i]->bytes.data(), bytes, stream_, {});
    }
    runMatmul(*device_, spec, {memory[0], memory[1], memory[2], memory[3], nullptr}, stream_);
    device_->copy(c.bytes.data(), memory[3], static_cast<int64_t>(c.bytes.size()), stream_, {});
    finish(stream_);
    for (int64_t i = 0; i < 16 * 32; ++i) {
      const std::vector<int64_t> at = {i / 32, i % 32};
      EXPECT_EQ(c.at(at), std::max(plain.at(at) + bias.at({at[1]}), 0.0)) << i;
    }
  }
}

// A choice can name heddle's own kernel. The case has a batch and transposed operands.
TEST_F(CudaMatmulGpu, ChosenOwnKernelIsRight) {
  std::mt19937 random(4);
  for (const DType dtype : {DType::F32, DType::BF16, DType::F64}) {
    Matrix a(dtype, {3, 5, 4}, {20, 1, 5}), b(dtype, {3, 4, 6}, {24, 1, 4}),
        c(dtype, {3, 5, 6}, {});
    for (Matrix* x : {&a, &b}) fillRandom(*x, random);
    const MatmulSpec spec = specOf(a, b, c);
    const std::set<std::string> questions = device_->algorithmQuestions(spec);
    ASSERT_EQ(questions.size(), 1u);
    EXPECT_EQ(device_->chooseAlgorithm(*questions.begin(), stream_, "own"), "own");
    void* memory[3];
    const Matrix* matrices[] = {&a, &b, &c};
    for (int i = 0; i < 3; ++i) {
      const auto bytes = static_cast<int64_t>(matrices[i]->bytes.size());
      memory[i] = allocate(bytes);
      device_->copy(memory[i], matrices[i]->bytes.data(), bytes, stream_, {});
    }
    runMatmul(*device_, spec, {memory[0], memory[1], nullptr, memory[2], nullptr}, stream_,
              {{*questions.begin(), "own"}});
    device_->copy(c.bytes.data(), memory[2], static_cast<int64_t>(c.bytes.size()), stream_, {});
    finish(stream_);
    checkMatmul(a, b, c);
  }
}

TEST_F(CudaMatmulGpu, LargeMatmulsDoNotUseTheOwnKernel) {
  MatmulSpec spec;
  for (TensorDesc* desc : {&spec.a, &spec.b, &spec.c}) {
    *desc = denseDesc(DType::BF16, {1024, 1024});
  }
  const std::string question = *device_->algorithmQuestions(spec).begin();
  EXPECT_NE(device_->chooseAlgorithm(question, stream_, "own"), "own");
}

TEST_F(CudaMatmulGpu, IntegersWrap) {
  const int64_t big = int64_t{1} << 62;
  Matrix a(DType::I64, {1, 2}, {}), b(DType::I64, {2, 1}, {}), c(DType::I64, {1, 1}, {});
  storeElement(a.bytes.data(), DType::I64, 0, big);
  storeElement(a.bytes.data(), DType::I64, 1, int64_t{3});
  storeElement(b.bytes.data(), DType::I64, 0, int64_t{5});
  storeElement(b.bytes.data(), DType::I64, 1, int64_t{7});
  multiply(a, b, c, stream_);
  EXPECT_EQ(std::get<int64_t>(loadElement(c.bytes.data(), DType::I64, 0)), big + 21);
}

}  // namespace
}  // namespace heddle::host::cuda_matmul_gpu_test
