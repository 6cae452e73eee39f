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

// Code for jobs whose ranks are threads of one process. Operations that different ranks post, but
// that belong together, *match*: for example a send and its receive. A Team finds matching
// operations. Two transports move their data: comm/in_process/host_transport.cpp on host memory,
// and comm/cuda/in_process_cuda.cpp on one GPU.
namespace heddle::comm {

// The state that all ranks of a job share.
struct JobState {
  explicit JobState(int size) : size(size), left(size, false) {}

  const int size;
  std::mutex mutex;                 // guards all members, the teams and the operations
  std::condition_variable changed;  // notified when a waiting rank may continue
  std::vector<bool> left;           // by rank: its World has been destroyed
  std::string aborted;              // the message for all ranks; empty: not aborted
  int running_copies = 0;  // number of running copies on host memory; abort() waits for them
};

// One collective, or one transfer (a send with its receive). All vectors except `claimed` are
// indexed by participant. The participants of a collective are the ranks of the team, in order. In
// a transfer, participant 0 is the sender and participant 1 is the receiver.
struct MatchedOperation {
  std::vector<Operation> operations;  // if missing == 0, may be read without the mutex
  // For AllToAllV: copies of the lists of counts. A rank that leaves the job may free its own
  // lists while other ranks still read the counts.
  std::vector<std::vector<int64_t>> counts;
  std::vector<int> members;   // by participant: its position in the team
  std::vector<bool> present;  // by participant: it has posted
  int missing = 0;            // number of participants that have not posted

  // The progress of the data movement, which consists of parts (comm/in_process/operation_parts.h).
  // Host memory: `claimed` is indexed by part, and is true if a rank has started to move the part.
  // `running` is the number of parts that are being moved now. `done` is the number of parts that
  // have been moved.
  // One GPU: `done` is the number of participants that have enqueued their parts. `claimed` and
  // `running` are not used.
  std::vector<bool> claimed;
  int running = 0;
  int done = 0;
  std::string cancelled;  // why a rank cancelled the operation; empty: not cancelled
  // CUDA events by participant, if the ranks share one GPU. After the event `ready`, other ranks
  // may use the buffers of the participant. After the event `finished`, the part of the participant
  // has been moved.
  std::vector<std::shared_ptr<void>> ready;
  std::vector<std::shared_ptr<void>> finished;
};

// One participant of a matched operation.
struct Participant {
  std::shared_ptr<MatchedOperation> matched;
  int index = 0;  // number of the participant
};

// The ranks of one communicator. The n-th collectives of all ranks match. The n-th send from rank a
// to rank b matches the n-th receive of rank b from rank a.
class Team {
 public:
  Team(std::shared_ptr<JobState> job, std::vector<int> members);

  JobState& job() const { return *job_; }
  const std::vector<int>& members() const { return members_; }
  int size() const { return static_cast<int>(members_.size()); }

  // Callers of every function below must hold the mutex of the job.

  // Adds the operation of `member` to its MatchedOperation. `ready` is stored in
  // MatchedOperation::ready. If the ranks disagree about the operation, the team fails: every
  // later check() throws.
  Participant post(int member, const Operation& operation, std::shared_ptr<void> ready = nullptr);

  // Throws UserError if the operation can never complete: the job was aborted, the team has failed,
  // a rank cancelled the operation, or a rank left before it posted.
  void check(const MatchedOperation& matched) const;

  // Declares that `member` will post nothing more. Calls of other ranks that wait for an operation
  // of `member` then throw UserError.
  void leave(int member);

  // A member joins by calling InProcessJob::join(). The team is full when all members have joined.
  bool joined(int member) const { return joined_[member]; }
  void setJoined(int member, bool value) { joined_[member] = value; }
  bool isFull() const;
  // Returns whether data movement must stop, because the job was aborted or this team has failed.
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
  std::vector<int> members_;  // ranks of the job, in team order
  std::vector<bool> joined_;
  std::vector<bool> gone_;
  std::vector<int64_t> posted_;  // number of posted collectives, by member
  std::map<int64_t, std::shared_ptr<MatchedOperation>>
      collectives_;                                 // by number; erased when all ranks have posted
  std::map<std::pair<int, int>, Queue> transfers_;  // by (sender, receiver)
  std::string failure_;
};

// Implements World::exchange() and the creation of teams for one job. Thread-safe.
class InProcessJob {
 public:
  explicit InProcessJob(int size);

  JobState& state() const { return *state_; }

  std::vector<std::string> exchange(int rank, const std::string& mine);
  // Returns the team of `members`. Waits until every member has called join().
  std::shared_ptr<Team> join(int rank, const std::vector<int>& members);
  // Aborts the job. Waits for running copies on host memory, but not for other ranks. After abort()
  // has returned, no data movement starts on host memory, and host buffers of the job may be freed.
  void abort(int rank, const std::string& reason);
  // Declares that the World of `rank` is destroyed.
  void leave(int rank);

 private:
  struct Exchange {
    std::vector<std::string> bytes;
    std::vector<bool> present;
    int missing;
  };

  // Waits until `ready` returns true. Throws UserError if the job is aborted, or if a rank r has
  // left and `needed(r)` returns true. `what` names the waiting call in the message.
  void wait(std::unique_lock<std::mutex>& lock, const std::string& what,
            const std::function<bool()>& ready, const std::function<bool(int)>& needed);

  std::shared_ptr<JobState> state_;
  std::shared_ptr<Exchange> exchange_;  // the exchange that has not completed yet
  std::map<std::vector<int>, std::shared_ptr<Team>> incomplete_teams_;
};

using CommunicatorMaker =
    std::function<std::unique_ptr<Communicator>(std::shared_ptr<Team>, int member)>;

// Creates the Worlds of a job whose ranks are threads. `maker` creates the communicator of one
// rank of a team. `transport` is what World::transport() returns.
std::vector<std::unique_ptr<World>> makeWorldsOfThreads(int size, const std::string& transport,
                                                        CommunicatorMaker maker);

// Does the same as makeWorldsOfThreads(), with a `maker` for communicators on host memory.
std::vector<std::unique_ptr<World>> makeHostWorldsOfThreads(int size, const std::string& transport);

}  // namespace heddle::comm
