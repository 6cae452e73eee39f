#include "host/passes/coalesce_collectives.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "host/passes/analysis/buffer_accesses.h"
#include "host/passes/analysis/next_conflict.h"
#include "host/passes/analysis/nominal_sizes.h"
#include "host/passes/analysis/slot_uses.h"
#include "host/passes/chunk/cost_constants.h"
#include "host/program/visit.h"

namespace heddle::host {
namespace {

using comm::CollectiveKind;

// A collective that may become a member of a group.
struct Member {
  size_t post;  // index of the Communicate instruction in the body
  size_t wait;  // index of the Wait instruction in the body
  Size bytes;   // size of the collective, on each device
};

// The collectives of a group, in program order.
struct PostGroup {
  std::vector<Member> members;
  Size bytes;
  size_t blocked_at = 0;  // index of the first instruction that some post must precede
  bool closed = false;
};

class Coalescer {
 public:
  Coalescer(Program program, const PassOptions& options)
      : program_(std::move(program)),
        items_(bufferAccessesOf(program_)),
        conflicts_(items_),
        uses_(slotUsesOf(program_)),
        sizes_(program_, options) {}

  // Visits the instructions in order. A group is open as long as all its posts can move down to the
  // current instruction and it has fewer than CostConstants::group_posts members. Only open groups
  // take further collectives.
  Program run() {
    if (program_.streams() > 1 || !isUnordered(program_, items_)) return std::move(program_);
    findPosts();
    for (size_t i = 0; i < program_.body.size(); ++i) {
      const std::optional<Member> member = memberAt(i);
      for (size_t id : ends_[i]) {
        if (groups_[id].blocked_at == i) close(id);
      }
      if (member) join(*member);
    }
    for (size_t id = 0; id < groups_.size(); ++id) close(id);
    return joined_.empty() ? std::move(program_) : rewritten();
  }

 private:
  const Instruction& at(size_t i) const { return program_.body[i]; }
  const Communicate& post(const Member& member) const {
    return std::get<Communicate>(at(member.post).op);
  }

  // Records the collectives and the waits of each token, and counts the accesses of collectives for
  // isPiece(). The program contains no Send or Recv, because isUnordered() is true.
  void findPosts() {
    for (size_t i = 0; i < program_.body.size(); ++i) {
      // Only a Wait waits for a token.
      if (const auto* x = std::get_if<Wait>(&at(i).op)) waits_[x->token].push_back(i);
      const auto* x = std::get_if<Communicate>(&at(i).op);
      if (x == nullptr) continue;
      posts_[x->token].push_back(i);
      for (const ItemAccess& access : items_.items[i].accesses)
        ++sharing_[{x->kind, access.whole()}];
    }
  }

  // Returns whether the collective of instruction `i` shares a buffer with a second collective of
  // the same kind: both read the buffer, or both write it. Such collectives are usually pieces of
  // one collective that was split on purpose.
  bool isPiece(size_t i, CollectiveKind kind) const {
    const auto& accesses = items_.items[i].accesses;
    return std::any_of(accesses.begin(), accesses.end(), [&](const ItemAccess& access) {
      return sharing_.at({kind, access.whole()}) > 1;
    });
  }

  // Returns the collective that instruction `i` posts, if it may be joined: mayGroup() allows its
  // kind, it is small, and isPiece() is false. Its token must have exactly one post and exactly one
  // wait. The wait must come after the post, and the same ranks must execute both.
  std::optional<Member> memberAt(size_t i) {
    // Only a Communicate can be joined: no other post can have several pairs.
    const auto* x = std::get_if<Communicate>(&at(i).op);
    if (x == nullptr || !mayGroup(x->kind) || isPiece(i, x->kind)) return std::nullopt;
    const std::vector<size_t>& waits = waits_[x->token];
    if (posts_[x->token].size() != 1 || waits.size() != 1 || waits.front() < i ||
        at(waits.front()).on != at(i).on) {
      return std::nullopt;
    }
    Size bytes;
    for (const auto& [in, out] : x->pairs()) bytes = bytes + Size::max(bytesOf(in), bytesOf(out));
    if (sizes_.isAbove(bytes, kCostConstants.joined_bytes)) return std::nullopt;
    return Member{i, waits.front(), bytes};
  }

