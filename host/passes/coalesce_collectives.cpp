#include "host/passes/coalesce_collectives.h"

#include <algorithm>
#include <map>
#include <set>

#include "host/passes/analysis/buffer_accesses.h"
#include "host/passes/analysis/nominal_sizes.h"
#include "host/passes/chunk/cost_constants.h"
#include "host/program/visit.h"

namespace heddle::host {
namespace {

using comm::CollectiveKind;

// A collective that may become a member of a group.
struct Member {
  size_t post;   // index of the Communicate instruction in the body
  size_t wait;   // index of the Wait instruction in the body
  double bytes;  // bytes of the collective at nominal sizes
};

// The collectives of a group, in program order.
struct PostGroup {
  std::vector<Member> members;
  double bytes = 0;
};

class Coalescer {
 public:
  Coalescer(Program program, const PassOptions& options)
      : program_(std::move(program)),
        items_(bufferAccessesOf(program_)),
        sizes_(program_, options) {}

  // Visits the instructions in order. A group is open while all its posts can move down to the
  // current instruction. Further collectives can join only an open group.
  Program run() {
    if (program_.streams() > 1 || !isUnordered(program_, items_)) return std::move(program_);
    findPosts();
    for (size_t i = 0; i < program_.body.size(); ++i) {
      const std::optional<Member> member = memberAt(i);
      std::erase_if(open_, [&](const PostGroup& group) {
        if (!isBlocked(group, i)) return false;
        close(group);
        return true;
      });
      if (member) join(*member);
    }
    for (const PostGroup& group : open_) close(group);
    return joined_.empty() ? std::move(program_) : rewritten();
  }

 private:
  const Instruction& at(size_t i) const { return program_.body[i]; }
  const Communicate& post(const Member& member) const {
    return std::get<Communicate>(at(member.post).op);
  }

  // Records the posts and waits of each token. Ignores the instructions Send and Recv, because only
  // collectives are joined.
  void findPosts() {
    for (size_t i = 0; i < program_.body.size(); ++i) {
      // No other instruction waits for a token.
      if (const auto* x = std::get_if<Wait>(&at(i).op)) waits_[x->token].push_back(i);
      const auto* x = std::get_if<Communicate>(&at(i).op);
      if (x == nullptr) continue;
      posts_[x->token].push_back(i);
      for (const ItemAccess& access : items_.items[i].accesses)
        ++sharing_[{x->kind, access.whole()}];
    }
  }

  // Returns whether collective `i` shares a buffer with a second collective of the same kind: both
  // read the buffer, or both write it. Such collectives are pieces of one collective that was split
  // on purpose.
  bool isPiece(size_t i, CollectiveKind kind) const {
    const auto& accesses = items_.items[i].accesses;
    return std::any_of(accesses.begin(), accesses.end(), [&](const ItemAccess& access) {
      return sharing_.at({kind, access.whole()}) > 1;
    });
  }

  // Returns collective `i` if it may be joined. The collective must be small. Its token must have
  // exactly one post and exactly one wait. The wait must come after the post, and the same ranks
  // must execute both.
  std::optional<Member> memberAt(size_t i) {
    const auto* x = std::get_if<Communicate>(&at(i).op);
    if (x == nullptr || !mayGroup(x->kind) || isPiece(i, x->kind)) return std::nullopt;
    const std::vector<size_t>& waits = waits_[x->token];
    if (posts_[x->token].size() != 1 || waits.size() != 1 || waits.front() < i ||
        at(waits.front()).on != at(i).on) {
      return std::nullopt;
    }
    double bytes = 0;
    for (const auto& [in, out] : x->pairs()) bytes += std::max(bytesOf(in), bytesOf(out));
    if (bytes > static_cast<double>(kCostConstants.joined_bytes)) return std::nullopt;
    return Member{i, waits.front(), bytes};
  }

  double bytesOf(SlotId id) const { return sizes_.bytes(program_, program_.slots[id]); }

  // Returns whether the posts of the group cannot move down past instruction `i`. The waits of the
  // group do not block it, because they are removed.
  bool isBlocked(const PostGroup& group, size_t i) const {
    return std::any_of(group.members.begin(), group.members.end(), [&](const Member& member) {
      if (member.wait == i) return false;
      return items_.conflict(items_.items[member.post], items_.items[i]) ||
             redefines(at(i), post(member));
    });
  }

  static bool redefines(const Instruction& x, const Communicate& post) {
    bool found = false;
    forEachSlotInside(x, [&](SlotId slot, FieldRole role) {
      for (const auto& [in, out] : post.pairs()) {
        found = found || (role.defines && (slot == in || slot == out));
      }
    });
    return found;
  }

  bool fits(const PostGroup& group, const Member& member) const {
    const Communicate& first = post(group.members.front());
    const Communicate& mine = post(member);
    if (first.kind != mine.kind || first.team != mine.team || first.reduce != mine.reduce ||
        first.root != mine.root || first.carrier != mine.carrier ||
        at(group.members.front().post).on != at(member.post).on ||
        group.bytes + member.bytes > static_cast<double>(kCostConstants.group_bytes)) {
      return false;
    }
    return group.members.size() < kCostConstants.group_posts;
  }

  void join(const Member& member) {
    const auto found = std::find_if(open_.begin(), open_.end(),
                                    [&](const PostGroup& group) { return fits(group, member); });
    PostGroup& group = found == open_.end() ? open_.emplace_back() : *found;
    group.members.push_back(member);
    group.bytes += member.bytes;
  }

  void close(const PostGroup& group) {
    if (group.members.size() < 2) return;
    for (const Member& member : group.members) {
      gone_.insert(member.post);
      gone_.insert(member.wait);
    }
    joined_.emplace(group.members.back().post, group);
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
        const size_t wait = found->second.members.front().wait;
        body.push_back(postOf(found->second));
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
  const NominalSizes sizes_;
  std::map<TokenId, std::vector<size_t>> posts_, waits_;  // indices into the body
  // (kind of collective, read or write of a buffer) -> number of such accesses in the program.
  std::map<std::pair<CollectiveKind, ItemAccess>, int> sharing_;
  std::vector<PostGroup> open_;
  std::map<size_t, PostGroup> joined_;  // by the index of the last post
  std::set<size_t> gone_;               // posts and waits that a group replaces
};

}  // namespace

Program coalesceCollectives(Program program, const PassOptions& options) {
  return Coalescer(std::move(program), options).run();
}

}  // namespace heddle::host
