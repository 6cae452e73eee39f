#pragma once

#include <string>
#include <string_view>

#include "ir/system/files.h"

namespace heddle {

// Temporary folders that are removed even if their process is killed. The process holds a lock on
// each of its folders. Another process of the same user later removes those that nobody has locked.

struct LockedFolder {
  std::string path;
  FileDescriptor lock;
};

// Creates a folder PARENT/PREFIXxxxxxx that only this user may enter, and locks it. Throws
// UserError with the reason. Some file systems have no locks for folders; there the folder stays
// unlocked, and is not removed later.
LockedFolder createLockedFolder(const std::string& parent, std::string_view prefix);

// Removes the folders PARENT/PREFIX... of this user whose lock is free.
void removeUnlockedFolders(const std::string& parent, std::string_view prefix);

}  // namespace heddle
