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

// Owns the communicators that programs need: one for each distinct pair of a member list and a
// carrier (Communicate::carrier). The programs must contain no Call. Communicators are split from
// the job in the order in which a walk over the program finds their teams. This order is equal on
// every rank.
class Communicators {
 public:
  // Creates the communicators that the program needs and that do not exist yet. Collective over the
  // job. All programs must belong to one job. No other thread may use this object during the call.
  void add(const Program& program, comm::World& world);

  // Returns one communicator. InternalError: no instruction of an added program names it.
  comm::Communicator& of(const std::vector<int>& members, const comm::Carrier& carrier) const;

  int64_t made() const { return static_cast<int64_t>(communicators_.size()); }
  // Returns the time spent in add(), which includes waiting for other ranks.
  double seconds() const { return seconds_; }

 private:
  using Key = std::pair<std::vector<int>, comm::Carrier>;
  std::map<Key, std::unique_ptr<comm::Communicator>> communicators_;
  std::set<Key> split_teams_;  // all teams split so far, also those without this rank
  double seconds_ = 0;
};

// Checks that every rank of the job holds the same program. If programs differ, every rank throws
// UserError with the first line that differs. Collective over the job. Does nothing in a job of one
// rank.
void checkAgreement(const Program& program, comm::World& world);

// Checks that either all ranks have a compiler for the kernels of the program or none has one.
// Otherwise every rank throws UserError with the reason: compiled ranks would wait for a rank that
// runs its kernels in the slow reference evaluator. Collective over the job.
void checkCompilers(const Program& program, const Device& device, comm::World& world);

}  // namespace heddle::host
