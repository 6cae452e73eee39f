#include "host/device/cpu/cpu_communicate.h"

#include <cstring>
#include <type_traits>

#include "ir/base/check.h"

namespace heddle::host {
namespace {

static_assert(std::is_trivially_copyable_v<comm::Operation>);
static_assert(sizeof(comm::Operation) % alignof(int64_t) == 0);

// Returns the operations, followed by their lists of counts, in a buffer of the stream. The copied
// operations refer to the copied lists.
std::vector<std::byte> packed(std::span<const comm::Operation> group, CpuStream& stream) {
  std::vector<std::byte> bytes = stream.buffer(group.data(), group.size_bytes());
  size_t lists = 0;
  for (const comm::Operation& op : group) {
    lists += op.send_counts.size_bytes() + op.recv_counts.size_bytes();
  }
  if (lists == 0) return bytes;
  bytes.resize(group.size_bytes() + lists);
  std::byte* next = bytes.data() + group.size_bytes();
  const auto keep = [&](std::span<const int64_t>& list) {
    if (list.empty()) return;
    std::memcpy(next, list.data(), list.size_bytes());
    list = {reinterpret_cast<const int64_t*>(next), list.size()};
    next += list.size_bytes();
  };
  auto* operations = reinterpret_cast<comm::Operation*>(bytes.data());
  for (size_t i = 0; i < group.size(); ++i) {
    keep(operations[i].send_counts);
    keep(operations[i].recv_counts);
  }
  return bytes;
}

// Posts a group of operations and polls it until it has completed.
class CommunicateTask : public TaskBody {
 public:
  CommunicateTask(std::shared_ptr<PostOrder> order, int64_t number,
                  comm::Communicator& communicator, std::vector<std::byte> group, size_t operations,
                  CpuStream& stream)
      : order_(std::move(order)),
        number_(number),
        communicator_(communicator),
        group_(std::move(group)),
        operations_(operations),
        stream_(stream) {}
  ~CommunicateTask() override { stream_.recycle(std::move(group_)); }

  bool poll() override {
    std::lock_guard lock(order_->mutex);
    if (!posted_) {
      if (order_->posted != number_) return false;
      // The group is counted before post(). Otherwise later groups would wait for this group
      // forever if post() throws.
      ++order_->posted;
      posted_ = true;
      ticket_ = communicator_.post(operations(), nullptr);
    }
    return communicator_.test(ticket_);
  }

  bool communicates() const override { return true; }

  // A posted group must be awaited, because the transport uses its buffers. When the job has
  // failed, World::interrupt() ends this wait: test() then throws. A group that is not posted yet
  // still waits until all earlier groups are posted or skipped, and then increases `posted`.
  // Otherwise later groups would wait forever.
  bool skip() override {
    if (posted_) return poll();
    std::lock_guard lock(order_->mutex);
    if (order_->posted != number_) return false;
    ++order_->posted;
    return true;
  }

 private:
  std::span<const comm::Operation> operations() const {
    return {reinterpret_cast<const comm::Operation*>(group_.data()), operations_};
  }

  std::shared_ptr<PostOrder> order_;
  int64_t number_;  // PostOrder::issued when the group was enqueued
  comm::Communicator& communicator_;
  std::vector<std::byte> group_;
  size_t operations_;
  CpuStream& stream_;
  comm::Ticket ticket_ = 0;
  bool posted_ = false;
};

}  // namespace

std::shared_ptr<PostOrder> PostOrders::of(const comm::Communicator& communicator) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<PostOrder>& order = orders_[&communicator];
  if (!order) order = std::make_shared<PostOrder>();
  return order;
}

void enqueueCommunicate(PostOrders& orders, comm::Communicator& communicator,
                        std::span<const comm::Operation> group, CpuStream& stream,
                        const Issue& issue) {
  HEDDLE_USER_CHECK(
      !communicator.isStreamOrdered(),
      "the communicator of rank {} of {} works on device memory and device streams; a CPU "
      "device needs a communicator on host memory (MPI or in-process)",
      communicator.rank(), communicator.size());
  if (group.empty()) return;
  std::shared_ptr<PostOrder> order = orders.of(communicator);
  int64_t number = 0;
  {
    std::lock_guard lock(order->mutex);
    number = order->issued++;
  }
  stream.enqueue<CommunicateTask>(issue, std::move(order), number, communicator,
                                  packed(group, stream), group.size(), stream);
}

}  // namespace heddle::host
