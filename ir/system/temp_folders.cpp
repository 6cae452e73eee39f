#include "ir/system/temp_folders.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "ir/base/check.h"

namespace heddle {
namespace {

FileDescriptor openFolder(const std::string& path) {
  return FileDescriptor(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// Locks the folder. Returns false if another process holds the lock or has removed the folder.
// Returns true if the file system has no locks for folders.
bool lockFolder(const FileDescriptor& folder) {
  if (flock(folder.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  struct stat status {};
  return fstat(folder.get(), &status) == 0 && status.st_nlink > 0;
}

}  // namespace

// Another process may remove the new folder (removeUnlockedFolders()) before it is locked. The
// function then creates another folder, and gives up after kTries folders.
LockedFolder createLockedFolder(const std::string& parent, std::string_view prefix) {
  constexpr int kTries = 100;
  std::string path;
  for (int i = 0; i < kTries; ++i) {
    path = fmt::format("{}/{}XXXXXX", parent, prefix);
    HEDDLE_USER_CHECK(mkdtemp(path.data()) != nullptr, "mkdtemp({}): {}", path,
                      std::strerror(errno));
    FileDescriptor folder = openFolder(path);
    if (folder.isOpen() && lockFolder(folder)) return {path, std::move(folder)};
    const int reason = errno;
    if (folder.isOpen() || reason == ENOENT) continue;
    rmdir(path.c_str());
    userError("open({}): {}", path, std::strerror(reason));
  }
  userError("mkdtemp({}): other processes remove the folder", path);
}

void removeUnlockedFolders(const std::string& parent, std::string_view prefix) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(parent, error)) {
    if (!entry.path().filename().string().starts_with(prefix)) continue;
    const FileDescriptor folder = openFolder(entry.path().string());
    struct stat status {};
    if (!folder.isOpen() || fstat(folder.get(), &status) != 0) continue;
    if (status.st_uid != geteuid() || flock(folder.get(), LOCK_EX | LOCK_NB) != 0) continue;
    std::error_code ignored;
    std::filesystem::remove_all(entry.path(), ignored);
  }
}

}  // namespace heddle
