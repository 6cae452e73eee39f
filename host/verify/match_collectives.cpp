#include "host/verify/match_collectives.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "comm/operation.h"
#include "host/program/teams.h"
#include "host/text/program_text.h"
#include "host/verify/collectives_fit.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

using comm::CollectiveKind;

// The largest number of posts that are stored for all ranks together. Their indices take 512 MiB of
// memory.
constexpr size_t kMostPosts = size_t{1} << 27;

int64_t postedElements(const View& view) {
  int64_t count = 1;
  for (int64_t size : view.desc.alloc) count *= size;
  return count;
}

// Returns comm::Operation::count of a collective. The result for an all-to-all-v is 0, because only
// the run knows its counts.
int64_t postedCount(CollectiveKind kind, const View& in, const View& out, size_t team_size) {
  if (kind == CollectiveKind::AllToAllV) return 0;
  if (kind == CollectiveKind::AllToAll) return postedElements(in) / static_cast<int64_t>(team_size);
  const bool whole_in = kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::Scatter;
  return postedElements(whole_in || !in.buffer.valid() ? out : in);
}

}  // namespace

bool CollectiveMatcher::Post::operator<(const Post& other) const {
  const auto key = [](const Post& x) {
    return std::tuple(x.index, x.operation.kind, x.operation.count, x.operation.root,
                      x.operation.peer, x.slots.in, x.slots.out);
  };
  return key(*this) < key(other);
}

CollectiveMatcher::CollectiveMatcher(const Program& program, int64_t ranks)
    : program_(program), ranks_(ranks), meshes_(program.meshes) {
  for (DeviceMesh& mesh : meshes_) concretizeMesh(mesh, ranks);
}

void CollectiveMatcher::add(const Unrolled& unrolled) {
  DecidedSteps decided;
  for (size_t i = 0; i < unrolled.steps.size(); ++i) {
    const UnrolledStep& step = unrolled.steps[i];
    if (step.jump >= 0) decided.jump(static_cast<size_t>(step.jump));
    if (step.instruction == nullptr) continue;
    decided_ = decided.has(i);
    const Op& op = step.instruction->op;
    const Team* team = teamOf(op);
    if (team == nullptr) continue;
    // Only Communicate, Send and Recv have a team.
    if (const auto* x = std::get_if<Communicate>(&op)) {
      collective(unrolled, step, *x);
      continue;
    }
    // A Send or Recv has one view: Send reads it, Recv writes it.
    const bool sends = !step.inputs.empty();
    const View& view = sends ? step.inputs.front() : step.outputs.at(0);
    comm::Operation operation;
    operation.kind = sends ? CollectiveKind::Send : CollectiveKind::Recv;
    operation.dtype = view.desc.dtype;
    operation.count = postedElements(view);
    operation.peer = static_cast<int>(step.peer);
    transfer(teamIndex(unrolled, *team), static_cast<int>(unrolled.rank), step, operation);
  }
}

// Computes the members of a team once, for the first of its ranks that add() processes. Otherwise
// every rank of a large team would compute the list of all its ranks again.
size_t CollectiveMatcher::teamIndex(const Unrolled& unrolled, const Team& team) {
  const auto is_it = [&](const KnownTeam& known) { return known.team == team; };
  auto known = std::find_if(known_teams_.begin(), known_teams_.end(), is_it);
  if (known == known_teams_.end()) known = known_teams_.insert(known, {team, {}});
  const int rank = static_cast<int>(unrolled.rank);
  const auto stored = known->index_of.find(rank);
  if (stored != known->index_of.end()) return stored->second;
  std::vector<int> members = teamMembers(team, meshes_, unrolled.rank, ranks_);
  const auto [found, is_new] = team_index_.emplace(members, teams_.size());
  for (const int member : members) known->index_of.emplace(member, found->second);
  if (is_new) teams_.push_back(std::move(members));
  return found->second;
}

