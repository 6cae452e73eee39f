#include "host/job/communicators.h"

#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <chrono>
#include <numeric>
#include <set>
#include <sstream>

#include "host/device/device.h"
#include "host/program/teams.h"
#include "host/program/visit.h"
#include "host/text/program_text.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

comm::Carrier carrierOf(const Op& op) {
  const auto* communicate = std::get_if<Communicate>(&op);  // a Send or Recv has no carrier
  return communicate == nullptr ? comm::Carrier{} : communicate->carrier;
}

std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string lineAt(const std::vector<std::string>& lines, size_t i) {
  return i < lines.size() ? lines[i] : std::string("<end of program>");
}

[[noreturn]] void throwDifference(const std::vector<std::string>& texts) {
  size_t other = 1;
  while (other + 1 < texts.size() && texts[other] == texts[0]) ++other;
  const std::vector<std::string> a = linesOf(texts[0]);
  const std::vector<std::string> b = linesOf(texts[other]);
  size_t i = 0;
  while (i < std::max(a.size(), b.size()) && lineAt(a, i) == lineAt(b, i)) ++i;
  userError(
      "the ranks run different programs; the first difference is in line {}:\n"
      "  rank 0: {}\n  rank {}: {}",
      i + 1, lineAt(a, i), other, lineAt(b, i));
}

}  // namespace

// World::split() is collective over the job. Every rank therefore computes the teams of all ranks
// and takes part in each split, even if the split creates no communicator for this rank.
void Communicators::add(const Program& program, comm::World& world) {
  const comm::World::Task task(&world, comm::RankTask::CreatingCommunicators);
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::pair<Team, comm::Carrier>> seen;
  forEachInstruction(program.body, [&](const Instruction& instruction, InstructionIndex) {
    const Team* team = teamOf(instruction.op);
    const comm::Carrier carrier = carrierOf(instruction.op);
    if (team == nullptr) return;
    const std::pair wanted(*team, carrier);
    if (std::find(seen.begin(), seen.end(), wanted) != seen.end()) return;
    seen.push_back(wanted);
    std::set<Key> added;
    for (int rank = 0; rank < world.size(); ++rank) {
      std::vector<int> members = teamMembers(*team, program.meshes, rank, world.size());
      Key key(std::move(members), carrier);
      if (!key.first.empty() && !split_teams_.contains(key)) added.insert(std::move(key));
    }
    if (added.empty()) return;
    std::vector<int> mine = teamMembers(*team, program.meshes, world.rank(), world.size());
    if (!added.contains(Key(mine, carrier))) mine.clear();
    split_teams_.merge(added);
    std::unique_ptr<comm::Communicator> created = world.split(mine, carrier);
    if (created) communicators_.emplace(Key(std::move(mine), carrier), std::move(created));
  });
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

comm::Communicator& Communicators::of(const std::vector<int>& members,
                                      const comm::Carrier& carrier) const {
  auto found = communicators_.find(Key(members, carrier));
  HEDDLE_CHECK(found != communicators_.end(), "no communicator for a team of {} ranks",
               members.size());
  return *found->second;
}

void checkAgreement(const Program& program, comm::World& world) {
  if (world.size() == 1) return;
  const comm::World::Task task(&world, comm::RankTask::ComparingPrograms);
  // The ranks exchange digests of their programs. If the digests differ, the ranks also exchange
  // the texts of their programs, for the error message.
  const std::string text = print(program);
  const std::string digest =
      fmt::format("{}:{:x}", text.size(), boost::hash_range(text.begin(), text.end()));
  const std::vector<std::string> digests = world.exchange(digest);
  bool same = true;
  for (const std::string& one : digests) same = same && one == digest;
  if (same) return;
  throwDifference(world.exchange(text));
}

namespace {

bool hasKernels(const Program& program) {
  return !program.kernels.empty() ||
         std::any_of(program.callees.begin(), program.callees.end(), hasKernels);
}

// Returns "" if the device has a compiler. Otherwise returns the reason why it has none, which is
// never an empty text.
std::string whyNoCompilerOf(const Device& device) {
  try {
    return device.compiler() != nullptr ? "" : device.whyNoCompiler() + " ";
  } catch (const UserError& error) {
    return error.what();
  }
}

}  // namespace

void checkCompilers(const Program& program, const Device& device, comm::World& world) {
  if (world.size() == 1 || !hasKernels(program)) return;
  const std::vector<std::string> reasons = world.exchange(whyNoCompilerOf(device));
  const auto compiles = [](const std::string& reason) { return reason.empty(); };
  const auto with = std::find_if(reasons.begin(), reasons.end(), compiles);
  const auto without = std::find_if_not(reasons.begin(), reasons.end(), compiles);
  if (with == reasons.end() || without == reasons.end()) return;
  userError(
      "rank {} cannot compile kernels, but rank {} can, and would wait for the slow reference "
      "evaluator of rank {}; on rank {}: {}",
      without - reasons.begin(), with - reasons.begin(), without - reasons.begin(),
      without - reasons.begin(), *without);
}

}  // namespace heddle::host
