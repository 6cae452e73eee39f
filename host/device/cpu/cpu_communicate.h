#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "comm/communicator.h"
#include "host/device/cpu/cpu_stream.h"

namespace heddle::host {

// Makes a device post the groups of one communicator in the order in which they were enqueued, even
// if they are on different streams. Otherwise ranks could post in different orders. This order
// cannot contradict events, because a stream waits only for work that was enqueued earlier.
struct PostOrder {
  std::mutex mutex;    // held while a group is posted or tested, which must not happen concurrently
  int64_t issued = 0;  // numbers that were assigned to groups
  int64_t posted = 0;  // groups that were posted or skipped
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

// Enqueues a group. Copies it with its lists of counts. UserError if the communicator needs device
// memory.
void enqueueCommunicate(PostOrders& orders, comm::Communicator& communicator,
                        std::span<const comm::Operation> group, CpuStream& stream,
                        const Issue& issue);

}  // namespace heddle::host
