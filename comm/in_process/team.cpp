#include <algorithm>

#include "comm/in_process/job.h"
#include "comm/operation.h"
#include "ir/base/error.h"

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

std::shared_ptr<Meeting> Team::newMeeting(std::vector<int> members) const {
  auto meeting = std::make_shared<Meeting>();
  const size_t seats = members.size();
  meeting->members = std::move(members);
  meeting->operations.resize(seats);
  meeting->counts.resize(seats);
  meeting->present.resize(seats, false);
  meeting->missing = static_cast<int>(seats);
  meeting->ready.resize(seats);
  meeting->finished.resize(seats);
  return meeting;
}

Seat Team::collectiveSeat(int member) {
  std::shared_ptr<Meeting>& meeting = collectives_[posted_[member]++];
  if (!meeting) {
    std::vector<int> everybody(members_.size());
    for (int i = 0; i < size(); ++i) everybody[i] = i;
    meeting = newMeeting(std::move(everybody));
  }
  return {meeting, member};
}

Seat Team::transferSeat(int member, const Operation& operation) {
  const bool sends = operation.kind == CollectiveKind::Send;
  const int sender = sends ? member : operation.peer;
  const int receiver = sends ? operation.peer : member;
  Queue& queue = transfers_[{sender, receiver}];
  auto& waiting = sends ? queue.without_sender : queue.without_receiver;
  const int seat = sends ? 0 : 1;
  if (!waiting.empty()) {
    Seat found{waiting.front(), seat};
    waiting.pop_front();
    return found;
  }
  auto meeting = newMeeting({sender, receiver});
  (sends ? queue.without_receiver : queue.without_sender).push_back(meeting);
  return {meeting, seat};
}

// Tells a disagreement between the newcomer and one who is there already.
void Team::compare(const Seat& seat) {
  const Meeting& meeting = *seat.meeting;
  const Operation& mine = meeting.operations[seat.index];
  for (size_t i = 0; i < meeting.present.size(); ++i) {
    if (!meeting.present[i]) continue;
    if (agree(meeting.operations[i], static_cast<int>(i), mine, seat.index)) continue;
    if (!failure_.empty()) return;
    failure_ = fmt::format("team {}: rank {} posted {} where rank {} posted {}", listOf(members_),
                           members_[meeting.members[i]], describe(meeting.operations[i]),
                           members_[meeting.members[seat.index]], describe(mine));
    job_->changed.notify_all();
    return;
  }
}

Seat Team::sit(int member, const Operation& operation, std::shared_ptr<void> ready) {
  const Seat seat =
      isPointToPoint(operation.kind) ? transferSeat(member, operation) : collectiveSeat(member);
  Meeting& meeting = *seat.meeting;
  meeting.operations[seat.index] = withOwnCounts(operation, meeting.counts[seat.index]);
  meeting.ready[seat.index] = std::move(ready);
  compare(seat);
  meeting.present[seat.index] = true;
  if (--meeting.missing == 0) {
    if (!isPointToPoint(operation.kind)) collectives_.erase(posted_[member] - 1);
    job_->changed.notify_all();
  }
  return seat;
}

void Team::check(const Meeting& meeting) const {
  HEDDLE_USER_CHECK(job_->aborted.empty(), "{}", job_->aborted);
  HEDDLE_USER_CHECK(failure_.empty(), "{}", failure_);
  HEDDLE_USER_CHECK(meeting.cancelled.empty(), "{}", meeting.cancelled);
  for (size_t i = 0; i < meeting.present.size(); ++i) {
    const int member = meeting.members[i];
    const bool lost = !meeting.present[i] && (gone_[member] || job_->left[members_[member]]);
    HEDDLE_USER_CHECK(!lost, "team {}: rank {} left while others wait for it", listOf(members_),
                      members_[member]);
  }
}

void Team::leave(int member) {
  gone_[member] = true;
  job_->changed.notify_all();
}

}  // namespace heddle::comm
