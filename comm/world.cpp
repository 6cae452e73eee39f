#include <utility>

#include "comm/communicator.h"

namespace heddle::comm {

World::World() = default;
World::~World() { closeMonitor(); }

// `make` may wait for the other ranks. monitor() does not hold monitor_mutex_ during this wait.
// Otherwise fail(), which locks monitor_mutex_, would wait too.
WorldMonitor& World::monitor(const std::function<std::unique_ptr<WorldMonitor>()>& make) {
  std::lock_guard making(making_mutex_);
  if (!hasMonitor()) {
    std::unique_ptr<WorldMonitor> made = make();
    std::lock_guard lock(monitor_mutex_);
    monitor_ = std::move(made);
  }
  return *monitor_;
}

void World::fail(const std::string& why) noexcept {
  std::lock_guard lock(monitor_mutex_);
  if (monitor_) monitor_->fail(why);
  failure_ = why;
}

// Releases the lock before it destroys the monitor, because the destructor of the monitor may call
// this World.
void World::closeMonitor() noexcept {
  std::unique_ptr<WorldMonitor> closed;
  std::lock_guard lock(monitor_mutex_);
  closed = std::move(monitor_);
}

bool World::hasMonitor() const {
  std::lock_guard lock(monitor_mutex_);
  return monitor_ != nullptr;
}

std::optional<std::string> World::failure() const {
  std::lock_guard lock(monitor_mutex_);
  return failure_;
}

}  // namespace heddle::comm
