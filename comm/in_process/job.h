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

// Matches the operations of ranks that are threads of one process: it finds which operations of
// different ranks belong together. A transport then moves the data
// (comm/in_process/host_transport.cpp on host memory, comm/cuda/in_process_cuda.cpp on one GPU).
namespace heddle::comm {

// The state that all ranks of a job share.
struct JobState {
  explicit JobState(int size) : size(size), left(size, false) {}

  const int size;
  std::mutex mutex;                 // guards the job, its teams and operations
  std::condition_variable changed;  // wakes ranks that wait
  std::vector<bool> left;           // by rank: the World of the rank is destroyed
  std::string aborted;              // the message for all ranks; empty: not aborted
  int running_copies = 0;           // copies on host memory; abort() waits for their end
};

// One collective, or one send with its receive, and what each participant has posted for it.
// Vectors are indexed by participant. The participants of a collective are the ranks of the team,
// in order. In a transfer, participant 0 is the sender and participant 1 the receiver.
struct MatchedOperation {
  std::vector<Operation> operations;  // readable without the mutex once missing == 0
  // For AllToAllV: copies of the lists of counts, because a rank that leaves may free its own
  // lists.
  std::vector<std::vector<int64_t>> counts;
  std::vector<int> members;  // positions in the team
  std::vector<bool> present;
  int missing = 0;  // participants that have not posted yet

  // State of the transport, guarded by the mutex of the job: which parts of the data movement have
  // started, how many of them are running, and how many are done.
  std::vector<bool> claimed;
  int running = 0;
  int done = 0;
  std::string cancelled;  // why a rank withdrew its buffers; empty: no rank did
  // Handles that a transport passes to the other participants.
  std::vector<std::shared_ptr<void>> ready;
  std::vector<std::shared_ptr<void>> finished;
};

struct Participant {
  std::shared_ptr<MatchedOperation> matched;
  int index = 0;
};

// The ranks of one communicator. Collectives match by their order on each rank; sends and receives
// match by their order within each pair of ranks.
class Team {
 public:
  Team(std::shared_ptr<JobState> job, std::vector<int> members);

  JobState& job() const { return *job_; }
  const std::vector<int>& members() const { return members_; }
  int size() const { return static_cast<int>(members_.size()); }

  // Callers of every function below must hold the mutex of the job.

  // Adds the operation of `member` to the MatchedOperation to which it belongs. If the ranks
  // disagree about the operation, the team fails, and check() throws from then on.
  Participant post(int member, const Operation& operation, std::shared_ptr<void> ready = nullptr);

  // Throws UserError if the job was aborted, the team has failed, or the operation can never
  // complete because a rank has left.
  void check(const MatchedOperation& matched) const;

  // Declares that `member` posts nothing more. Ranks that wait for an operation of `member` get an
  // error.
  void leave(int member);

  bool joined(int member) const { return joined_[member]; }
  void setJoined(int member, bool value) { joined_[member] = value; }
  bool isFull() const;
  // Returns whether data movement must stop, because the job was aborted or the ranks of this team
  // disagree.
  bool isHalted() const { return !failure_.empty() || !job_->aborted.empty(); }

 private:
  struct Queue {
    std::deque<std::shared_ptr<MatchedOperation>> without_sender;
    std::deque<std::shared_ptr<MatchedOperation>> without_receiver;
  };

  std::shared_ptr<MatchedOperation> newOperation(std::vector<int> members) const;
  Participant matchCollective(int member);
  Participant matchTransfer(int member, const Operation& operation);
  void compare(const Participant& participant);

  std::shared_ptr<JobState> job_;
  std::vector<int> members_;  // world ranks
  std::vector<bool> joined_;
  std::vector<bool> gone_;
  std::vector<int64_t> posted_;  // number of collectives, by member
  std::map<int64_t, std::shared_ptr<MatchedOperation>>
      collectives_;                                 // by number, until all have posted
  std::map<std::pair<int, int>, Queue> transfers_;  // by sender and receiver
  std::string failure_;
};

// Implements World::exchange() and the creation of teams for one job. Thread-safe.
class InProcessJob {
 public:
  explicit InProcessJob(int size);

  JobState& state() const { return *state_; }

  std::vector<std::string> exchange(int rank, const std::string& mine);
  // Waits until every member has joined.
  std::shared_ptr<Team> join(int rank, const std::vector<int>& members);
  // Aborts the job. Waits for running copies, but not for other ranks. No data movement starts
  // afterwards, so buffers of the job may be freed after the return.
  void abort(int rank, const std::string& reason);
  // Declares that the World of `rank` is destroyed.
  void leave(int rank);

 private:
  struct Exchange {
    std::vector<std::string> bytes;
    std::vector<bool> present;
    int missing;
  };

  // Waits until `ready` returns true. Throws UserError if the job is aborted, or a rank for which
  // `needed` returns true has left.
  void wait(std::unique_lock<std::mutex>& lock, const std::string& what,
            const std::function<bool()>& ready, const std::function<bool(int)>& needed);

  std::shared_ptr<JobState> state_;
  std::shared_ptr<Exchange> exchange_;  // the current one
  std::map<std::vector<int>, std::shared_ptr<Team>> incomplete_teams_;
};

using CommunicatorMaker =
    std::function<std::unique_ptr<Communicator>(std::shared_ptr<Team>, int member)>;

// Creates the Worlds of one job of threads. `maker` creates the communicator of one rank of a team.
std::vector<std::unique_ptr<World>> makeWorldsOfThreads(int size, const std::string& transport,
                                                        CommunicatorMaker maker);

// Creates the Worlds of one job of threads with communicators on host memory. `transport` is the
// result of World::transport().
std::vector<std::unique_ptr<World>> makeHostWorldsOfThreads(int size, const std::string& transport);

}  // namespace heddle::comm
