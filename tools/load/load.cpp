// heddle-load: a load test of heddle inside one process. Several threads run two executors with
// many shapes in random order. Each thread has its own stream and allocator. The test compares
// every result with a plain loop. Some allocations fail on purpose. The memory of the process may
// grow only a little.
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "codegen/compile/child_process.h"
#include "codegen/compile/image_cache.h"
#include "host/device/cpu/cpu_device.h"
#include "host/fusion_executor.h"
#include "host/tensor.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"

namespace heddle::tools {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  double seconds = 30;
  int threads = 8;
  int shapes = 200;
  uint64_t seed = 1;
  std::string device = "cpu";
  int64_t growth = 64;
};

// The allocator of one thread. After failAt(n), n further allocations succeed, and the next one
// fails. failAt(-1) cancels this.
class ThreadAllocator : public host::Allocator {
 public:
  explicit ThreadAllocator(host::Allocator& inner) : inner_(inner) {}
  void failAt(int n) { left_ = n; }
  bool hasFailed() const { return left_ == kFailed; }
  int64_t heldBytes() const { return held_.load(); }
  void* allocate(int64_t bytes, host::Stream stream) override {
    int left = left_.load();
    if (left >= 0) {
      left_ = left == 0 ? kFailed : left - 1;
      if (left == 0) throw std::bad_alloc();
    }
    void* memory = inner_.allocate(bytes, stream);
    held_ += bytes;
    return memory;
  }
  void deallocate(void* memory, int64_t bytes, host::Stream stream) noexcept override {
    held_ -= bytes;
    inner_.deallocate(memory, bytes, stream);
  }

 private:
  static constexpr int kFailed = -2;
  host::Allocator& inner_;
  std::atomic<int> left_{-1};
  std::atomic<int64_t> held_{0};
};

struct Shape {
  int64_t rows;
  int64_t columns;
};

// Both executors run the same shapes. %x has `rows` rows and `columns` columns, and its elements
// are valueAt().
const char* const kSoftmaxText =
    "heddle 1\nfusion softmax(%x: f32[r, c]) {\n  %y = softmax(%x, axis=1)\n  return %y\n}\n";
const char* const kSumsText =
    "heddle 1\nfusion sums(%x: f32[r, c], %s: f32) {\n  %m = mul(%x, %s)\n"
    "  %y = sum(%m, axes=[1])\n  %z = max(%x, axes=[0])\n  return %y, %z\n}\n";

float valueAt(int64_t row, int64_t column) {
  return static_cast<float>((row * 7 + column * 3) % 17) / 8;
}

class LoadTest {
 public:
  explicit LoadTest(const Options& options)
      : options_(options),
        device_(options.device == "cuda" ? host::makeCudaDevice(0) : host::makeCpuDevice()),
        softmax_(parseFusion(kSoftmaxText), {device_.get(), nullptr, &images_}, smallCaches()),
        sums_(parseFusion(kSumsText), {device_.get(), nullptr, &images_}, smallCaches()) {
    std::mt19937_64 random(options.seed);
    for (int i = 0; i < options.shapes; ++i) {
      shapes_.push_back(
          {1 + static_cast<int64_t>(random() % 40), 1 + static_cast<int64_t>(random() % 300)});
    }
  }

  int run() {
    const int64_t warm = visitHalf();
    const auto begin = Clock::now();
    std::vector<std::thread> threads;
    end_ = begin + std::chrono::duration_cast<Clock::duration>(
                       std::chrono::duration<double>(options_.seconds));
    for (int t = 0; t < options_.threads; ++t) threads.emplace_back([this, t] { work(t); });
    for (std::thread& thread : threads) thread.join();
    return report(warm, std::chrono::duration<double>(Clock::now() - begin).count());
  }

 private:
  // The caches hold fewer plans than the default number of shapes, so that threads drop and create
  // plans all the time.
  static host::CompileOptions smallCaches() {
    host::CompileOptions options;
    options.caches.plans = 100;
    return options;
  }

