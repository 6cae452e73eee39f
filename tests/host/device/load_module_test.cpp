#include "host/device/load_module.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/host/environment_variable.h"

namespace heddle::host::load_module_test {
namespace {

using testing::EnvironmentVariable;

TEST(LoadModule, MissingLibraryIsReportedWithEveryPath) {
  EnvironmentVariable folder("HEDDLE_MODULE_DIR", "/nowhere/modules");
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

}  // namespace
}  // namespace heddle::host::load_module_test
