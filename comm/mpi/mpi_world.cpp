// The MPI World and the entry point of the module. All MPI calls run on the MPI thread
// (comm/mpi/mpi_thread.h).
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>

#include "comm/modules.h"
#include "comm/mpi/mpi_communicator.h"
#include "comm/mpi/mpi_thread.h"
#include "comm/operation.h"
#include "comm/process/start_timeout.h"
#include "ir/base/check.h"

namespace heddle::comm::mpi {
namespace {

// The tags of messages that a World sends: lists of team members, the messages of
// MPI_Comm_create_group, and notices that a rank leaves because of an exception.
constexpr int kTeamTag = 1;
constexpr int kCreateTag = 2;
constexpr int kNoticeTag = 3;
// How long ranks wait for each other at the start, in seconds. Equal to the default of
// JobMonitorOptions::start.
constexpr double kLongestStart = 600;
// If an exception destroys a World that has no job monitor, the destructor waits for this time, so
// that the other ranks can report the reason. After that, the program of this rank may call
// MPI_Abort, which ends all ranks. A World that is destroyed after fail() does the same.
constexpr std::chrono::milliseconds kNoticeTime{500};

void returnErrors(MPI_Comm comm) {
  check("MPI_Comm_set_errhandler", MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
}

// Implements World::exchange(): gathers the lengths of the messages of all ranks, and then their
// bytes.
class Exchange {
 public:
  Exchange(const Channel& channel, const std::string& mine)
      : channel_(channel),
        mine_(mine),
        length_(static_cast<int>(mine.size())),
        lengths_(channel.size),
        offsets_(channel.size) {}

  bool advance() {
    if (stage_ == 0) {
      check("MPI_Iallgather", MPI_Iallgather(&length_, 1, MPI_INT, lengths_.data(), 1, MPI_INT,
                                             channel_.comm, &request_));
      stage_ = 1;
    }
    if (stage_ == 1 && isDone(request_)) {
      gatherBytes();
      stage_ = 2;
    }
    return stage_ == 2 && isDone(request_);
  }

  std::vector<std::string> result() const {
    std::vector<std::string> all;
    for (int rank = 0; rank < channel_.size; ++rank) {
      all.emplace_back(bytes_.data() + offsets_[rank], static_cast<size_t>(lengths_[rank]));
    }
    return all;
  }

 private:
  void gatherBytes() {
    int64_t total = 0;
    for (int rank = 0; rank < channel_.size; ++rank) {
      offsets_[rank] = static_cast<int>(total);
      total += lengths_[rank];
      HEDDLE_USER_CHECK(total <= INT32_MAX, "exchange: more than 2^31 - 1 bytes in all");
    }
    bytes_.resize(total);
    check("MPI_Iallgatherv",
          MPI_Iallgatherv(mine_.data(), length_, MPI_BYTE, bytes_.data(), lengths_.data(),
                          offsets_.data(), MPI_BYTE, channel_.comm, &request_));
  }

  const Channel& channel_;
  const std::string& mine_;
  int length_;
  std::vector<int> lengths_, offsets_;
  std::vector<char> bytes_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  int stage_ = 0;
};

// Creates the communicator of a team. MPI_Comm_create_group blocks the MPI thread until all
// members call it. During this time the running collectives of this rank make no progress. A
// deadlock follows if another member waits for such a collective before it calls
// MPI_Comm_create_group. Each member therefore first sends a non-blocking message to all members.
// When all messages have arrived, every member is about to call MPI_Comm_create_group, so the call
// returns soon.
class TeamCreation {
 public:
  TeamCreation(const Channel& world, const std::vector<int>& members, int position)
      : world_(world),
        members_(members),
        position_(position),
        channel_(std::make_shared<Channel>()) {}

  bool advance() {
    if (stage_ == 0) {
      announce();
      stage_ = 1;
    }
    if (stage_ == 1 && allHaveAnnounced()) {
      create();
      stage_ = 2;
    }
    return stage_ == 2 && isDone(requests_.front());
  }

  std::shared_ptr<Channel> result() const { return channel_; }

 private:
  void announce() {
    const size_t others = members_.size();
    // By mistake, another member may send a longer list than `members_`. The buffers therefore
    // have space for all ranks of the job.
    received_.assign(others, std::vector<int>(static_cast<size_t>(world_.size)));
    for (size_t i = 0; i < others; ++i) {
      MPI_Request send, receive;
      check("MPI_Irecv", MPI_Irecv(received_[i].data(), world_.size, MPI_INT, members_[i], kTeamTag,
                                   world_.comm, &receive));
      check("MPI_Isend", MPI_Isend(members_.data(), static_cast<int>(others), MPI_INT, members_[i],
                                   kTeamTag, world_.comm, &send));
      requests_.push_back(receive);
      requests_.push_back(send);
    }
    statuses_.resize(requests_.size());
  }

  bool allHaveAnnounced() {
    int done = 0;
    check("MPI_Testall", MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done,
                                     statuses_.data()));
    if (!done) return false;
    for (size_t i = 0; i < members_.size(); ++i) {
      int count = 0;
      check("MPI_Get_count", MPI_Get_count(&statuses_[2 * i], MPI_INT, &count));
      received_[i].resize(count);
      HEDDLE_USER_CHECK(
          received_[i] == members_,
          "rank {} creates a communicator of {}, but rank {} creates a communicator of {}",
          world_.rank, listOf(members_), members_[i], listOf(received_[i]));
    }
    return true;
  }

  void create() {
    MPI_Group all = MPI_GROUP_NULL, team = MPI_GROUP_NULL;
    check("MPI_Comm_group", MPI_Comm_group(world_.comm, &all));
    check("MPI_Group_incl",
          MPI_Group_incl(all, static_cast<int>(members_.size()), members_.data(), &team));
    check("MPI_Comm_create_group",
          MPI_Comm_create_group(world_.comm, team, kCreateTag, &channel_->comm));
    MPI_Group_free(&team);
    MPI_Group_free(&all);
    returnErrors(channel_->comm);
    channel_->rank = position_;
    channel_->size = static_cast<int>(members_.size());
    requests_.assign(1, MPI_REQUEST_NULL);
    check("MPI_Ibarrier", MPI_Ibarrier(channel_->comm, &requests_.front()));
  }

  const Channel& world_;
  const std::vector<int>& members_;
  int position_;
  std::shared_ptr<Channel> channel_;
  std::vector<std::vector<int>> received_;
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Status> statuses_;
  int stage_ = 0;
};

// Sends the reason to the other ranks if this rank leaves because of an exception and has no job
// monitor. Each other rank gets one message. MPI can send such a short message before the
// receiver posts the receive.
class ExceptionNotice {
 public:
  // Starts the messages on the MPI thread, and waits, at most kNoticeTime, until they have started.
  // Without this wait, the caller could interrupt the MPI thread too early: an interrupted thread
  // drops its work. Does not wait for other ranks. If the MPI thread drops the work, the object
  // leaks on purpose, because MPI may still read it.
  static void send(MpiThread& mpi_thread, const Channel& channel, const std::string& why) {
    auto* notice = new ExceptionNotice(channel);
    std::copy_n(why.data(), std::min(why.size(), notice->text_.size() - 1), notice->text_.data());
    auto begun = std::make_shared<std::promise<void>>();
    const std::future<void> has_begun = begun->get_future();
    mpi_thread.submit([notice, begun = std::move(begun)]() mutable {
      const bool done = notice->advance();
      if (begun) std::exchange(begun, nullptr)->set_value();
      if (done) delete notice;
      return done;
    });
    has_begun.wait_for(kNoticeTime);
  }

