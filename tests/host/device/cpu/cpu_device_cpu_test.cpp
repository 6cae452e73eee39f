#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "codegen/compile/load_library.h"
#include "host/device/cpu/cpu_device.h"
#include "host/device/device.h"
#include "ir/base/check.h"

namespace heddle::host::cpu_device_cpu_test {
namespace {

constexpr const char* kSource = R"(
struct Args { float* out; long n; float add; };
extern "C" void addTiles(const void* p, long begin, long end) {
  const Args& a = *static_cast<const Args*>(p);
  for (long tile = begin; tile < end; ++tile)
    for (long i = tile * 16; i < tile * 16 + 16 && i < a.n; ++i) a.out[i] += a.add + (float)i;
}
)";

struct Args {
  float* out;
  long n;
  float add;
};

// Compiles kSource to a shared object once, and loads it.
class CpuDeviceKernels : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    path_ = new std::string(::testing::TempDir() + "heddle_kernel_" + std::to_string(getpid()));
    std::ofstream(*path_ + ".cpp") << kSource;
    const char* compiler = std::getenv("CXX");
    const std::string command = std::string(compiler == nullptr ? "c++" : compiler) +
                                " -O1 -shared -fPIC -o " + *path_ + ".so " + *path_ + ".cpp";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  static void TearDownTestSuite() {
    std::remove((*path_ + ".cpp").c_str());
    std::remove((*path_ + ".so").c_str());
    delete path_;
  }
  static codegen::KernelImage library() {
    const int file = open((*path_ + ".so").c_str(), O_RDONLY);
    codegen::KernelImage image{{}, codegen::loadLibrary(file)};
    close(file);
    return image;
  }
  static codegen::KernelImage bytes() {
    std::ifstream in(*path_ + ".so", std::ios::binary);
    const std::string all((std::istreambuf_iterator<char>(in)), {});
    codegen::KernelImage image;
    image.bytes.resize(all.size());
    std::memcpy(image.bytes.data(), all.data(), all.size());
    return image;
  }
  static void launchAndCheck(Device& device, KernelHandle kernel, int64_t n) {
    std::vector<float> out(static_cast<size_t>(n), 0.5F);
    Stream stream = device.createStream();
    codegen::LaunchStage stage;
    stage.entry = "addTiles";
    stage.args.resize(sizeof(Args));
    stage.grid = (n + 15) / 16;
    for (float add : {1.0F, 2.0F}) {
      Args args{out.data(), n, add};
      device.launch(kernel, stage, reinterpret_cast<std::byte*>(&args), stream, {});
      args.add = -1000;  // no effect: launch() has already copied the arguments
    }
    device.destroyStream(stream);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out[i], 3.5F + 2 * static_cast<float>(i)) << i;
  }
  static std::string* path_;
};
std::string* CpuDeviceKernels::path_ = nullptr;

TEST_F(CpuDeviceKernels, EachTileRunsOnce) {
  for (int threads : {1, 2, 5}) {
    CpuOptions options;
    options.threads = threads;
    auto device = makeCpuDevice(options);
    const LoadedKernel kernel = device->load(library(), "addTiles");
    for (int64_t n : {1, 16, 17, 1000, 100003}) launchAndCheck(*device, kernel.get(), n);
  }
}

TEST_F(CpuDeviceKernels, KernelsLoadFromBytes) {
  CpuOptions options;
  options.adversarial_seed = 1;
  auto device = makeCpuDevice(options);
  launchAndCheck(*device, device->load(bytes(), "addTiles").get(), 1000);
}

TEST_F(CpuDeviceKernels, SeveralStreamsShareTheThreadPool) {
  CpuOptions options;
  options.threads = 3;
  auto device = makeCpuDevice(options);
  const LoadedKernel kernel = device->load(library(), "addTiles");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) launchAndCheck(*device, kernel.get(), 500);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CpuDeviceKernels, LoadErrorsNameTheKernel) {
  auto device = makeCpuDevice();
  try {
    device->load({std::vector<std::byte>(1000), nullptr}, "damaged");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("kernel damaged: "), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("does not begin like an ELF file"), std::string::npos)
        << e.what();
  }
  EXPECT_THROW(device->load(library(), "absent"), UserError);
}

}  // namespace
}  // namespace heddle::host::cpu_device_cpu_test
