#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"

// Ranks that are threads of one process: how they meet. Moving the data is left to a transport
// (comm/in_process/host_transport.cpp for host memory, comm/cuda/in_process_cuda.cpp for one GPU).
namespace heddle::comm {

// What all ranks of a job share.
struct JobState {
  explicit JobState(int size) : size(size), left(size, false) {}

  const int size;
  std::mutex mutex;                 // guards all of the job, its teams and meetings
  std::condition_variable changed;  // a blocking wait of some rank may have ended
  std::vector<bool> left;           // ranks whose World is gone
  std::string aborted;              // the message for everybody; empty while the job is well
  int moving = 0;                   // copies under way on the host, which abort() lets end
};

// One collective, or one send with its receive. A seat is a place at it: the rank within the team,
// or 0 for the sender and 1 for the receiver.
struct Meeting {
  std::vector<Operation> operations;  // by seat; read freely once nobody is missing
  // AllToAllV, by seat: the operation's lists, so that a rank that gives up may take its own away.
  std::vector<std::vector<int64_t>> counts;
  std::vector<int> members;  // position in the team of each seat
  std::vector<bool> present;
  int missing = 0;  // seats whose rank has not posted yet

  // For the transport, under the mutex: which parts of the data movement have been begun, how many
  // are under way and how many are done.
  std::vector<bool> claimed;
  int running = 0;
  int done = 0;
  std::string cancelled;  // why some rank took its buffers away; empty while all are there
  // Handles a transport leaves for its peers, by seat.
  std::vector<std::shared_ptr<void>> ready;
  std::vector<std::shared_ptr<void>> finished;
};

struct Seat {
  std::shared_ptr<Meeting> meeting;
  int index = 0;
};

// The ranks of one communicator. Operations of a team meet by order: its collectives by the order
// on each rank, sends and receives by the order within each pair.
class Team {
 public:
  Team(std::shared_ptr<JobState> job, std::vector<int> members);

  JobState& job() const { return *job_; }
  const std::vector<int>& members() const { return members_; }
  int size() const { return static_cast<int>(members_.size()); }

  // Every function below is called with the job's mutex held.

  // Takes `member`'s seat. When the ranks disagree the team fails for good, which check() tells.
  Seat sit(int member, const Operation& operation, std::shared_ptr<void> ready = nullptr);

  // Throws UserError when the job was aborted, the team has failed, or `meeting` can never be
  // complete because a rank has left.
  void check(const Meeting& meeting) const;

  // `member` posts no more. Peers that need it fail instead of waiting.
  void leave(int member);

  bool joined(int member) const { return joined_[member]; }
  void setJoined(int member, bool value) { joined_[member] = value; }
  bool isFull() const;
  // Nothing more may be moved: the job was aborted or the ranks of this team disagree.
  bool isHalted() const { return !failure_.empty() || !job_->aborted.empty(); }

 private:
  struct Queue {
    std::deque<std::shared_ptr<Meeting>> without_sender;
    std::deque<std::shared_ptr<Meeting>> without_receiver;
  };

  std::shared_ptr<Meeting> newMeeting(std::vector<int> members) const;
  Seat collectiveSeat(int member);
  Seat transferSeat(int member, const Operation& operation);
  void compare(const Seat& seat);

  std::shared_ptr<JobState> job_;
  std::vector<int> members_;  // world ranks
  std::vector<bool> joined_;
  std::vector<bool> gone_;
  std::vector<int64_t> posted_;                              // collectives, by member
  std::map<int64_t, std::shared_ptr<Meeting>> collectives_;  // by number, while somebody is missing
  std::map<std::pair<int, int>, Queue> transfers_;           // by sender and receiver
  std::string failure_;
};

// The rendezvous of a job: exchange of bytes and making of teams. Thread-safe.
class InProcessJob {
 public:
  explicit InProcessJob(int size);

  JobState& state() const { return *state_; }

  std::vector<std::string> exchange(int rank, const std::string& mine);
  // Waits until every member has joined.
  std::shared_ptr<Team> join(int rank, const std::vector<int>& members);
  // Buffers of the job may be freed when this returns: no data movement is begun afterwards, and it
  // waits for the copies under way, but for no peer.
  void abort(int rank, const std::string& reason);
  void leave(int rank);

 private:
  struct Exchange {
    std::vector<std::string> bytes;
    std::vector<bool> present;
    int missing;
  };

  // Waits until `ready`; throws UserError when the job is aborted or a rank for which `needed`
  // holds has left.
  void wait(std::unique_lock<std::mutex>& lock, const std::string& what,
            const std::function<bool()>& ready, const std::function<bool(int)>& needed);

  std::shared_ptr<JobState> state_;
  std::shared_ptr<Exchange> exchange_;  // the one under way
  std::map<std::vector<int>, std::shared_ptr<Team>> forming_;
};

using CommunicatorMaker =
    std::function<std::unique_ptr<Communicator>(std::shared_ptr<Team>, int member)>;

// The worlds of one job of threads; `maker` makes a rank's end of a team.
std::vector<std::unique_ptr<World>> makeWorldsOfThreads(int size, const std::string& transport,
                                                        CommunicatorMaker maker);

// Host memory. `transport` is what World::transport() answers.
std::vector<std::unique_ptr<World>> makeHostWorldsOfThreads(int size, const std::string& transport);

}  // namespace heddle::comm
