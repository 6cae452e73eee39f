#include "host/verify/check_races.h"

#include <algorithm>

#include "host/program/visit.h"
#include "host/text/program_text.h"
#include "host/verify/race_state.h"
#include "host/verify/returned_views.h"
#include "host/verify/verify.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

bool isPost(const Op& op) { return kindOf(op) == InstructionKind::Post; }

// Returns the highest number of a stream that a step uses, plus 1.
size_t streamsOf(const Unrolled& unrolled) {
  StreamId highest = kCallerStream;
  for (const UnrolledStep& step : unrolled.steps) {
    if (step.stream.valid()) highest = std::max(highest, step.stream);
  }
  return 1 + highest.index();
}

class RaceChecker {
 public:
  RaceChecker(const Program& program, const Unrolled& unrolled)
      : program_(program),
        unrolled_(unrolled),
        state_(streamsOf(unrolled), program.tokens.size(), program.events.size(),
               unrolled.buffers.size()),
        returned_(unrolled.buffers.size(), false) {
    for (const View& view : unrolled.outputs) {
      if (view.buffer.valid()) returned_[view.buffer] = true;
    }
  }

  void run(BuffersAreFreed freed) {
    for (BufferId b : unrolled_.buffers.ids()) {
      if (unrolled_.buffers[b].origin != Buffer::Origin::Input) continue;
      state_.buffers[b].allocated = 0;
      state_.buffers[b].accesses.push_back(
          {0, unrolled_.buffers[b].bytes, true, -1, kCallerStream, 1, -1});
    }
    walk(0, unrolled_.steps.size());
    finish();
    if (freed == BuffersAreFreed::Yes) findUnfreed();
  }