  // Runs every second shape once, so that memory hardly grows afterwards. The threads later run the
  // other shapes too, which may need new kernels. Returns the resident bytes of the process.
  int64_t visitHalf() {
    ThreadAllocator allocator(device_->allocator());
    const host::Stream stream = device_->createStream();
    for (size_t i = 0; i < shapes_.size(); i += 2) {
      runSoftmax(shapes_[i], stream, allocator);
      runSums(shapes_[i], stream, allocator);
    }
    device_->destroyStream(stream);
    return residentBytes();
  }

  static int64_t residentBytes() {
    std::ifstream file("/proc/self/statm");
    int64_t pages = 0, resident = 0;
    file >> pages >> resident;
    return resident * sysconf(_SC_PAGESIZE);
  }

  void work(int thread) {
    std::mt19937_64 random(options_.seed * 1000 + static_cast<uint64_t>(thread));
    ThreadAllocator allocator(device_->allocator());
    const host::Stream stream = device_->createStream();
    while (Clock::now() < end_ && faults_.load() == 0) {
      const Shape& shape = shapes_[random() % shapes_.size()];
      try {
        if (random() % 16 == 0) {
          expectFailedAllocation(shape, static_cast<int>(random() % 4), stream, allocator);
        } else if (random() % 16 == 0) {
          prepareSoftmax(shape);
        } else if (random() % 2 == 0) {
          runSoftmax(shape, stream, allocator);
        } else {
          runSums(shape, stream, allocator);
        }
      } catch (const std::exception& error) {
        fault(fmt::format("x[{}, {}]: {}", shape.rows, shape.columns, error.what()));
      }
    }
    if (allocator.heldBytes() != 0) {
      fault(fmt::format("{} bytes of thread {} were not freed", allocator.heldBytes(), thread));
    }
    device_->destroyStream(stream);
  }

  // Returns a temporary tensor, which the run must keep alive.
  host::Tensor input(const Shape& shape, host::Allocator& allocator) const {
    HostTensor x(DType::F32, {shape.rows, shape.columns});
    for (int64_t r = 0; r < shape.rows; ++r) {
      for (int64_t c = 0; c < shape.columns; ++c) {
        x.as<float>()[r * shape.columns + c] = valueAt(r, c);
      }
    }
    return host::toDevice(*device_, allocator, x, denseDesc(DType::F32, x.sizes));
  }

  // Prepares a shape that other threads may run, prepare or drop at the same time.
  void prepareSoftmax(const Shape& shape) {
    host::Tensor x;
    x.desc = denseDesc(DType::F32, {shape.rows, shape.columns});
    softmax_.prepare({x});
  }

  void runSoftmax(const Shape& shape, host::Stream stream, host::Allocator& allocator) {
    host::RunOptions run;
    run.stream = stream;
    run.allocator = &allocator;
    const host::Outputs outputs = softmax_.run({input(shape, device_->allocator())}, run);
    outputs.wait();
    const HostTensor y = host::toHost(*device_, outputs.tensor("y"));
    for (int64_t r = 0; r < shape.rows; ++r) {
      double sum = 0;
      for (int64_t c = 0; c < shape.columns; ++c) sum += std::exp(valueAt(r, c));
      for (int64_t c = 0; c < shape.columns; ++c) {
        expectNear(y.as<float>()[r * shape.columns + c], std::exp(valueAt(r, c)) / sum, "softmax");
      }
    }
    ++runs_;
  }

  void runSums(const Shape& shape, host::Stream stream, host::Allocator& allocator) {
    host::RunOptions run;
    run.stream = stream;
    run.allocator = &allocator;
    const host::Outputs outputs = sums_.run({input(shape, device_->allocator()), Scalar(0.5)}, run);
    outputs.wait();
    const HostTensor y = host::toHost(*device_, outputs.tensor("y"));
    const HostTensor z = host::toHost(*device_, outputs.tensor("z"));
    for (int64_t r = 0; r < shape.rows; ++r) {
      double sum = 0;
      for (int64_t c = 0; c < shape.columns; ++c) sum += valueAt(r, c) * 0.5;
      expectNear(y.as<float>()[r], sum, "sum");
    }
    for (int64_t c = 0; c < shape.columns; ++c) {
      float most = 0;
      for (int64_t r = 0; r < shape.rows; ++r) most = std::max(most, valueAt(r, c));
      expectNear(z.as<float>()[c], most, "max");
    }
    ++runs_;
  }

