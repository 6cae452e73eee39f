#include "host/cpu_communicate.h"

#include <type_traits>

#include "ir/error.h"

namespace heddle::host {
namespace {

static_assert(std::is_trivially_copyable_v<comm::Operation>);

class CommunicateTask : public TaskBody {
 public:
  CommunicateTask(std::shared_ptr<PostOrder> order, int64_t turn, comm::Communicator& communicator,
                  std::vector<std::byte> group, CpuStream& stream)
      : order_(std::move(order)),
        turn_(turn),
        communicator_(communicator),
        group_(std::move(group)),
        stream_(stream) {}
  ~CommunicateTask() override { stream_.recycle(std::move(group_)); }

  bool poll() override {
    std::lock_guard lock(order_->mutex);
    if (!posted_) {
      if (order_->posted != turn_) return false;
      ++order_->posted;
      posted_ = true;
      ticket_ = communicator_.post(operations(), nullptr);
    }
    return communicator_.test(ticket_);
  }

  // Once posted the transport holds the buffers, so it is waited for; peers hear of the failure
  // through World::abort, which ends the wait.
  bool skip() override {
    if (posted_) return poll();
    std::lock_guard lock(order_->mutex);
    if (order_->posted != turn_) return false;
    ++order_->posted;
    return true;
  }

 private:
  std::span<const comm::Operation> operations() const {
    return {reinterpret_cast<const comm::Operation*>(group_.data()),
            group_.size() / sizeof(comm::Operation)};
  }

  std::shared_ptr<PostOrder> order_;
  int64_t turn_;
  comm::Communicator& communicator_;
  std::vector<std::byte> group_;
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
      "the communicator of rank {} of {} moves device memory on device streams; a CPU "
      "device needs one on host memory (MPI or in-process)",
      communicator.rank(), communicator.size());
  if (group.empty()) return;
  std::shared_ptr<PostOrder> order = orders.of(communicator);
  int64_t turn = 0;
  {
    std::lock_guard lock(order->mutex);
    turn = order->issued++;
  }
  stream.enqueue<CommunicateTask>(issue, std::move(order), turn, communicator,
                                  stream.buffer(group.data(), group.size_bytes()), stream);
}

}  // namespace heddle::host
