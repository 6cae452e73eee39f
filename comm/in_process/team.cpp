#include <algorithm>

#include "comm/in_process/job.h"
#include "comm/operation.h"
#include "ir/base/check.h"

namespace heddle::comm {

Team::Team(std::shared_ptr<JobState> job, std::vector<int> members)
    : job_(std::move(job)),
      members_(std::move(members)),
      joined_(members_.size(), false),
      gone_(members_.size(), false),
      posted_(members_.size(), 0) {}

bool Team::isFull() const {
  return std::find(joined_.begin(), joined_.end(), false) == joined_.end();
}

std::shared_ptr<MatchedOperation> Team::newOperation(std::vector<int> members) const {
  auto matched = std::make_shared<MatchedOperation>();
  const size_t participants = members.size();
  matched->members = std::move(members);
  matched->operations.resize(participants);
  matched->counts.resize(participants);
  matched->present.resize(participants, false);
  matched->missing = static_cast<int>(participants);
  matched->ready.resize(participants);
  matched->finished.resize(participants);
  return matched;
}

Participant Team::matchCollective(int member) {
  std::shared_ptr<MatchedOperation>& matched = collectives_[posted_[member]++];
  if (!matched) {
    std::vector<int> everybody(members_.size());
    for (int i = 0; i < size(); ++i) everybody[i] = i;
    matched = newOperation(std::move(everybody));
  }
  return {matched, member};
}

Participant Team::matchTransfer(int member, const Operation& operation) {
  const bool sends = operation.kind == CollectiveKind::Send;
  const int sender = sends ? member : operation.peer;
  const int receiver = sends ? operation.peer : member;
  Queue& queue = transfers_[{sender, receiver}];
  auto& waiting = sends ? queue.without_sender : queue.without_receiver;
  const int participant = sends ? 0 : 1;
  if (!waiting.empty()) {
    Participant found{waiting.front(), participant};
    waiting.pop_front();
    return found;
  }
  auto matched = newOperation({sender, receiver});
  (sends ? queue.without_receiver : queue.without_sender).push_back(matched);
  return {matched, participant};
}

// If `participant` disagrees with an earlier participant about the operation, makes the team fail.
void Team::compare(const Participant& participant) {
  const MatchedOperation& matched = *participant.matched;
  const Operation& mine = matched.operations[participant.index];
  for (size_t i = 0; i < matched.present.size(); ++i) {
    if (!matched.present[i]) continue;
    if (agree(matched.operations[i], static_cast<int>(i), mine, participant.index)) continue;
    if (!failure_.empty()) return;
    failure_ = fmt::format("team {}: rank {} posted {} where rank {} posted {}", listOf(members_),
                           members_[matched.members[i]], describe(matched.operations[i]),
                           members_[matched.members[participant.index]], describe(mine));
    job_->changed.notify_all();
    return;
  }
}

Participant Team::post(int member, const Operation& operation, std::shared_ptr<void> ready) {
  const Participant participant =
      isPointToPoint(operation.kind) ? matchTransfer(member, operation) : matchCollective(member);
  MatchedOperation& matched = *participant.matched;
  matched.operations[participant.index] =
      withOwnCounts(operation, matched.counts[participant.index]);
  matched.ready[participant.index] = std::move(ready);
  compare(participant);
  matched.present[participant.index] = true;
  if (--matched.missing == 0) {
    if (!isPointToPoint(operation.kind)) collectives_.erase(posted_[member] - 1);
    job_->changed.notify_all();
  }
  return participant;
}

void Team::check(const MatchedOperation& matched) const {
  HEDDLE_USER_CHECK_CODE(RankLost, job_->aborted.empty(), "{}", job_->aborted);
  HEDDLE_USER_CHECK(failure_.empty(), "{}", failure_);
  HEDDLE_USER_CHECK(matched.cancelled.empty(), "{}", matched.cancelled);
  for (size_t i = 0; i < matched.present.size(); ++i) {
    const int member = matched.members[i];
    const bool lost = !matched.present[i] && (gone_[member] || job_->left[members_[member]]);
    HEDDLE_USER_CHECK_CODE(RankLost, !lost, "team {}: rank {} left while others wait for it",
                           listOf(members_), members_[member]);
  }
}

void Team::leave(int member) {
  gone_[member] = true;
  job_->changed.notify_all();
}

}  // namespace heddle::comm
