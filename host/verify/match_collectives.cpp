#include "host/verify/match_collectives.h"

#include <algorithm>
#include <set>

#include "comm/operation.h"
#include "host/program/teams.h"
#include "host/text/program_text.h"
#include "host/verify/collectives_fit.h"
#include "ir/base/error.h"

namespace heddle::host {
namespace {

using comm::CollectiveKind;

// Of all ranks together: half a gigabyte.
constexpr size_t kMostPosts = size_t{1} << 27;

int64_t postedElements(const View& view) {
  int64_t count = 1;
  for (int64_t size : view.desc.alloc) count *= size;
  return count;
}

// comm::Operation::count. The lists of an all-to-all-v are known at run time.
int64_t postedCount(CollectiveKind kind, const View& in, const View& out, size_t team_size) {
  if (kind == CollectiveKind::AllToAllV) return 0;
  if (kind == CollectiveKind::AllToAll) return postedElements(in) / static_cast<int64_t>(team_size);
  const bool whole_in = kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::Scatter;
  return postedElements(whole_in || in.buffer < 0 ? out : in);
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
  mine_.clear();
  DecidedSteps decided;
  for (size_t i = 0; i < unrolled.steps.size(); ++i) {
    const UnrolledStep& step = unrolled.steps[i];
    if (step.jump >= 0) decided.jump(static_cast<size_t>(step.jump));
    if (step.instruction == nullptr) continue;
    decided_ = decided.has(i);
    const Op& op = step.instruction->op;
    if (const auto* x = std::get_if<Communicate>(&op)) collective(unrolled, step, *x);
    const auto* send = std::get_if<Send>(&op);
    const auto* recv = std::get_if<Recv>(&op);
    if (send == nullptr && recv == nullptr) continue;
    const View& view = send != nullptr ? step.inputs.at(0) : step.outputs.at(0);
    comm::Operation operation;
    operation.kind = send != nullptr ? CollectiveKind::Send : CollectiveKind::Recv;
    operation.dtype = view.desc.dtype;
    operation.count = postedElements(view);
    operation.peer = static_cast<int>(step.peer);
    transfer(teamOf(unrolled, send != nullptr ? send->team : recv->team),
             static_cast<int>(unrolled.rank), step, operation);
  }
}

size_t CollectiveMatcher::teamOf(const Unrolled& unrolled, const Team& team) {
  for (const auto& [known, id] : mine_) {
    if (known == team) return id;
  }
  std::vector<int> members = teamMembers(team, meshes_, unrolled.rank, ranks_);
  const auto [found, is_new] = team_of_.emplace(members, teams_.size());
  if (is_new) teams_.push_back(std::move(members));
  return mine_.emplace_back(team, found->second).second;
}

size_t CollectiveMatcher::channelOf(const Key& key) {
  const auto [found, is_new] = channel_of_.emplace(key, channels_.size());
  if (!is_new) return found->second;
  const auto& [team, carrier, sender, receiver] = key;
  Channel channel{team, sender >= 0, {}};
  const std::vector<int> ends{sender, receiver};
  for (int rank : channel.transfers ? ends : teams_[team])
    channel.lines.push_back({rank, {}, false});
  channels_.push_back(std::move(channel));
  return found->second;
}

void CollectiveMatcher::post(Line& line, const Post& what) {
  line.open = line.open || !decided_ || kept_ == kMostPosts;
  if (line.open) return;
  ++kept_;
  const auto [found, is_new] = known_.emplace(what, static_cast<uint32_t>(posts_.size()));
  if (is_new) posts_.push_back(what);
  line.posts.push_back(found->second);
}

void CollectiveMatcher::collective(const Unrolled& unrolled, const UnrolledStep& step,
                                   const Communicate& x) {
  const size_t team = teamOf(unrolled, x.team);
  const std::vector<int>& members = teams_[team];
  const auto me = static_cast<int>(unrolled.rank);
  if (x.kind == CollectiveKind::Send || step.root_apart) return oneWay(team, me, step, x);
  Channel& channel = channels_[channelOf({team, x.carrier, -1, -1})];
  const auto position = std::find(members.begin(), members.end(), me) - members.begin();
  Line& line = channel.lines[static_cast<size_t>(position)];
  comm::Operation operation;
  operation.kind = x.kind;
  operation.reduce = x.reduce.value_or(ReduceOp::Sum);
  operation.root = static_cast<int>(step.peer);
  const std::vector<Communicate::Pair> pairs = x.pairs();
  for (size_t i = 0; i < pairs.size(); ++i) {
    operation.dtype = program_.slots[static_cast<size_t>(pairs[i].in)].tensor.dtype;
    operation.count = postedCount(x.kind, step.inputs.at(i), step.outputs.at(i), members.size());
    post(line, {step.instruction, step.index, operation, pairs[i]});
  }
  if (pairs.empty()) post(line, {step.instruction, step.index, operation, {kNoSlot, kNoSlot}});
}

// Between the root and each of the others, one part each, as the transports have it.
void CollectiveMatcher::oneWay(size_t team, int me, const UnrolledStep& step,
                               const Communicate& x) {
  const std::vector<int>& members = teams_[team];
  const auto root = static_cast<int>(step.peer);
  const bool is_root = members[static_cast<size_t>(root)] == me;
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
  const int peer = teams_[team].at(static_cast<size_t>(operation.peer));
  Channel& channel =
      channels_[channelOf({team, comm::Carrier{}, sends ? me : peer, sends ? peer : me})];
  post(channel.lines[sends ? 0 : 1], {step.instruction, step.index, operation, {kNoSlot, kNoSlot}});
}

// Two collectives that differ in nothing but their slots may be meant so. Not where each rank has
// the other's slots at another place.
bool CollectiveMatcher::isCrossed(const Line& a, const Line& b, const Post& in_a,
                                  const Post& in_b) const {
  if (in_a.slots.in == in_b.slots.in || in_a.slots.out == in_b.slots.out) return false;
  const auto has = [&](const Line& line, const Communicate::Pair& slots) {
    const std::set<uint32_t> all(line.posts.begin(), line.posts.end());
    return std::any_of(all.begin(), all.end(),
                       [&](uint32_t id) { return posts_[id].slots == slots; });
  };
  return has(a, in_b.slots) && has(b, in_a.slots);
}

std::optional<CollectiveMatcher::Difference> CollectiveMatcher::compare(const Channel& channel,
                                                                        size_t a, size_t b) const {
  const Line& first = channel.lines[a];
  const Line& second = channel.lines[b];
  const size_t both = std::min(first.posts.size(), second.posts.size());
  std::set<std::pair<uint32_t, uint32_t>> compared;  // and found to be good
  for (size_t i = 0; i < both; ++i) {
    const uint32_t mine = first.posts[i], theirs = second.posts[i];
    if (mine == theirs || compared.count({mine, theirs}) > 0) continue;
    const Post& x = posts_[mine];
    const Post& y = posts_[theirs];
    if (!collectivesFit(x.operation, y.operation)) return Difference{i, a, b};
    if (!channel.transfers && isCrossed(first, second, x, y)) return Difference{i, a, b, true};
    compared.emplace(mine, theirs);
  }
  if (first.posts.size() > both && !second.open) return Difference{both, a, b};
  if (second.posts.size() > both && !first.open) return Difference{both, b, a};
  return std::nullopt;
}

void CollectiveMatcher::check() const {
  for (const Channel& channel : channels_) {
    // The one that is known furthest: all others are held against it.
    size_t longest = 0;
    for (size_t i = 1; i < channel.lines.size(); ++i) {
      if (channel.lines[i].posts.size() > channel.lines[longest].posts.size()) longest = i;
    }
    std::optional<Difference> least;
    for (size_t i = 0; i < channel.lines.size(); ++i) {
      if (i == longest) continue;
      const auto found = compare(channel, std::min(i, longest), std::max(i, longest));
      if (found && (!least || found->at < least->at)) least = found;
    }
    if (least) refuse(channel, *least);
  }
}

std::string CollectiveMatcher::text(const Line& line, size_t at) const {
  const Post& post = posts_[line.posts[at]];
  return fmt::format("rank {} posts {}, instruction {} `{}`", line.rank, postText(post.operation),
                     post.index, printInstruction(program_, *post.instruction));
}

void CollectiveMatcher::refuse(const Channel& channel, const Difference& difference) const {
  const Line& a = channel.lines[difference.a];
  const Line& b = channel.lines[difference.b];
  const std::string job = fmt::format(" (in a job of {} rank(s))", ranks_);
  const std::string of_a =
      fmt::format("team {}: {}", comm::listOf(teams_[channel.team]), text(a, difference.at));
  const bool is_more = difference.at >= b.posts.size();
  if (is_more && channel.transfers) {
    userError("{}, which rank {} never {}{}", of_a, b.rank,
              difference.a == 0 ? "receives" : "sends", job);
  }
  if (is_more) userError("{}, where rank {} posts nothing more{}", of_a, b.rank, job);
  userError("{}, where {}{}{}", of_a, text(b, difference.at),
            difference.crossed ? ": the same collectives in another order" : "", job);
}

}  // namespace heddle::host
