#include "codegen/compile/private_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "codegen/compile/child_process.h"
#include "ir/base/error.h"

namespace heddle::codegen::private_folder_test {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kOtherUser = 12345;
constexpr int64_t kMost = 1000;

std::string whyRefused(const std::string& path) {
  try {
    PrivateFolder folder(path);
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(PrivateFolder, FilesAreWrittenReadAndReplaced) {
  TempFolder temporary;
  const PrivateFolder folder(temporary.path() + "/new/folder/");
  EXPECT_FALSE(folder.read("a", kMost));
  ASSERT_TRUE(folder.write("a", "one"));
  ASSERT_TRUE(folder.write("a", "two"));
  ASSERT_TRUE(folder.link("a", "b"));
  for (const char* name : {"a", "b"}) EXPECT_EQ(folder.read(name, kMost)->bytes, "two");
  EXPECT_FALSE(folder.read("a", 2)) << "the file has 3 bytes";
  EXPECT_EQ(folder.list().size(), 2u);
  folder.remove("a");
  EXPECT_FALSE(folder.read("a", kMost));
  struct stat status {};
  ASSERT_EQ(stat(folder.path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST(PrivateFolder, FoldersThatOthersCanWriteAreRefused) {
  TempFolder temporary;
  const std::string path = temporary.path() + "/cache";
  ASSERT_TRUE(PrivateFolder(path).write("a", "one"));
  EXPECT_EQ(whyRefused(path), "");
  for (mode_t mode : {0777, 0770, 0707, 01777}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_NE(whyRefused(path).find("other users may write to it"), std::string::npos) << mode;
  }
  ASSERT_EQ(chmod(path.c_str(), 0755), 0);
  EXPECT_EQ(whyRefused(path), "") << "others may read";
  fs::create_symlink(path, temporary.path() + "/link");
  EXPECT_EQ(whyRefused(temporary.path() + "/link"), "it is a symbolic link");
  EXPECT_EQ(whyRefused(temporary.path() + "/link/"), "it is a symbolic link");
  EXPECT_EQ(whyRefused(path + "/a"), "it is not a folder");
  EXPECT_EQ(whyRefused(path + "/a/b"), "Not a directory");
}

TEST(PrivateFolder, FoldersOfOtherUsersAreRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  TempFolder temporary;
  const std::string path = temporary.path() + "/cache";
  ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
  ASSERT_EQ(chown(path.c_str(), kOtherUser, kOtherUser), 0);
  EXPECT_EQ(whyRefused(path), "it belongs to user 12345, not to user 0");
}

// Each case replaces a file of the folder by something that read() must refuse. If the file is a
// named pipe, read() must not wait for a writer.
TEST(PrivateFolder, OnlyPrivateRegularFilesAreRead) {
  TempFolder temporary;
  const PrivateFolder folder(temporary.path() + "/cache");
  const std::string path = folder.path() + "/a";
  const std::string elsewhere = temporary.path() + "/elsewhere";
  std::ofstream(elsewhere) << "one";
  const std::vector<std::pair<const char*, std::function<int()>>> replacements = {
      {"link", [&] { return symlink(elsewhere.c_str(), path.c_str()); }},
      {"link to a device", [&] { return symlink("/dev/zero", path.c_str()); }},
      {"named pipe", [&] { return mkfifo(path.c_str(), 0600); }},
      {"folder", [&] { return mkdir(path.c_str(), 0700); }},
      {"writable by others",
       [&] { return folder.write("a", "one") ? chmod(path.c_str(), 0622) : -1; }},
      {"sparse file",
       [&] { return folder.write("a", "") ? truncate(path.c_str(), 1L << 40) : -1; }}};
  for (const auto& [name, replace] : replacements) {
    fs::remove_all(path);
    ASSERT_EQ(replace(), 0) << name;
    EXPECT_FALSE(folder.read("a", kMost)) << name;
    if (!fs::is_directory(path)) {
      ASSERT_TRUE(folder.write("a", "new")) << name;
      EXPECT_EQ(folder.read("a", kMost)->bytes, "new") << name;
    }
  }
  std::ifstream untouched(elsewhere);
  std::string text;
  std::getline(untouched, text);
  EXPECT_EQ(text, "one") << "the target of the link is not written";
}

TEST(PrivateFolder, FilesOfOtherUsersAreNotRead) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  TempFolder temporary;
  const PrivateFolder folder(temporary.path());
  ASSERT_TRUE(folder.write("a", "one"));
  ASSERT_EQ(chown((folder.path() + "/a").c_str(), kOtherUser, kOtherUser), 0);
  EXPECT_FALSE(folder.read("a", kMost));
}

TEST(PrivateFolder, RefusedFolderIsReplacedByANewOne) {
  TempFolder temporary;
  const std::string path = temporary.path() + "/open";
  ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
  ASSERT_EQ(chmod(path.c_str(), 0777), 0);
  ::testing::internal::CaptureStderr();
  const std::unique_ptr<PrivateFolder> first = openOrReport(path, "kernels are compiled again");
  const std::unique_ptr<PrivateFolder> second = openOrReport(path, "kernels are compiled again");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "heddle: the kernel cache " + path +
                " is not used: other users may write to it (mode 0777); kernels are compiled "
                "again\n");
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_NE(first->path(), path);
  ASSERT_TRUE(first->write("a", "one"));
  EXPECT_EQ(second->read("a", kMost)->bytes, "one");
  EXPECT_TRUE(fs::is_empty(path));
}

}  // namespace
}  // namespace heddle::codegen::private_folder_test
