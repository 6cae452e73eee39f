#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "comm/communicator.h"
#include "host/device/cpu/cpu_stream.h"

namespace heddle::host {

// Counts the groups of one communicator, so that a device posts them in the order in which they
// were enqueued, even on different streams. Without this order, ranks could post in different
// orders. The order cannot contradict events, because a stream waits only for work that was
// enqueued earlier.
struct PostOrder {
  std::mutex mutex;    // locked while a group is posted or tested: only one thread may do so
  int64_t issued = 0;  // number of groups that have been enqueued
  int64_t posted = 0;  // number of groups that have been posted or skipped
};

// Holds one PostOrder for each communicator that a device uses. If a new communicator has the
// address of an old one, it continues with the old counts. Thread-safe.
class PostOrders {
 public:
  std::shared_ptr<PostOrder> of(const comm::Communicator& communicator);

 private:
  std::mutex mutex_;
  std::unordered_map<const comm::Communicator*, std::shared_ptr<PostOrder>> orders_;
};

// Enqueues a group of collectives. Copies the group with its lists of counts. Throws UserError if
// the communicator requires device memory.
void enqueueCommunicate(PostOrders& orders, comm::Communicator& communicator,
                        std::span<const comm::Operation> group, CpuStream& stream,
                        const Issue& issue);

}  // namespace heddle::host
