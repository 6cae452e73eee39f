#include "codegen/compile/private_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "codegen/compile/child_process.h"
#include "ir/base/check.h"
#include "ir/system/files.h"

namespace heddle::codegen {
namespace {

constexpr mode_t kOnlyOwner = 0700;
constexpr mode_t kWritableByOthers = S_IWGRP | S_IWOTH;

// Returns why the file or folder is not private, or an empty text if it is private.
std::string whyNotPrivate(const struct stat& status) {
  if (status.st_uid != geteuid()) {
    return fmt::format("it belongs to user {}, not to user {}", status.st_uid, geteuid());
  }
  if ((status.st_mode & kWritableByOthers) != 0) {
    return fmt::format("other users may write to it (mode {:04o})", status.st_mode & 07777);
  }
  return {};
}

// Returns the path in normal form, without slashes at its end. With such a slash, open() would
// follow a symbolic link in spite of O_NOFOLLOW.
std::string withoutTrailingSlash(std::string path) {
  path = std::filesystem::path(path).lexically_normal().string();
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// Returns a file name that no other process of this machine and no other call uses.
std::string temporaryNameFor(const std::string& name) {
  static std::atomic<int> counter{0};
  return fmt::format("{}.{}.{}.tmp", name, getpid(), counter.fetch_add(1));
}

// Renames a complete temporary file, or removes the file if this fails. The function calls
// unlinkat() in both cases: if both names already refer to the same file, renameat() succeeds
// without removing `temporary`.
bool moveInPlace(int folder, const std::string& temporary, const std::string& name) {
  const bool moved = renameat(folder, temporary.c_str(), folder, name.c_str()) == 0;
  const int reason = errno;
  unlinkat(folder, temporary.c_str(), 0);
  errno = reason;
  return moved;
}

// Returns a temporary folder to use instead of `path`. All calls of a process with the same `path`
// return the same folder. The folder is removed when the process ends.
std::string freshFolderFor(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, TempFolder> folders;
  std::lock_guard lock(mutex);
  return folders[path].path();
}

}  // namespace

PrivateFolder::PrivateFolder(const std::string& path) : path_(withoutTrailingSlash(path)) {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  const bool created = mkdir(path_.c_str(), kOnlyOwner) == 0;
  const int create_error = created || errno == EEXIST ? 0 : errno;
  struct stat status {};
  if (lstat(path_.c_str(), &status) == 0) {
    HEDDLE_USER_CHECK(!S_ISLNK(status.st_mode), "it is a symbolic link");
    HEDDLE_USER_CHECK(S_ISDIR(status.st_mode), "it is not a folder");
  }
  folder_ = FileDescriptor(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const int reason = create_error != 0 ? create_error : errno;
  HEDDLE_USER_CHECK(folder_.isOpen() && fstat(folder_.get(), &status) == 0, "{}",
                    std::strerror(reason));
  const std::string why = whyNotPrivate(status);
  HEDDLE_USER_CHECK(why.empty(), "{}", why);
}

std::optional<PrivateFolder::File> PrivateFolder::read(const std::string& name,
                                                       int64_t most) const {
  FileDescriptor file(openat(folder_.get(), name.c_str(),
                             O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  struct stat status {};
  if (!file.isOpen() || fstat(file.get(), &status) != 0) return std::nullopt;
  if (!S_ISREG(status.st_mode) || !whyNotPrivate(status).empty() || status.st_size > most) {
    return std::nullopt;
  }
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::read(file.get(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    done += static_cast<size_t>(got);
  }
  return File{std::move(file), std::move(bytes)};
}

bool PrivateFolder::write(const std::string& name, std::string_view bytes) const {
  const std::string temporary = temporaryNameFor(name);
  FileDescriptor file(openat(folder_.get(), temporary.c_str(),
                             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kOnlyOwner));
  if (!file.isOpen()) return false;
  if (writeAll(file.get(), bytes) && close(file.release()) == 0) {
    return moveInPlace(folder_.get(), temporary, name);
  }
  const int reason = errno;
  unlinkat(folder_.get(), temporary.c_str(), 0);
  errno = reason;
  return false;
}

bool PrivateFolder::link(const std::string& from, const std::string& name) const {
  const std::string temporary = temporaryNameFor(name);
  if (linkat(folder_.get(), from.c_str(), folder_.get(), temporary.c_str(), 0) != 0) return false;
  return moveInPlace(folder_.get(), temporary, name);
}

void PrivateFolder::remove(const std::string& name) const {
  unlinkat(folder_.get(), name.c_str(), 0);
}

void PrivateFolder::touch(const std::string& name) const {
  utimensat(folder_.get(), name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

std::vector<PrivateFolder::Entry> PrivateFolder::list() const {
  std::vector<Entry> entries;
  // fdopendir() takes ownership of its descriptor, so it gets a new descriptor.
  FileDescriptor own(openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* listing = own.isOpen() ? fdopendir(own.get()) : nullptr;
  if (listing == nullptr) return entries;
  own.release();
  while (const dirent* entry = readdir(listing)) {
    struct stat status {};
    if (fstatat(folder_.get(), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(status.st_mode)) continue;
    const auto names = std::max<int64_t>(1, static_cast<int64_t>(status.st_nlink));
    entries.push_back({entry->d_name, status.st_size / names, status.st_mtim});
  }
  closedir(listing);
  return entries;
}

void reportCacheOnce(const std::string& path, std::string_view what, std::string_view consequence) {
  static std::mutex mutex;
  static std::set<std::string> reported;
  std::lock_guard lock(mutex);
  if (!reported.insert(path).second) return;
  fmt::print(stderr, "heddle: the kernel cache {} {}; {}\n", path, what, consequence);
}

std::unique_ptr<PrivateFolder> openOrReport(const std::string& path, std::string_view consequence) {
  try {
    return std::make_unique<PrivateFolder>(path);
  } catch (const UserError& error) {
    reportCacheOnce(path, fmt::format("is not used: {}", error.what()), consequence);
  }
  try {
    return std::make_unique<PrivateFolder>(freshFolderFor(path));
  } catch (const std::exception&) {
    return nullptr;  // for example, no temporary folder can be created
  }
}

}  // namespace heddle::codegen
