#pragma once

#include <unistd.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace heddle {

// Owns an open file descriptor.
class FileDescriptor {
 public:
  explicit FileDescriptor(int number = -1) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileDescriptor() {
    if (number_ >= 0) close(number_);
  }
  int get() const { return number_; }
  bool isOpen() const { return number_ >= 0; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

// Reading and writing of files that a user names. All functions except writeAll() throw UserError
// with the name of the file and the reason.

// A regular file, open for reading.
struct RegularFile {
  FileDescriptor file;
  int64_t bytes = 0;  // size of the file when it was opened
};

// Opens a regular file. Refuses folders, named pipes, sockets and devices, also through links,
// because reading some of them never ends.
RegularFile openRegularFile(const std::string& path);

// Reads `bytes` bytes from the current position into `to`. Throws UserError if the file ends
// earlier.
void readExactly(const RegularFile& file, void* to, int64_t bytes, const std::string& path);

// Returns the contents of a text file of at most `most` bytes. Besides regular files it accepts
// pipes that are already open in this process: /dev/stdin, /dev/fd/N and /proc/self/fd/N.
std::string readTextFile(const std::string& path, int64_t most);

// Creates or overwrites a file that consists of `parts`, in order. Refuses a named pipe that nobody
// reads, because opening it would never end.
void writeFileOf(const std::string& path, std::initializer_list<std::string_view> parts);

// Writes all bytes to an open descriptor. On an error, returns false and leaves the reason in
// errno.
bool writeAll(int file, std::string_view bytes);

}  // namespace heddle