  // Makes allocation number n (from 0) of a run fail, if the run makes so many allocations. The run
  // must then throw an Error with the code OutOfMemory. The next run must succeed.
  void expectFailedAllocation(const Shape& shape, int n, host::Stream stream,
                              ThreadAllocator& allocator) {
    allocator.failAt(n);
    try {
      runSums(shape, stream, allocator);
      if (allocator.hasFailed()) fault("a failed allocation was not reported");
    } catch (const Error& error) {
      if (!allocator.hasFailed() || error.code() != ErrorCode::OutOfMemory) throw;
      ++failed_allocations_;
    }
    allocator.failAt(-1);
    runSums(shape, stream, allocator);
  }

  void expectNear(double got, double expected, const char* what) {
    if (std::fabs(got - expected) <= 1e-5 * (1 + std::fabs(expected))) return;
    userError("{}: got {}, expected {}", what, got, expected);
  }

  void fault(const std::string& text) {
    if (faults_.fetch_add(1) < 10) fmt::print(stderr, "heddle-load: {}\n", text);
  }

  int report(int64_t warm, double seconds) {
    const int64_t now = residentBytes();
    if (now > warm + (options_.growth << 20)) {
      fault(fmt::format("the process grew from {} to {} MiB", warm >> 20, now >> 20));
    }
    for (const host::FusionExecutor* executor : {&softmax_, &sums_}) {
      const host::Executable::Stats stats = executor->stats();
      fmt::print("programs {}, plans {}, hits {}, evictions {}, compiled {} in {:.1f} s\n",
                 stats.programs, stats.plans, stats.plan_hits, stats.plan_evictions,
                 stats.kernels_compiled, stats.compile_seconds);
      if (stats.held_bytes != 0)
        fault(fmt::format("{} bytes of outputs are held", stats.held_bytes));
    }
    fmt::print(
        "heddle-load: {} runs of {} shapes on {} threads in {:.0f} s, {} failed allocations, {} "
        "MiB "
        "after warm-up and {} MiB at the end, {} fault(s)\n",
        runs_.load(), shapes_.size(), options_.threads, seconds, failed_allocations_.load(),
        warm >> 20, now >> 20, faults_.load());
    return faults_.load() == 0 ? 0 : 1;
  }

  const Options options_;
  const std::unique_ptr<host::Device> device_;
  codegen::TempFolder folder_;  // an empty cache folder, so that kernels are compiled
  codegen::ImageCache images_{folder_.path()};
  host::FusionExecutor softmax_;
  host::FusionExecutor sums_;
  std::vector<Shape> shapes_;
  Clock::time_point end_;
  std::atomic<int64_t> runs_{0};
  std::atomic<int64_t> failed_allocations_{0};
  std::atomic<int> faults_{0};
};

}  // namespace
}  // namespace heddle::tools

int main(int argc, char** argv) {
  heddle::tools::Options options;
  CLI::App app{"Runs two executors on several threads, and checks results, memory and errors."};
  app.add_option("--seconds", options.seconds, "duration, after half of the shapes have run once");
  app.add_option("--threads", options.threads, "number of threads");
  app.add_option("--shapes", options.shapes, "number of different shapes");
  app.add_option("--seed", options.seed, "seed of the shapes and of their order");
  app.add_option("--growth", options.growth,
                 "MiB by which the process may grow after half of the shapes have run once");
  app.add_option("--device", options.device, "cpu or cuda")->check(CLI::IsMember({"cpu", "cuda"}));
  CLI11_PARSE(app, argc, argv);
  try {
    return heddle::tools::LoadTest(options).run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "heddle-load: {}\n", error.what());
    return 2;
  }
}
