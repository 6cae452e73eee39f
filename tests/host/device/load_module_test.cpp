#include "host/device/load_module.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "host/job/worlds.h"
#include "ir/base/error.h"

namespace heddle::host::device_module_test {
namespace {

// Sets an environment variable and restores it in the destructor.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    const char* before = std::getenv(name);
    if (before != nullptr) before_ = before;
    had_ = before != nullptr;
    value == nullptr ? unsetenv(name) : setenv(name, value, 1);
  }
  ~Variable() { had_ ? setenv(name_, before_.c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::string before_;
  bool had_ = false;
};

TEST(LoadModule, MissingLibraryIsReportedWithEveryPath) {
  Variable folder("HEDDLE_MODULE_DIR", "/nowhere/modules");
  std::string why;
  EXPECT_EQ(findModuleEntry("libheddle_absent.so", "entry", why), nullptr);
  EXPECT_NE(why.find("libheddle_absent.so cannot be loaded"), std::string::npos) << why;
  EXPECT_NE(why.find("/nowhere/modules/libheddle_absent.so"), std::string::npos) << why;
  EXPECT_NE(why.find("cannot open shared object file"), std::string::npos) << why;
}

TEST(LoadModule, LibraryWithoutEntryPointIsReported) {
  std::string why;
  EXPECT_EQ(findModuleEntry("libm.so.6", "heddleNoSuchEntry", why), nullptr);
  EXPECT_NE(why.find("libm.so.6: has no entry point heddleNoSuchEntry"), std::string::npos) << why;
}

TEST(LoadModule, ManyThreadsFindAnEntryPoint) {
  std::vector<std::thread> threads;
  std::vector<void*> found(4, nullptr);
  for (void*& entry : found) {
    threads.emplace_back([&entry] {
      std::string why;
      entry = findModuleEntry("libm.so.6", "cos", why);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (void* entry : found) {
    EXPECT_NE(entry, nullptr);
    EXPECT_EQ(entry, found[0]);
  }
}

TEST(Worlds, JobWithoutMpirunHasOneRank) {
  Variable open_mpi("OMPI_COMM_WORLD_SIZE", nullptr);
  Variable pmi("PMI_SIZE", nullptr);
  EXPECT_FALSE(startedByMpi());
  auto world = makeJobWorld(DeviceKind::Cpu, 0);
  EXPECT_EQ(world->size(), 1);
  EXPECT_EQ(world->rank(), 0);
}

TEST(Worlds, InProcessWorldsAreInRankOrder) {
  auto worlds = makeInProcessWorldsFor(DeviceKind::Cpu, 3);
  ASSERT_EQ(worlds.size(), 3U);
  for (int r = 0; r < 3; ++r) EXPECT_EQ(worlds[r]->rank(), r);
}

TEST(Worlds, CudaWithoutAGpuIsReported) {
  std::string why;
  if (cudaDeviceCount(why) > 0) GTEST_SKIP() << "there is a GPU";
  EXPECT_FALSE(why.empty());
  EXPECT_THROW(makeCudaDevice(0), UserError);
  EXPECT_THROW(makeInProcessWorldsFor(DeviceKind::Cuda, 2), UserError);
}

}  // namespace
}  // namespace heddle::host::device_module_test
