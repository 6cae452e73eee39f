#pragma once

#include <string>
#include <string_view>

#include "ir/system/files.h"

namespace heddle {

// Temporary folders that are removed even if the process that created them is killed. The creating
// process holds a lock on each of its folders while it runs. removeUnlockedFolders() in another
// process of the same user removes the folders that nobody has locked.

struct LockedFolder {
  std::string path;
  FileDescriptor lock;
};

// Creates a folder PARENT/PREFIXxxxxxx that only this user may enter, and locks it. Throws
// UserError with the reason. On a file system without locks for folders, the folder stays unlocked,
// and removeUnlockedFolders() does not remove it.
LockedFolder createLockedFolder(const std::string& parent, std::string_view prefix);

// Removes the folders PARENT/PREFIX... of this user whose lock is free.
void removeUnlockedFolders(const std::string& parent, std::string_view prefix);

}  // namespace heddle
