#include "comm/mpi/mpi_communicator.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "comm/mpi/transfer.h"
#include "comm/operation.h"
#include "ir/base/check.h"

namespace heddle::comm::mpi {
namespace {

// How long the destructor waits for unfinished operations if test() has reported a failure.
constexpr auto kGrace = std::chrono::seconds(1);
// The largest number of collectives in one post. The collectives of a post have different tags, and
// MPI guarantees only tags up to 32767.
constexpr int kMostTogether = 32000;

}  // namespace

// The operations of one post(). Only the MPI thread changes the group. Other threads may read
// `state` and `idle`, and may read `error` after `state` has become Failed.
struct Group {
  enum State : int { Running, Done, Failed };
  std::vector<Transfer> transfers;
  std::vector<bool> done;
  std::vector<bool> failed;
  int collectives = 0;  // number of collectives that have not completed
  std::string error;
  std::atomic<int> state{Running};
  std::atomic<bool> idle{false};  // true: MPI does not access the buffers any more

  // Advances all operations. Returns true if all of them have ended.
  bool advance(Channel& channel);
};

bool Group::advance(Channel& channel) {
  bool all = true;
  int result = state.load(std::memory_order_relaxed) == Failed ? Failed : Done;
  for (size_t i = 0; i < transfers.size(); ++i) {
    if (done[i]) continue;
    try {
      done[i] = failed[i] ? transfers[i].drain() : transfers[i].advance(channel);
    } catch (const std::exception& failure) {
      // The other messages of this operation must be polled until they end, because MPI still uses
      // their buffers.
      failed[i] = true;
      done[i] = transfers[i].drain();
      if (result != Failed) {
        error = fmt::format("{}: {}", describe(transfers[i].operation()), failure.what());
      }
      result = Failed;
      state.store(Failed, std::memory_order_release);
    }
    if (!done[i]) all = false;
    // If a collective fails, `collectives` never becomes 0 and next_post does not increase. Later
    // collectives of the communicator therefore never run.
    const bool collective = !isPointToPoint(transfers[i].operation().kind);
    if (done[i] && !failed[i] && collective && --collectives == 0) ++channel.next_post;
  }
  if (!all) return false;
  state.store(result, std::memory_order_release);
  idle.store(true, std::memory_order_release);
  return true;
}

MpiCommunicator::MpiCommunicator(std::shared_ptr<MpiThread> mpi_thread,
                                 std::shared_ptr<Channel> channel)
    : mpi_thread_(std::move(mpi_thread)), channel_(std::move(channel)) {}

MpiCommunicator::~MpiCommunicator() {
  // MPI must not write to the buffers after the destructor. If test() has reported a failure, the
  // destructor waits up to kGrace until all operations have ended. If some operations have then not
  // ended, or if they run although test() has reported no failure, the destructor ends the job.
  const auto deadline = std::chrono::steady_clock::now() + kGrace;
  for (const auto& [ticket, group] : pending_) {
    if (mpi_thread_->isInterrupted()) break;
    while (!group->idle.load(std::memory_order_acquire) && !fault_.empty() &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (group->idle.load(std::memory_order_acquire)) continue;
    mpi_thread_->abort(fault_.empty()
                           ? "a communicator was destroyed before its operations had completed"
                           : fault_);
  }
  mpi_thread_->submit([channel = channel_] {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized) MPI_Comm_free(&channel->comm);
    return true;
  });
}

Ticket MpiCommunicator::post(std::span<const Operation> operations, void* /*stream*/) {
  checkGroup(operations, rank(), size());
  auto group = std::make_shared<Group>();
  group->done.resize(operations.size(), false);
  group->failed.resize(operations.size(), false);
  for (const Operation& op : operations) {
    const bool collective = !isPointToPoint(op.kind);
    group->transfers.emplace_back(op, collective_posts_, group->collectives);
    if (collective) ++group->collectives;
  }
  HEDDLE_USER_CHECK(group->collectives <= kMostTogether, "{} collectives in one post, at most {}",
                    group->collectives, kMostTogether);
  if (group->collectives > 0) ++collective_posts_;
  pending_.emplace(next_, group);
  mpi_thread_->submit([group, channel = channel_] { return group->advance(*channel); });
  return next_++;
}

bool MpiCommunicator::test(Ticket ticket) {
  HEDDLE_USER_CHECK(ticket >= 0 && ticket < next_, "post() never returned ticket {}", ticket);
  const auto found = pending_.find(ticket);
  if (found == pending_.end()) return true;
  switch (found->second->state.load(std::memory_order_acquire)) {
    case Group::Running:
      mpi_thread_->checkInterrupt();
      return false;
    case Group::Done:
      pending_.erase(found);
      return true;
    default:
      fault_ = found->second->error;
      userError("{}", fault_);
  }
}

}  // namespace heddle::comm::mpi
