#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "host/program/program.h"

namespace heddle::host {

class Device;

// Owns the communicators that programs need. A team is a list of ranks that take part in a
// collective. A carrier says which hardware moves the data (comm::Carrier in comm/communicator.h).
// There is one communicator for each distinct pair of team and carrier.
class Communicators {
 public:
  // Creates those communicators that the program needs and that do not exist yet. The call is
  // collective over the job. Every rank creates the communicators in the order of the instructions
  // that need them, so the order is equal on all ranks.
  // - The program must contain no Call instruction (inlineCalls() removes them).
  // - All calls on one object must have Worlds of the same job.
  // - No other thread may use this object during the call.
  void add(const Program& program, comm::World& world);

  // Returns the communicator for the pair of the team `members` and `carrier`. Throws InternalError
  // if add() has created no communicator for this pair on this rank.
  comm::Communicator& of(const std::vector<int>& members, const comm::Carrier& carrier) const;

  // Returns the number of communicators that exist on this rank.
  int64_t made() const { return static_cast<int64_t>(communicators_.size()); }
  // Returns the time spent in add(), in seconds, including the time in which add() waited for other
  // ranks.
  double seconds() const { return seconds_; }

 private:
  using Key = std::pair<std::vector<int>, comm::Carrier>;
  std::map<Key, std::unique_ptr<comm::Communicator>> communicators_;
  std::set<Key> split_teams_;  // the keys of the communicators of all ranks of the job
  double seconds_ = 0;
};

// Checks that every rank of the job holds the same program. The call is collective over the job,
// and does nothing in a job of one rank. If programs differ, every rank throws UserError. The
// message contains the first line in which the program of another rank differs from the program of
// rank 0.
void checkAgreement(const Program& program, comm::World& world);

// Checks that either all ranks have a compiler for the kernels of the program or none has one.
// Otherwise every rank throws UserError. A rank without a compiler computes kernels with the slow
// reference evaluator, and the ranks with a compiler would wait for it. If the program has kernels
// and the job has several ranks, the call is collective over the job. Otherwise it does nothing.
void checkCompilers(const Program& program, const Device& device, comm::World& world);

}  // namespace heddle::host