CollectiveMatcher::Channel& CollectiveMatcher::channelOf(const ChannelKey& key) {
  const auto [found, is_new] = channel_index_.emplace(key, channels_.size());
  if (!is_new) return channels_[found->second];
  Channel& channel = channels_.emplace_back(Channel{key, {}});
  const std::vector<int> ends{key.sender, key.receiver};
  for (int rank : key.isTransfer() ? ends : teams_[key.team]) {
    channel.sequences.emplace_back().rank = rank;
  }
  return channel;
}

void CollectiveMatcher::post(Sequence& sequence, const Post& what) {
  if (!sequence.extend(decided_ && stored_ < kMostPosts)) return;
  ++stored_;
  const auto [found, is_new] = post_index_.emplace(what, static_cast<uint32_t>(posts_.size()));
  if (is_new) posts_.push_back(what);
  sequence.posts.push_back(found->second);
}

void CollectiveMatcher::collective(const Unrolled& unrolled, const UnrolledStep& step,
                                   const Communicate& x) {
  const size_t team = teamIndex(unrolled, x.team);
  const std::vector<int>& members = teams_[team];
  const auto me = static_cast<int>(unrolled.rank);
  if (x.kind == CollectiveKind::Send || step.root_apart) {
    return rootTransfers(team, me, step, x);
  }
  const auto position = std::find(members.begin(), members.end(), me) - members.begin();
  Sequence& sequence = channelOf({team, x.carrier}).sequences[position];
  comm::Operation operation;
  operation.kind = x.kind;
  operation.reduce = x.reduce.value_or(ReduceOp::Sum);
  operation.root = static_cast<int>(step.peer);
  const std::vector<Communicate::Pair> pairs = x.pairs();
  for (size_t i = 0; i < pairs.size(); ++i) {
    operation.dtype = program_.slots[pairs[i].in].tensor.dtype;
    operation.count = postedCount(x.kind, step.inputs.at(i), step.outputs.at(i), members.size());
    post(sequence, {step.instruction, step.index, operation, pairs[i]});
  }
  if (pairs.empty()) {
    post(sequence, {step.instruction, step.index, operation, {kNoSlot, kNoSlot}});
  }
}

// Transports execute two kinds of collectives as transfers between the root and each other rank:
// `send`, and a gather or scatter whose root has no part. Adds these transfers. Each of them moves
// the part of the other rank.
void CollectiveMatcher::rootTransfers(size_t team, int me, const UnrolledStep& step,
                                      const Communicate& x) {
  const std::vector<int>& members = teams_[team];
  const auto root = static_cast<int>(step.peer);
  const bool is_root = members[root] == me;
  const bool sends = is_root != (x.kind == CollectiveKind::Gather);
  const View& view = sends ? step.inputs.at(0) : step.outputs.at(0);
  comm::Operation operation;
  operation.kind = sends ? CollectiveKind::Send : CollectiveKind::Recv;
  operation.dtype = view.desc.dtype;
  operation.count = postedElements(view) / (is_root ? static_cast<int64_t>(members.size()) - 1 : 1);
  for (int peer = 0; peer < static_cast<int>(members.size()); ++peer) {
    if (is_root ? peer == root : peer != root) continue;
    operation.peer = peer;
    transfer(team, me, step, operation);
  }
}

void CollectiveMatcher::transfer(size_t team, int me, const UnrolledStep& step,
                                 const comm::Operation& operation) {
  const bool sends = operation.kind == CollectiveKind::Send;
  const int peer = teams_[team].at(operation.peer);
  Channel& channel = channelOf({team, {}, sends ? me : peer, sends ? peer : me});
  post(channel.sequences[sends ? 0 : 1],
       {step.instruction, step.index, operation, {kNoSlot, kNoSlot}});
}