  Size bytesOf(SlotId id) const { return evenBytes(program_, program_.slots[id]); }

  // Returns the index of the first instruction that the post must precede. This instruction
  // conflicts with the post, or defines a slot that the post names.
  size_t blockedAt(const Member& member) const {
    size_t first = conflicts_.find(member.post, member.post);
    for (const auto& [in, out] : post(member).pairs()) {
      for (SlotId slot : {in, out}) {
        const std::vector<size_t>& defined = uses_[slot].defined;
        const auto next = std::upper_bound(defined.begin(), defined.end(), member.post);
        if (next != defined.end()) first = std::min(first, *next);
      }
    }
    return first;
  }

  bool fits(const PostGroup& group, const Member& member) const {
    const Communicate& first = post(group.members.front());
    const Communicate& mine = post(member);
    if (first.kind != mine.kind || first.team != mine.team || first.reduce != mine.reduce ||
        first.root != mine.root || first.carrier != mine.carrier ||
        at(group.members.front().post).on != at(member.post).on) {
      return false;
    }
    return group.members.size() < kCostConstants.group_posts &&
           !sizes_.isAbove(group.bytes + member.bytes, kCostConstants.group_bytes);
  }

  void join(const Member& member) {
    const auto found = std::find_if(open_.begin(), open_.end(),
                                    [&](size_t id) { return fits(groups_[id], member); });
    const size_t id = found == open_.end() ? groups_.size() : *found;
    if (found == open_.end()) {
      groups_.emplace_back().blocked_at = program_.body.size();
      open_.insert(id);
    }
    PostGroup& group = groups_[id];
    group.members.push_back(member);
    group.bytes = group.bytes + member.bytes;
    if (group.members.size() == kCostConstants.group_posts) open_.erase(id);
    const size_t end = blockedAt(member);
    if (end >= group.blocked_at) return;
    group.blocked_at = end;
    ends_[end].push_back(id);
  }

  void close(size_t id) {
    PostGroup& group = groups_[id];
    open_.erase(id);
    if (std::exchange(group.closed, true) || group.members.size() < 2) return;
    for (const Member& member : group.members) {
      gone_.insert(member.post);
      gone_.insert(member.wait);
    }
    joined_.emplace(group.members.back().post, id);
  }

  Instruction postOf(const PostGroup& group) const {
    Instruction out = at(group.members.front().post);
    auto& whole = std::get<Communicate>(out.op);
    for (size_t i = 1; i < group.members.size(); ++i) {
      for (const Communicate::Pair& pair : post(group.members[i]).pairs()) {
        whole.also.push_back(pair);
      }
    }
    return out;
  }

  Program rewritten() {
    std::vector<Instruction> body;
    for (size_t i = 0; i < program_.body.size(); ++i) {
      if (const auto found = joined_.find(i); found != joined_.end()) {
        const PostGroup& group = groups_[found->second];
        const size_t wait = group.members.front().wait;
        body.push_back(postOf(group));
        body.push_back(at(wait));
      } else if (gone_.count(i) == 0) {
        body.push_back(at(i));
      }
    }
    program_.body = std::move(body);
    return std::move(program_);
  }

  Program program_;
  const BufferAccesses items_;
  const NextConflict conflicts_;
  const IdVector<SlotId, SlotUses> uses_;
  const NominalSizes sizes_;
  std::map<TokenId, std::vector<size_t>> posts_, waits_;  // indices into the body
  // Number of accesses by collectives, per kind of collective, buffer, and read or write.
  std::map<std::pair<CollectiveKind, ItemAccess>, int> sharing_;
  std::vector<PostGroup> groups_;
  std::set<size_t> open_;                       // the open groups, see run()
  std::map<size_t, std::vector<size_t>> ends_;  // by instruction: groups that it may block
  std::map<size_t, size_t> joined_;             // index of the last post of a group -> group
  std::set<size_t> gone_;                       // indices of posts and waits that groups replace
};

}  // namespace

Program coalesceCollectives(Program program, const PassOptions& options) {
  return Coalescer(std::move(program), options).run();
}

}  // namespace heddle::host
