#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/system/files.h"

namespace heddle::codegen {

// A folder whose files only this user can have written. Caches of compiled code use such folders,
// because heddle executes this code.
//
// - The folder and each file must belong to the user of this process, and must not be writable by
//   its group or by others.
// - The last component of the folder's path and all file names must not be symbolic links. Files
//   must be regular files.
// - Owner and mode are checked through the open descriptors of the folder and its files. Another
//   user can therefore not replace the folder or a file between its check and its use.
// - Thread-safe. Several processes may share a folder.
class PrivateFolder {
 public:
  // Opens the folder. If it is missing, creates it with its parents. Throws UserError if this fails
  // or if the folder is not private.
  explicit PrivateFolder(const std::string& path);

  struct File {
    FileDescriptor file;
    std::string bytes;
  };
  // Opens and reads a file. Returns nullopt if the file is missing, is not private, is not a
  // regular file, has more than `most` bytes, or cannot be read.
  std::optional<File> read(const std::string& name, int64_t most) const;
  // Creates or replaces a file. Other processes see either the old or the new content, never a part
  // of the new content. Returns false with the reason in errno if the file cannot be written.
  bool write(const std::string& name, std::string_view bytes) const;
  // Makes `name` a hard link to the file `from`, and replaces an existing file `name`. Returns
  // false if this fails, for example because the file system has no hard links.
  bool link(const std::string& from, const std::string& name) const;
  void remove(const std::string& name) const;
  void touch(const std::string& name) const;  // sets the time of the last use to now

  struct Entry {
    std::string name;
    int64_t bytes = 0;  // size of the file, divided by its number of hard links
    timespec used{};    // time of the last use or change
  };
  // Returns the regular files of the folder. Returns an empty list if the folder cannot be read.
  std::vector<Entry> list() const;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  FileDescriptor folder_;
};

// Opens the folder. If this fails, reports the reason by reportCacheOnce(), and opens a new
// temporary folder instead. All calls of a process with the same `path` share the temporary folder.
// The temporary folder is removed when the process ends. Returns nullptr if there is no temporary
// folder either. `consequence` ends the message, for example "kernels are compiled again in each
// process".
std::unique_ptr<PrivateFolder> openOrReport(const std::string& path, std::string_view consequence);

// Prints "heddle: the kernel cache PATH WHAT; CONSEQUENCE" to stderr, unless this process has
// already printed such a message about this folder.
void reportCacheOnce(const std::string& path, std::string_view what, std::string_view consequence);

}  // namespace heddle::codegen
