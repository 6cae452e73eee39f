// Tests that no thread waits for a compiler while it holds a lock. The functions
// pthread_mutex_lock() and so on of this file replace those of the C library in the whole process,
// and count the mutexes that each thread holds. Sanitizers replace these functions too, so their
// builds omit this test.
#ifndef HEDDLE_SANITIZED

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "codegen/compile/child_process.h"
#include "codegen/compile/image_cache.h"
#include "host/fusion_executor.h"
#include "host/prepared_run.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"
#include "tests/host/observed_compiler.h"
#include "tests/host/on_ranks.h"

namespace heddle::host::held_locks_cpu_test {
namespace {

thread_local int64_t held_by_thread = 0;
std::atomic<int64_t> locked{0};  // number of times that a thread has locked a mutex

template <class Function>
Function* functionOfLibrary(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int countLock(int result) {
  if (result != 0) return result;
  ++held_by_thread;
  locked.fetch_add(1, std::memory_order_relaxed);
  return result;
}

}  // namespace
}  // namespace heddle::host::held_locks_cpu_test

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  using namespace heddle::host::held_locks_cpu_test;
  static auto* const lock = functionOfLibrary<int(pthread_mutex_t*)>("pthread_mutex_lock");
  return countLock(lock(mutex));
}

int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  using namespace heddle::host::held_locks_cpu_test;
  static auto* const lock = functionOfLibrary<int(pthread_mutex_t*)>("pthread_mutex_trylock");
  return countLock(lock(mutex));
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  using namespace heddle::host::held_locks_cpu_test;
  static auto* const unlock = functionOfLibrary<int(pthread_mutex_t*)>("pthread_mutex_unlock");
  --held_by_thread;
  return unlock(mutex);
}

}  // extern "C"

namespace heddle::host::held_locks_cpu_test {
namespace {

using testing::ObservedCompilerDevice;

// Counts the compilations, and those that a thread with a lock has started.
struct Compilations {
  std::atomic<int> all{0};
  std::atomic<int> with_lock{0};
  void add() {
    ++all;
    if (held_by_thread != 0) ++with_lock;
  }
};

// One kernel, so that the thread that needs the kernel runs the compiler itself.
const char* const kFusion =
    "heddle 1\nfusion f(%x: f32[n, m]) {\n  %y = add(%x, 1.0)\n  return %y\n}\n";

TEST(HeldLocks, LocksOfTheLibraryAreCounted) {
  ObservedCompilerDevice device([] {});
  FusionExecutor executor(parseFusion(kFusion), {&device});
  const int64_t before = locked.load();
  executor.stats();
  EXPECT_GT(locked.load(), before);
  EXPECT_EQ(held_by_thread, 0);
  std::mutex mutex;
  std::lock_guard lock(mutex);
  EXPECT_EQ(held_by_thread, 1);
}

TEST(HeldLocks, CompilersOfOneRankRunWithoutLocks) {
  Compilations compilations;
  ObservedCompilerDevice device([&] { compilations.add(); });
  if (device.compiler() == nullptr) GTEST_SKIP() << "no compiler";
  codegen::TempFolder folder;
  codegen::ImageCache images(folder.path());
  FusionExecutor executor(parseFusion(kFusion), {&device, nullptr, &images});
  const Tensor x = testing::deviceFloats(device, {1, 2, 3, 4, 5, 6}, {2, 3});
  Tensor other = x;
  executor.run({x}).wait();
  other.desc.strides = {1, 2};
  executor.prepare({other});
  other.desc.strides = {6, 2};
  executor.prepareAsync({other}).wait();
  other.desc.strides = {0, 1};
  executor.prepareRun({other});
  EXPECT_GE(compilations.all.load(), 3);  // some strides share a kernel
  EXPECT_EQ(compilations.with_lock.load(), 0);
}

TEST(HeldLocks, CompilersOfCommunicatingRunsRunWithoutLocks) {
  const Fusion fusion = parseFusion(R"(heddle 1
mesh @m = [x=ranks]
fusion f(%x: f32[n, 4] shard(@m, 0: x)) {
  %y = sum(%x, axes=[0])
  return %y shard(@m)
}
)");
  Compilations compilations;
  const auto errors = testing::onRanks(2, [&](comm::World& world) {
    ObservedCompilerDevice device([&] { compilations.add(); });
    if (device.compiler() == nullptr) return;
    codegen::TempFolder folder;  // one per rank, so that each rank compiles
    codegen::ImageCache images(folder.path());
    FusionExecutor executor(fusion, {&device, &world, &images});
    for (const int64_t n : {4, 400}) {
      const TensorDesc desc = executor.inputDescs({{"n", n}}).at(0);
      const HostTensor ones = [&] {
        HostTensor values(DType::F32, desc.sizes);
        for (int64_t i = 0; i < values.numel(); ++i) values.set(i, 1.0);
        return values;
      }();
      const Outputs outputs = executor.run({toDevice(device, device.allocator(), ones, desc)});
      outputs.wait();
      EXPECT_EQ(testing::floatsOf(device, outputs.tensor(0)),
                std::vector<float>(4, static_cast<float>(n)));
    }
    world.barrier();
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  EXPECT_GE(compilations.all.load(), 2);
  EXPECT_EQ(compilations.with_lock.load(), 0);
}

}  // namespace
}  // namespace heddle::host::held_locks_cpu_test

#endif
