#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "host/device/choice_cache.h"

namespace heddle::host::choice_cache_cpu_test {
namespace {

class ChoiceCacheFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              fmt::format("heddle_algorithms_{}", static_cast<int>(getpid()));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(ChoiceCacheFolder, ChoicesAreKeptOnDiskForEachDevice) {
  ChoiceCache store(folder_ / "deep", "gpu 1");
  EXPECT_EQ(store.find("k"), std::nullopt);
  store.put("k", "one");
  store.put("k", "two");
  EXPECT_EQ(store.find("k"), "two");
  EXPECT_EQ(ChoiceCache(folder_ / "deep", "gpu 1").find("k"), "two");
  EXPECT_EQ(ChoiceCache(folder_ / "deep", "gpu 2").find("k"), std::nullopt);
}

TEST_F(ChoiceCacheFolder, DamagedFilesAreIgnored) {
  ChoiceCache(folder_, "gpu").put("k", "one");
  for (const auto& file : std::filesystem::directory_iterator(folder_)) {
    std::ofstream(file.path()) << "gpu\nanother key\n";
  }
  EXPECT_EQ(ChoiceCache(folder_, "gpu").find("k"), std::nullopt);
}

TEST_F(ChoiceCacheFolder, UnwritableFolderKeepsChoicesInMemory) {
  ChoiceCache store("/proc/nowhere", "gpu");
  store.put("k", "one");
  EXPECT_EQ(store.find("k"), "one");
}

}  // namespace
}  // namespace heddle::host::choice_cache_cpu_test
