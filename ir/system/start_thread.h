#pragma once

#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "ir/base/check.h"

namespace heddle {

// Starts a thread that calls `work`. Throws UserError if the system refuses, for example because of
// `ulimit -u`. `purpose` completes the message "cannot start a thread for ...".
template <class Work>
std::thread startThread(std::string_view purpose, Work&& work) {
  try {
    return std::thread(std::forward<Work>(work));
  } catch (const std::system_error& error) {
    userError(
        "cannot start a thread for {}: {}; the limits of processes (ulimit -u) or of memory are "
        "too small",
        purpose, error.code().message());
  }
}

}  // namespace heddle