 private:
  // Checks the steps [begin, end). If the run decides a branch, the function checks both bodies,
  // from the same state. Afterwards the state contains only knowledge that is certain after both
  // bodies.
  void walk(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const UnrolledStep& step = unrolled_.steps[i];
      if (step.instruction == nullptr || step.jump < 0) {
        this->step(i);
        continue;
      }
      const size_t jump = step.jump;
      const UnrolledStep& before = unrolled_.steps[jump - 1];
      const bool has_else = before.instruction == nullptr && before.index == step.index;
      const size_t after = has_else ? static_cast<size_t>(before.jump) : jump;
      state_.beginBranch();
      walk(i + 1, has_else ? jump - 1 : jump);
      state_.beginOtherwise();
      walk(jump, after);
      const BufferId uneven = state_.endBranch();
      HEDDLE_USER_CHECK(!uneven.valid(),
                        "{}: %{} is allocated at the end of only one of the branches",
                        text(static_cast<int32_t>(i)), bufferName(uneven));
      i = after - 1;
    }
  }

  void step(size_t i) {
    const UnrolledStep& step = unrolled_.steps[i];
    if (step.instruction == nullptr) return;
    const auto at = static_cast<int32_t>(i);
    const Op& op = step.instruction->op;
    // Only a GroupBegin begins a group, which counts as one post.
    if (std::holds_alternative<GroupBegin>(op)) group_ = newPost(at);
    if (!step.stream.valid()) return;
    if (state_.order(op, step.stream)) return;
    VectorClock& clock = state_.of(step.stream);
    // Only the GroupEnd of a group has a token. The sends and receives inside have none.
    if (kindOf(op) == InstructionKind::Group) {
      if (const std::optional<TokenId> token = postedToken(op)) {
        state_.post(*token, group_, clock);
        group_ = -1;
        return;
      }
    }
    const int32_t time = ++clock.streams[step.stream];
    int32_t post = -1;
    if (isPost(op)) post = group_ >= 0 ? group_ : newPost(at);
    // The end of stream 0 must be ordered after all work except Free instructions.
    if (post < 0 && !std::holds_alternative<Free>(op)) {
      state_.last_work[step.stream] = at;
      state_.work_time[step.stream] = time;
    }
    for (const UnrolledAccess& access : step.accesses) touch(at, access, time, post, clock);
    if (post >= 0 && group_ < 0) state_.post(postedToken(op).value(), post, clock);
  }

  int32_t newPost(int32_t at) {
    state_.post_step.push_back(at);
    return static_cast<int32_t>(state_.post_step.size() - 1);
  }

  void touch(int32_t at, const UnrolledAccess& access, int32_t time, int32_t post,
             const VectorClock& clock) {
    const Op& op = stepAt(at).instruction->op;
    RaceBuffer& buffer = state_.changed(access.buffer);
    // Only an Allocate creates a buffer, and only a Free ends its life.
    if (std::holds_alternative<Allocate>(op)) buffer.allocated = at;
    HEDDLE_USER_CHECK(buffer.freed < 0, "{}: uses %{} after its free, {}", text(at),
                      bufferName(access.buffer), text(buffer.freed));
    const Buffer& info = unrolled_.buffers[access.buffer];
    const bool is_input = info.origin == Buffer::Origin::Input;
    const bool is_free = std::holds_alternative<Free>(op);
    HEDDLE_USER_CHECK(!(is_input && is_free), "{}: frees the input %{}", text(at), info.name);
    HEDDLE_USER_CHECK(!(is_input && access.write) || isReturned(access.buffer) || info.donated,
                      "{}: writes to the input %{}, which is neither an output nor donated",
                      text(at), info.name);
    HEDDLE_USER_CHECK(!is_free || !isReturned(access.buffer), "{}: frees the output %{}", text(at),
                      info.name);
    // Allocate and Free access the full buffer. All other instructions access the bytes of the
    // view.
    const bool whole = is_free || std::holds_alternative<Allocate>(op);
    RaceAccess mine{whole ? 0 : access.begin,
                    whole ? info.bytes : access.end,
                    access.write,
                    at,
                    stepAt(at).stream,
                    time,
                    post};
    for (const RaceAccess& other : buffer.accesses)
      compare(mine, other, clock, access.buffer, whole);
    remember(buffer, mine, clock);
    if (is_free) buffer.freed = at;
  }

  void compare(const RaceAccess& mine, const RaceAccess& other, const VectorClock& clock,
               BufferId buffer, bool whole) const {
    if (!mine.write && !other.write) return;
    // Every access must be ordered after the Allocate of its buffer, even an access to no bytes.
    if (!whole && (mine.end <= other.begin || other.end <= mine.begin)) {
      if (!isAllocate(other)) return;
    }
    if (mine.step == other.step && mine.post == other.post) return;
    if (other.happensBefore(clock)) return;
    const std::string name = bufferName(buffer);
    HEDDLE_USER_CHECK(other.step >= 0,
                      "{}: stream {} accesses the input %{} and is not ordered after the "
                      "caller's stream 0",
                      text(mine.step), mine.stream, name);
    HEDDLE_USER_CHECK(other.post < 0 || other.post == mine.post,
                      "{}: accesses %{}, which is borrowed by {} until a wait on stream {}",
                      text(mine.step), name, text(other.step), mine.stream);
    HEDDLE_USER_CHECK(other.post < 0, "{}: accesses %{}, which {} of the same group also accesses",
                      text(mine.step), name, text(other.step));
    userError("{}: {} %{} on stream {} and is not ordered after {} on stream {}", text(mine.step),
              mine.write ? "writes" : "reads", name, mine.stream, text(other.step), other.stream);
  }

  // Only an Allocate creates a buffer. Every other access must be ordered after it.
  bool isAllocate(const RaceAccess& access) const {
    return access.step >= 0 &&
           std::holds_alternative<Allocate>(stepAt(access.step).instruction->op);
  }

  // Adds `mine`, and removes the accesses that became redundant. An access is redundant if every
  // later access that races with it also races with `mine`.
  void remember(RaceBuffer& buffer, const RaceAccess& mine, const VectorClock& clock) {
    const auto is_covered = [&](const RaceAccess& other) {
      return other.happensBefore(clock) && mine.begin <= other.begin && other.end <= mine.end &&
             (mine.write || !other.write);
    };
    buffer.accesses.erase(
        std::remove_if(buffer.accesses.begin(), buffer.accesses.end(), is_covered),
        buffer.accesses.end());
    buffer.accesses.push_back(mine);
  }

  // Checks that all posts, and all other work except Free instructions, are ordered before the end
  // of stream 0, because the caller may use the outputs on this stream.
  void finish() {
    const VectorClock& end = state_.streams[kCallerStream];
    for (size_t post = 0; post < state_.post_step.size(); ++post) {
      HEDDLE_USER_CHECK(end.knowsPost(static_cast<int32_t>(post)),
                        "{}: the program ends without a wait that orders stream 0 after it",
                        text(state_.post_step[post]));
    }
    for (StreamId s : IdRange(StreamId(1), state_.streams.endId())) {
      HEDDLE_USER_CHECK(end.knowsStep(s, state_.work_time[s]),
                        "{}: stream {} is not ordered before the end of stream 0",
                        text(state_.last_work[s]), s);
    }
  }

  void findUnfreed() const {
    for (BufferId b : state_.buffers.ids()) {
      const RaceBuffer& buffer = state_.buffers[b];
      if (unrolled_.buffers[b].origin == Buffer::Origin::Input || buffer.allocated < 0) continue;
      HEDDLE_USER_CHECK(buffer.freed >= 0 || isReturned(b),
                        "{}: the buffer is neither freed nor returned", text(buffer.allocated));
    }
  }

  const UnrolledStep& stepAt(int32_t step) const { return unrolled_.steps[step]; }

  bool isReturned(BufferId buffer) const { return returned_[buffer]; }

  std::string bufferName(BufferId buffer) const {
    return buffer.valid() ? unrolled_.buffers[buffer].name : "";
  }

  std::string text(int32_t step) const {
    if (step < 0) return "";
    const UnrolledStep& at = stepAt(step);
    return fmt::format("instruction {} `{}`", at.index,
                       printInstruction(program_, *at.instruction));
  }

  const Program& program_;
  const Unrolled& unrolled_;
  RaceState state_;
  IdVector<BufferId, bool> returned_;
  int32_t group_ = -1;  // the post of the open group; -1: none is open
};

}  // namespace

void checkRaces(const Program& program, const Unrolled& unrolled, BuffersAreFreed freed) {
  const Program& inlined = unrolled.inlined ? *unrolled.inlined : program;
  RaceChecker(inlined, unrolled).run(freed);
  checkReturnedViews(inlined, unrolled);
}

}  // namespace heddle::host