  // Makes the MPI thread receive the notices of other ranks. A notice interrupts the MPI thread.
  static void addListener(MpiThread& mpi_thread, const Channel& channel) {
    mpi_thread.addListener(&channel, [&mpi_thread, comm = channel.comm] {
      int there = 0;
      MPI_Status status;
      MPI_Iprobe(MPI_ANY_SOURCE, kNoticeTag, comm, &there, &status);
      if (there == 0) return;
      Text text{};
      MPI_Recv(text.data(), static_cast<int>(text.size()), MPI_CHAR, status.MPI_SOURCE, kNoticeTag,
               comm, MPI_STATUS_IGNORE);
      mpi_thread.interrupt(fmt::format("rank {} left the job by an exception{}{}",
                                       status.MPI_SOURCE, text[0] == '\0' ? "" : ": ",
                                       text.data()));
    });
  }

 private:
  using Text = std::array<char, 256>;

  explicit ExceptionNotice(const Channel& channel)
      : comm_(channel.comm), rank_(channel.rank), size_(channel.size) {
    // Space for all requests, because a reallocation would move requests that MPI uses.
    requests_.reserve(size_);
  }

  bool advance() {
    int finalized = 0, done = 0;
    MPI_Finalized(&finalized);  // a World may outlive MPI
    if (finalized) return true;
    if (!begun_) begin();
    MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE);
    return done != 0;
  }

