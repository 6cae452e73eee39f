#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "host/program/program.h"

namespace heddle::host {

// Owns the communicators that programs without Calls need: one for each distinct pair of a member
// list and a carrier (Communicate::carrier). They are split from the job in the order in which a
// walk over the program finds the teams, which is the same on every rank.
class Communicators {
 public:
  // Creates the communicators that the program needs and that are missing. Collective over the job.
  // The job must be the same for all programs, and no other thread may use this object meanwhile.
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

// Requires that every rank of the job holds the same program; one rank needs no check. UserError on
// all ranks, with the first line that differs. Collective.
void checkAgreement(const Program& program, comm::World& world);

}  // namespace heddle::host
