#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace heddle::host {

// The owners (Tensor::owner) of the memory that a run reads or writes for its caller: inputs and
// preallocated outputs. A run keeps them until it has ended, so the caller may release its tensors
// as soon as run() has returned. This object keeps the memory of its lists between runs, so a
// repeated run does not allocate.
//
// Threads: only the thread that issues the run calls add(), and only before other threads can
//          access the run. The other functions are thread-safe.
class KeptOwners {
 public:
  // Adds the owner of input `input`. `input` is -1 for a preallocated output. Does nothing if
  // `owner` is empty.
  void add(const std::shared_ptr<void>& owner, int input) {
    if (!owner) return;
    owners_.emplace_back(owner, input);
    has_owners_.store(true, std::memory_order_release);
  }
  bool empty() const { return !has_owners_.load(std::memory_order_acquire); }
  // Releases the owners. The caller must hold no lock, because the release of an owner may call
  // user code.
  void release() noexcept {
    if (empty()) return;
    {
      std::lock_guard lock(mutex_);
      if (owners_.empty()) return;
      // After the swap, only this thread uses released_. A release() of another thread returns
      // above, because owners_ is empty. The next call of add() belongs to the next run, which
      // begins after all threads have finished with this run.
      owners_.swap(released_);
      has_owners_.store(false, std::memory_order_release);
    }
    released_.clear();
    std::lock_guard lock(mutex_);
    owners_.swap(released_);  // keeps the memory of the list for the next run
  }

  // Moves the owners to the end of `list`. Releases them instead if `list` cannot get memory for
  // them. The caller must hold no lock, as for release().
  void moveTo(std::vector<std::shared_ptr<void>>& list) noexcept {
    try {
      std::lock_guard lock(mutex_);
      list.reserve(list.size() + owners_.size());
      for (auto& [owner, input] : owners_) list.push_back(std::move(owner));
      owners_.clear();
      has_owners_.store(false, std::memory_order_release);
    } catch (const std::bad_alloc&) {
      release();
    }
  }

  // Calls visit(owner, input) for each owner, until visit() returns true.
  template <class Visit>
  void findInput(const Visit& visit) const {
    if (empty()) return;
    std::lock_guard lock(mutex_);
    for (const auto& [owner, input] : owners_) {
      if (visit(owner, input)) return;
    }
  }

 private:
  using Owners = std::vector<std::pair<std::shared_ptr<void>, int>>;
  mutable std::mutex mutex_;  // guards owners_
  std::atomic<bool> has_owners_{false};
  Owners owners_;
  Owners released_;  // only the thread that has emptied owners_ uses this list
};

}  // namespace heddle::host