  void begin() {
    begun_ = true;
    for (int rank = 0; rank < size_; ++rank) {
      if (rank == rank_) continue;
      MPI_Isend(text_.data(), static_cast<int>(text_.size()), MPI_CHAR, rank, kNoticeTag, comm_,
                &requests_.emplace_back());
    }
  }

  MPI_Comm comm_;
  int rank_, size_;
  bool begun_ = false;
  Text text_{};
  std::vector<MPI_Request> requests_;
};

class MpiWorld : public World {
 public:
  MpiWorld() : mpi_thread_(MpiThread::get()), exceptions_(std::uncaught_exceptions()) {
    const StartTimeout timeout(
        kLongestStart, nullptr, "all ranks to create the MPI World",
        [this](const std::string& text, int) { mpi_thread_->interrupt(text); });
    MPI_Request request = MPI_REQUEST_NULL;
    bool begun = false;
    mpi_thread_->await([&] {
      if (!begun) {
        check("MPI_Comm_idup", MPI_Comm_idup(MPI_COMM_WORLD, &channel_.comm, &request));
        begun = true;
      }
      if (!isDone(request)) return false;
      returnErrors(channel_.comm);
      check("MPI_Comm_rank", MPI_Comm_rank(channel_.comm, &channel_.rank));
      check("MPI_Comm_size", MPI_Comm_size(channel_.comm, &channel_.size));
      return true;
    });
    if (channel_.size > 1) ExceptionNotice::addListener(*mpi_thread_, channel_);
  }

  // If an exception destroys the World, or if fail() was called, the destructor or the job monitor
  // notifies the other ranks, and the destructor then stops using MPI. The destructor must not
  // finalise MPI: MPI_Finalize would wait for ranks that wait for this rank, and the program could
  // not report its exception.
  ~MpiWorld() override {
    const bool fails = std::uncaught_exceptions() > exceptions_ || failure().has_value();
    if (fails && !hasMonitor()) {
      sendExceptionNotice();
      if (!mpi_thread_->isInterrupted()) std::this_thread::sleep_for(kNoticeTime);
    }
    closeMonitor();
    mpi_thread_->setPatience(patience());
    if (fails) mpi_thread_->interrupt("this rank left the job by an exception");
    mpi_thread_->submit(
        [mpi_thread = mpi_thread_.get(), key = &channel_, comm = channel_.comm]() mutable {
          mpi_thread->removeListener(key);
          int finalized = 0;
          MPI_Finalized(&finalized);
          if (!finalized) MPI_Comm_free(&comm);
          return true;
        });
  }

  int rank() const override { return channel_.rank; }
  int size() const override { return channel_.size; }
  std::string transport() const override { return "mpi"; }

  std::vector<std::string> exchange(const std::string& mine) override {
    const Wait wait(*this, true);
    HEDDLE_USER_CHECK(mine.size() <= INT32_MAX, "exchange: more than 2^31 - 1 bytes");
    Exchange exchange(channel_, mine);
    mpi_thread_->await([&] { return exchange.advance(); });
    return exchange.result();
  }

  std::unique_ptr<Communicator> communicator(const std::vector<int>& members) override {
    const Wait wait(*this, false);
    TeamCreation creation(channel_, members, positionInTeam(members, rank(), size()));
    mpi_thread_->await([&] { return creation.advance(); });
    return std::make_unique<MpiCommunicator>(mpi_thread_, creation.result());
  }

  void abort(const std::string& reason) noexcept override { mpi_thread_->abort(reason); }
  void interrupt(const std::string& reason) noexcept override { mpi_thread_->interrupt(reason); }
  std::string fault() const override { return mpi_thread_->interruption(); }
  void fail(const std::string& why) noexcept override {
    World::fail(why);
    if (!hasMonitor()) sendExceptionNotice();
  }

 private:
  void sendExceptionNotice() noexcept {
    if (mpi_thread_->isInterrupted() || notice_sent_.exchange(true)) return;
    try {
      ExceptionNotice::send(*mpi_thread_, channel_, failure().value_or(""));
    } catch (const std::exception&) {
      // This process is out of memory and cannot send a message. The other ranks learn of the
      // failure when the process ends.
    }
  }

  std::shared_ptr<MpiThread> mpi_thread_;
  int exceptions_;
  std::atomic<bool> notice_sent_{false};
  Channel channel_;
};

std::unique_ptr<World> makeWorld() { return std::make_unique<MpiWorld>(); }

}  // namespace
}  // namespace heddle::comm::mpi

extern "C" const heddle::comm::MpiModule* heddleMpiModule() {
  static const heddle::comm::MpiModule module{heddle::comm::mpi::makeWorld};
  return &module;
}