// Returns whether the ranks post two collectives in different orders, although the collectives have
// the same kind, dtype and count. `in_a` and `in_b` are the posts at one position of the sequences
// `a` and `b`. These two posts may have different slots without an error. The order is wrong only
// if `a` also contains the slots of `in_b`, and `b` the slots of `in_a`.
bool CollectiveMatcher::isCrossed(const Sequence& a, const Sequence& b, const Post& in_a,
                                  const Post& in_b) const {
  if (in_a.slots.in == in_b.slots.in || in_a.slots.out == in_b.slots.out) return false;
  const auto has = [&](const Sequence& sequence, const Communicate::Pair& slots) {
    const std::set<uint32_t> all(sequence.posts.begin(), sequence.posts.end());
    return std::any_of(all.begin(), all.end(),
                       [&](uint32_t index) { return posts_[index].slots == slots; });
  };
  return has(a, in_b.slots) && has(b, in_a.slots);
}

std::optional<CollectiveMatcher::Mismatch> CollectiveMatcher::compare(const Channel& channel,
                                                                      size_t a, size_t b) const {
  const Sequence& first = channel.sequences[a];
  const Sequence& second = channel.sequences[b];
  std::set<std::pair<uint32_t, uint32_t>> matched;  // a cache, because loops repeat pairs of posts
  const auto at = firstMismatch(first, second, [&](uint32_t mine, uint32_t theirs) {
    if (mine == theirs || matched.count({mine, theirs}) > 0) return true;
    const Post& x = posts_[mine];
    const Post& y = posts_[theirs];
    if (!collectivesFit(x.operation, y.operation)) return false;
    if (!channel.key.isTransfer() && isCrossed(first, second, x, y)) return false;
    matched.emplace(mine, theirs);
    return true;
  });
  if (!at) return std::nullopt;
  return *at < first.total ? Mismatch{*at, a, b} : Mismatch{*at, b, a};
}

void CollectiveMatcher::check() const {
  for (const Channel& channel : channels_) {
    // Compares each sequence with the longest sequence of the channel. For n ranks, these are n - 1
    // comparisons.
    size_t longest = 0;
    for (size_t i = 1; i < channel.sequences.size(); ++i) {
      if (channel.sequences[i].total > channel.sequences[longest].total) longest = i;
    }
    std::optional<Mismatch> earliest;
    for (size_t i = 0; i < channel.sequences.size(); ++i) {
      if (i == longest) continue;
      const auto found = compare(channel, std::min(i, longest), std::max(i, longest));
      if (found && (!earliest || found->at < earliest->at)) earliest = found;
    }
    if (earliest) refuse(channel, *earliest);
  }
}

std::string CollectiveMatcher::text(const Sequence& sequence, size_t at) const {
  const Post& post = posts_[sequence.posts[at]];
  return fmt::format("rank {} posts {}, instruction {} `{}`", sequence.rank,
                     postText(post.operation), post.index,
                     printInstruction(program_, *post.instruction));
}

void CollectiveMatcher::refuse(const Channel& channel, const Mismatch& mismatch) const {
  const Sequence& a = channel.sequences[mismatch.a];
  const Sequence& b = channel.sequences[mismatch.b];
  const size_t at = mismatch.at;
  const std::string job = fmt::format(" (in a job of {} rank(s))", ranks_);
  const std::string of_a =
      fmt::format("team {}: {}", comm::listOf(teams_[channel.key.team]), text(a, at));
  const bool b_ends = at >= b.total;
  if (b_ends && channel.key.isTransfer()) {
    userError("{}, which rank {} never {}{}", of_a, b.rank, mismatch.a == 0 ? "receives" : "sends",
              job);
  }
  if (b_ends) userError("{}, where rank {} posts nothing more{}", of_a, b.rank, job);
  const bool crossed = collectivesFit(posts_[a.posts[at]].operation, posts_[b.posts[at]].operation);
  userError("{}, where {}{}{}", of_a, text(b, at),
            crossed ? ": the same collectives in another order" : "", job);
}

}  // namespace heddle::host
