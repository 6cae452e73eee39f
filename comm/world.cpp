#include <algorithm>
#include <utility>

#include "comm/communicator.h"

namespace heddle::comm {

struct World::Observers {
  std::mutex mutex;  // guards the members below; held during each call of an observer
  std::vector<WorldObserver*> list;
  int waits = 0;  // number of Wait objects that exist
  RankTask task = RankTask::None;
  double patience = 600;  // seconds; equal to the default of JobMonitorOptions::patience
};

World::World() : observers_(std::make_shared<Observers>()) {}
World::~World() { closeMonitor(); }

// `make` may wait for the other ranks. During this time monitor_mutex_ must not be held, because
// fail() locks it and must not wait.
WorldMonitor& World::monitor(const std::function<std::unique_ptr<WorldMonitor>()>& make) {
  std::lock_guard making(making_mutex_);
  if (!hasMonitor()) {
    std::unique_ptr<WorldMonitor> made = make();
    std::lock_guard lock(monitor_mutex_);
    monitor_ = std::move(made);
  }
  return *monitor_;
}

void World::addObserver(WorldObserver& observer, std::optional<double> patience) {
  std::lock_guard lock(observers_->mutex);
  if (patience) observers_->patience = *patience;
  observer.setTask(observers_->task);
  observers_->list.push_back(&observer);
}

void World::removeObserver(WorldObserver& observer) noexcept {
  std::lock_guard lock(observers_->mutex);
  std::erase(observers_->list, &observer);
}

double World::patience() const {
  std::lock_guard lock(observers_->mutex);
  return observers_->patience;
}

void World::setTask(RankTask task) {
  std::lock_guard lock(observers_->mutex);
  observers_->task = task;
  for (WorldObserver* observer : observers_->list) observer->setTask(task);
}

World::Task::Task(World* world, RankTask task) : world_(world) {
  if (world_ == nullptr) return;
  {
    std::lock_guard lock(world_->observers_->mutex);
    before_ = world_->observers_->task;
  }
  world_->setTask(task);
}

World::Task::~Task() {
  if (world_ != nullptr) world_->setTask(before_);
}

World::Wait::Wait(World& world, bool of_job) : world_(world) {
  Observers& observers = *world_.observers_;
  std::lock_guard lock(observers.mutex);
  if (observers.waits++ > 0) return;
  for (WorldObserver* observer : observers.list) observer->beginWait(of_job);
}

World::Wait::~Wait() {
  Observers& observers = *world_.observers_;
  std::lock_guard lock(observers.mutex);
  if (--observers.waits > 0) return;
  for (WorldObserver* observer : observers.list) observer->endWait();
}

void World::fail(const std::string& why) noexcept {
  std::lock_guard lock(monitor_mutex_);
  if (monitor_) monitor_->fail(why);
  failure_ = why;
}

// The destructor of the monitor may call this World and lock monitor_mutex_. `closed` is therefore
// declared before `lock`, so that the monitor is destroyed after the lock is released.
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
