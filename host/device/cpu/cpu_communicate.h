#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "comm/communicator.h"
#include "host/device/cpu/cpu_stream.h"

namespace heddle::host {

// Counts the groups of operations of one communicator. A group consists of operations that are
// posted together. The counts make a device post the groups in the order in which they were
// enqueued, even if they are on different streams. Otherwise the ranks could post them in different
// orders. A group may thus wait for a group on another stream. This cannot cause a deadlock,
// because all work waits only for work that was enqueued earlier.
struct PostOrder {
  std::mutex mutex;    // locked while a thread numbers, posts, tests or skips a group
  int64_t issued = 0;  // number of groups that have been enqueued
  int64_t posted = 0;  // number of groups that have been posted or skipped
};

// Holds one PostOrder for each communicator that a device uses. A new communicator may have the
// address of a destroyed communicator. It then continues with the counts of the destroyed
// communicator. This is correct, because `issued` equals `posted` at that time: all groups of a
// communicator are done when it is destroyed. Thread-safe.
class PostOrders {
 public:
  // Returns the counts of a communicator, and creates them if they do not exist.
  std::shared_ptr<PostOrder> of(const comm::Communicator& communicator);

 private:
  std::mutex mutex_;
  std::unordered_map<const comm::Communicator*, std::shared_ptr<PostOrder>> orders_;
};

// Enqueues a group of operations that are posted together. The group and its lists of counts are
// copied before the call returns. Throws UserError if the communicator is stream-ordered, that is,
// if it works on GPU memory and GPU streams. Otherwise an empty group has no effect.
void enqueueCommunicate(PostOrders& orders, comm::Communicator& communicator,
                        std::span<const comm::Operation> group, CpuStream& stream,
                        const Issue& issue);

}  // namespace heddle::host
