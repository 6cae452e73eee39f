#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "host/program/program.h"

namespace heddle::host {

// The communicators of programs without Calls, one for each distinct list of members and carrier
// (Communicate::carrier), split from the job's in the order in which a walk of the
// program meets their teams: the same on every rank.
class Communicators {
 public:
  // Those that are missing for a program. Collective over the job, which is one for all programs;
  // not while another thread is here.
  void add(const Program& program, comm::World& world);

  // InternalError for what no instruction of a program names.
  comm::Communicator& of(const std::vector<int>& members, const comm::Carrier& carrier) const;

  int64_t made() const { return static_cast<int64_t>(made_.size()); }
  double seconds() const { return seconds_; }  // to make them, those of other ranks included

 private:
  using Key = std::pair<std::vector<int>, comm::Carrier>;
  std::map<Key, std::unique_ptr<comm::Communicator>> made_;
  std::set<Key> known_;  // of any rank
  double seconds_ = 0;
};

// World size > 1: every rank must hold the same program. Otherwise UserError on all ranks with the
// first line that differs. Collective.
void checkAgreement(const Program& program, comm::World& world);

}  // namespace heddle::host
