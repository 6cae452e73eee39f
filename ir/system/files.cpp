#include "ir/system/files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "ir/base/check.h"

namespace heddle {
namespace {

const char* kindOfFile(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return S_ISREG(mode) ? "a regular file" : "a device";
}

// Returns whether the path names a descriptor that is already open in this process.
bool namesOpenDescriptor(const std::string& path) {
  return path == "/dev/stdin" || path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
}

// Without O_NONBLOCK, open() of a named pipe waits for its writer. For regular files the flag has
// no effect.
FileDescriptor openForReading(const std::string& path, struct stat& status) {
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  HEDDLE_USER_CHECK(file.isOpen() && fstat(file.get(), &status) == 0,
                    "{}: cannot read the file: {}", path, std::strerror(errno));
  return file;
}

// Returns the number of bytes read, which is smaller than `bytes` only at the end of the file.
size_t readSome(int file, char* to, size_t bytes, const std::string& path) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::read(file, to + done, bytes - done);
    if (got < 0 && errno == EINTR) continue;
    HEDDLE_USER_CHECK(got >= 0, "{}: cannot read the file: {}", path, std::strerror(errno));
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

}  // namespace

RegularFile openRegularFile(const std::string& path) {
  struct stat status {};
  FileDescriptor file = openForReading(path, status);
  HEDDLE_USER_CHECK(S_ISREG(status.st_mode), "{}: cannot read the file: it is {}", path,
                    kindOfFile(status.st_mode));
  return {std::move(file), status.st_size};
}

void readExactly(const RegularFile& file, void* to, int64_t bytes, const std::string& path) {
  const size_t got =
      readSome(file.file.get(), static_cast<char*>(to), static_cast<size_t>(bytes), path);
  HEDDLE_USER_CHECK(got == static_cast<size_t>(bytes),
                    "{}: the file ends early: got {} of {} bytes", path, got, bytes);
}

std::string readTextFile(const std::string& path, int64_t most) {
  struct stat status {};
  const FileDescriptor file = openForReading(path, status);
  const bool pipe = S_ISFIFO(status.st_mode) && namesOpenDescriptor(path);
  HEDDLE_USER_CHECK(S_ISREG(status.st_mode) || pipe, "{}: cannot read the file: it is {}", path,
                    kindOfFile(status.st_mode));
  // Clears O_NONBLOCK, so that read() waits for the writer of the pipe.
  if (pipe) fcntl(file.get(), F_SETFL, 0);
  const size_t limit = most;
  constexpr size_t kBlock = size_t{1} << 16;
  std::string text;
  for (;;) {
    const size_t before = text.size();
    text.resize(before + kBlock);
    text.resize(before + readSome(file.get(), text.data() + before, kBlock, path));
    HEDDLE_USER_CHECK(text.size() <= limit,
                      "{}: cannot read the file: it has more than {} bytes, the limit for a text",
                      path, most);
    if (text.size() < before + kBlock) return text;
  }
}

bool writeAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(file, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(done));
  }
  return true;
}

void writeFileOf(const std::string& path, std::initializer_list<std::string_view> parts) {
  constexpr mode_t kReadableByAll = 0666;  // reduced by the umask
  FileDescriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, kReadableByAll));
  // With O_NONBLOCK, open() of a named pipe that nobody reads fails instead of waiting.
  const bool is_unread_pipe = !file.isOpen() && errno == ENXIO;
  HEDDLE_USER_CHECK(file.isOpen(), "cannot open {} for writing: {}", path,
                    is_unread_pipe ? "it is a named pipe that nobody reads" : std::strerror(errno));
  fcntl(file.get(), F_SETFL, 0);
  bool written = true;
  for (std::string_view part : parts) written = written && writeAll(file.get(), part);
  // Some file systems report a full disk only when the file is closed.
  written = written && close(file.release()) == 0;
  HEDDLE_USER_CHECK(written, "cannot write {}: {}", path, std::strerror(errno));
}

}  // namespace heddle
