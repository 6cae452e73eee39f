#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "comm/communicator.h"
#include "host/device/cpu/cpu_stream.h"

namespace heddle::host {

// The groups of one communicator are posted in the order in which they were enqueued, on whatever
// streams: only so do all ranks post in the same order. That order never contradicts the events,
// which point to earlier work. Held while posting and testing, which exclude each other.
struct PostOrder {
  std::mutex mutex;
  int64_t issued = 0;  // turns given out
  int64_t posted = 0;  // turns that are over
};

// One PostOrder for each communicator that a device meets. A later communicator at the same address
// goes on with the counts. Thread-safe.
class PostOrders {
 public:
  std::shared_ptr<PostOrder> of(const comm::Communicator& communicator);

 private:
  std::mutex mutex_;
  std::unordered_map<const comm::Communicator*, std::shared_ptr<PostOrder>> orders_;
};

// Enqueues a group, which is copied with the lists of counts that it names.
void enqueueCommunicate(PostOrders& orders, comm::Communicator& communicator,
                        std::span<const comm::Operation> group, CpuStream& stream,
                        const Issue& issue);

}  // namespace heddle::host
