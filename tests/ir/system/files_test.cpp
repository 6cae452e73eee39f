#include "ir/system/files.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "ir/base/check.h"
#include "ir/system/temp_folders.h"

namespace heddle::files_test {
namespace {

namespace fs = std::filesystem;

std::string temporaryFolder() { return fs::temp_directory_path().string(); }

class Files : public ::testing::Test {
 protected:
  void TearDown() override { fs::remove_all(folder_.path); }
  std::string path(const std::string& name) const { return folder_.path + "/" + name; }
  LockedFolder folder_ = createLockedFolder(temporaryFolder(), "heddle-files-test-");
};

template <class Work>
std::string errorOf(const Work& work) {
  try {
    work();
    return "no error";
  } catch (const UserError& error) {
    return error.what();
  }
}

// For other files, openRegularFile() and readTextFile() must neither wait nor read without end.
TEST_F(Files, OnlyRegularFilesAreRead) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", path("zero"));
  fs::create_symlink("/dev/tty", path("terminal"));
  for (const std::string& name :
       {path("pipe"), path("zero"), folder_.path, std::string("/dev/full")}) {
    for (const std::string& said :
         {errorOf([&] { openRegularFile(name); }), errorOf([&] { readTextFile(name, 100); })}) {
      EXPECT_NE(said.find(name + ": cannot read the file: it is "), std::string::npos) << said;
    }
  }
  EXPECT_NE(errorOf([&] { readTextFile(path("none"), 100); }).find("No such file"),
            std::string::npos);
}

TEST_F(Files, TextsHaveALimit) {
  writeFileOf(path("text"), {"hello", "", " world"});
  EXPECT_EQ(readTextFile(path("text"), 11), "hello world");
  EXPECT_NE(errorOf([&] { readTextFile(path("text"), 10); }).find("more than 10 bytes"),
            std::string::npos);
  ASSERT_EQ(truncate(path("text").c_str(), 1L << 40), 0);
  EXPECT_NE(errorOf([&] { readTextFile(path("text"), 1000); }).find("more than 1000 bytes"),
            std::string::npos);
}

TEST_F(Files, OpenPipesAreRead) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_TRUE(writeAll(ends[1], "from a pipe"));
  close(ends[1]);
  EXPECT_EQ(readTextFile(fmt::format("/dev/fd/{}", ends[0]), 100), "from a pipe");
  close(ends[0]);
}

TEST_F(Files, FailedWritesAreReported) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_NE(
      errorOf([&] { writeFileOf(path("pipe"), {"x"}); }).find("a named pipe that nobody reads"),
      std::string::npos);
  EXPECT_EQ(errorOf([&] { writeFileOf("/dev/full", {"x"}); }),
            "cannot write /dev/full: No space left on device");
  EXPECT_NE(errorOf([&] { writeFileOf(path("none/x"), {"x"}); }).find("No such file"),
            std::string::npos);
}

// The test kills child processes that have created folders. Only the folders of these processes may
// be removed.
TEST_F(Files, FoldersOfKilledProcessesAreRemoved) {
  const std::string prefix = "heddle-kill-test-";
  const LockedFolder mine = createLockedFolder(folder_.path, prefix);
  for (int i = 0; i < 5; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const LockedFolder killed = createLockedFolder(folder_.path, prefix);
      std::ofstream(killed.path + "/file") << "x";
      raise(SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
  }
  fs::create_directory(path("other"));
  removeUnlockedFolders(folder_.path, prefix);
  EXPECT_TRUE(fs::exists(mine.path));
  EXPECT_TRUE(fs::exists(path("other")));
  const auto left = std::distance(fs::directory_iterator(folder_.path), fs::directory_iterator());
  EXPECT_EQ(left, 2);
}

}  // namespace
}  // namespace heddle::files_test
