// Compiles the kernels of bench/workloads for GPUs, and bounds the local memory of a thread. NVRTC
// needs no GPU. Local memory holds registers that do not fit (spills) and arrays with computed
// indices. Both are slow.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "codegen/kernel.h"
#include "host/compile.h"
#include "host/inspect.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tests/codegen/simt/nvrtc.h"

namespace heddle::host::nvrtc_local_memory_simt_test {
namespace {

template <class T>
T at(const std::vector<std::byte>& bytes, size_t offset) {
  T value;
  HEDDLE_CHECK(offset + sizeof(T) <= bytes.size(), "the cubin ends early");
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

// Returns the largest frame, in bytes, of the functions of a cubin. A cubin is an ELF file. Its
// section ".nv.info" has a list of attributes: one byte with the format, one byte with the number
// of the attribute, two bytes with a size or a value, and the data. The data of the attribute
// "frame size" is the index of a function and the bytes of its frame.
uint32_t largestFrame(const std::vector<std::byte>& cubin) {
  constexpr uint32_t kInfoSection = 0x70000000;
  constexpr uint8_t kWithData = 4;
  constexpr uint8_t kFrameSize = 0x11;
  const auto headers = at<uint64_t>(cubin, 40);
  const auto header_bytes = at<uint16_t>(cubin, 58);
  const auto count = at<uint16_t>(cubin, 60);
  uint32_t largest = 0;
  int frames = 0;
  for (uint16_t i = 0; i < count; ++i) {
    const size_t header = headers + size_t{i} * header_bytes;
    // The section of a kernel names this kernel in `sh_info`.
    if (at<uint32_t>(cubin, header + 4) != kInfoSection) continue;
    if (at<uint32_t>(cubin, header + 44) != 0) continue;
    size_t place = at<uint64_t>(cubin, header + 24);
    const size_t end = place + at<uint64_t>(cubin, header + 32);
    while (place < end) {
      const auto format = at<uint8_t>(cubin, place);
      const auto attribute = at<uint8_t>(cubin, place + 1);
      const auto size = at<uint16_t>(cubin, place + 2);
      if (format == kWithData && attribute == kFrameSize) {
        largest = std::max(largest, at<uint32_t>(cubin, place + 8));
        ++frames;
      }
      place += 4 + (format == kWithData ? size : 0);
    }
  }
  EXPECT_GT(frames, 0) << "the cubin has no frame sizes";
  return largest;
}

// Expects that the kernels of a fusion need at most a few words of local memory.
void expectSmallFrames(const std::string& text, const std::string& name,
                       const codegen::KernelCompiler& compiler) {
  constexpr uint32_t kMostBytes = 16;
  const Program program = compile(parseFusion(text, name), 1);
  const SizeBindings sizes(program.size_defaults.begin(), program.size_defaults.end());
  for (const KernelTexts& kernel :
       kernelTexts(program, sizes, 0, 1, DeviceKind::Cuda, compiler.supportsClusters())) {
    const std::vector<std::byte> cubin =
        codegen::testing::cubinOf({codegen::Target::Cuda, kernel.source}, compiler);
    EXPECT_LE(largestFrame(cubin), kMostBytes) << name << " " << kernel.name;
  }
}

class NvrtcLocalMemorySimt : public ::testing::TestWithParam<const char*> {};

TEST_P(NvrtcLocalMemorySimt, WorkloadsNeedAtMostAFewWords) {
  const std::unique_ptr<codegen::KernelCompiler> compiler = codegen::testing::nvrtc(GetParam());
  if (compiler == nullptr) GTEST_SKIP() << "libheddle_cuda.so with NVRTC is not there";
  const char* root = std::getenv("HEDDLE_SOURCE_DIR");
  const auto folder = std::filesystem::path(root == nullptr ? "." : root) / "bench/workloads";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    expectSmallFrames(text, entry.path().string(), *compiler);
  }
}

// Covers bundles (groups of neighbouring rows) in registers and in shared memory, with one and with
// several inputs.
TEST_P(NvrtcLocalMemorySimt, RowsAlongMiddleAxesNeedAtMostAFewWords) {
  const std::unique_ptr<codegen::KernelCompiler> compiler = codegen::testing::nvrtc(GetParam());
  if (compiler == nullptr) GTEST_SKIP() << "libheddle_cuda.so with NVRTC is not there";
  for (const char* dtype : {"f32", "bf16"}) {
    for (const int m : {20, 400, 1500}) {
      for (const int k : {333, 1024}) {
        const std::string sizes = fmt::format("with n = 64, m = {}, k = {}", m, k);
        expectSmallFrames(fmt::format("heddle 1 fusion softmax(%x: {}[n, m, k]) {} {{ %y = "
                                      "softmax(%x, axis=1) return %y }}",
                                      dtype, sizes),
                          "softmax " + sizes, *compiler);
        expectSmallFrames(
            fmt::format("heddle 1 fusion backward(%g: {0}[n, m, k], %y: {0}[n, m, k]) {1} {{ %p = "
                        "mul(%g, %y) %s = sum(%p, axes=[1], keepdim=true) %d = sub(%g, %s) %x = "
                        "mul(%d, %y) return %x, %s }}",
                        dtype, sizes),
            "backward " + sizes, *compiler);
      }
    }
  }
}

// Covers rows that several blocks share, as clusters (60,000 elements) or by divided rows: with two
// and three sweeps, with one and with several inputs, and at unaligned addresses.
TEST_P(NvrtcLocalMemorySimt, SharedRowsNeedAtMostAFewWords) {
  const std::unique_ptr<codegen::KernelCompiler> compiler = codegen::testing::nvrtc(GetParam());
  if (compiler == nullptr) GTEST_SKIP() << "libheddle_cuda.so with NVRTC is not there";
  for (const char* dtype : {"f32", "bf16", "f64"}) {
    for (const int m : {60000, 59999, 1000000, 999999}) {
      // Without clusters, rows of 60,000 elements are read in parts by one block each.
      if (m < 100000 && !compiler->supportsClusters()) continue;
      const auto expect = [&](const std::string& inputs, const std::string& body) {
        const std::string text =
            fmt::format("heddle 1 fusion f({}) with n = 100, m = {} {{ {} }}",
                        fmt::format(fmt::runtime(inputs), fmt::arg("t", dtype)), m, body);
        expectSmallFrames(text, text, *compiler);
      };
      expect("%x: {t}[n, m]", "%y = log_softmax(%x, axis=1) return %y");
      expect("%g: {t}[n, m], %y: {t}[n, m]",
             "%p = mul(%g, %y) %s = sum(%p, axes=[1], keepdim=true) %d = sub(%g, %s) %x = mul(%d, "
             "%y) return %x, %s");
      expect("%x: {t}[n, m], %w: {t}[m], %b: {t}[m]", "%y = layer_norm(%x, %w, %b) return %y");
      expect("%x: {t}[n, m]",
             "%a = max(%x, axes=[1], keepdim=true) %b = sub(%x, %a) %c = min(%b, axes=[1], "
             "keepdim=true) %d = sub(%b, %c) %e = sum(%d, axes=[1], keepdim=true) %y = mul(%d, "
             "%e) return %y, %c");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Arch, NvrtcLocalMemorySimt, ::testing::Values("sm_80", "sm_90", "sm_100"));

}  // namespace
}  // namespace heddle::host::nvrtc_local_memory_simt_test
