#include "host/verify/verify.h"

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <set>

#include "host/program/visit.h"
#include "host/unroll/scope.h"
#include "host/verify/match_collectives.h"
#include "host/verify/verify_structure.h"
#include "ir/base/error.h"

namespace heddle::host {
namespace {

// Larger jobs differ in nothing that races could depend on but the number of ranks.
constexpr int64_t kMaxJob = 64;
// Of which the meshes of a program may tell.
constexpr int64_t kMaxMesh = 1024;
constexpr size_t kMaxJobs = 3;

// The values tried for symbols without a default, until the views of the program exist: 4 first.
constexpr int64_t kTrialSizes[] = {4, 8, 64, 12, 2, 1};

std::vector<std::string> freeSymbols(const Program& program) {
  std::vector<std::string> found;
  for (SlotId id : program.inputs) {
    for (const Size& size : program.slots[static_cast<size_t>(id)].tensor.sizes()) {
      size.collectSymbols(found);
    }
  }
  for (const SizeGuard& guard : program.guards) {
    guard.a.collectSymbols(found);
    guard.b.collectSymbols(found);
  }
  std::erase_if(found, [&](const std::string& symbol) {
    if (symbol == "rank" || symbol == "ranks" || symbol.starts_with("@")) return true;
    return std::any_of(program.size_defaults.begin(), program.size_defaults.end(),
                       [&](const auto& entry) { return entry.first == symbol; });
  });
  return found;
}

// Guards of the form `symbol == expression` decide the symbol.
void solveGuards(const Program& program, SizeBindings& sizes, std::set<std::string> free) {
  const auto solve = [&](const Size& symbol, const Size& value) {
    if (symbol.kind() != Size::Kind::Symbol || free.erase(symbol.symbolName()) == 0) return;
    try {
      sizes[symbol.symbolName()] = value.evaluate(lookupIn(sizes));
    } catch (const UserError&) {
      // It depends on the job: the guard itself is checked by the unrolled program.
    }
  };
  for (const SizeGuard& guard : program.guards) {
    solve(guard.a, guard.b);
    solve(guard.b, guard.a);
  }
}

SizeBindings trialSizes(const Program& program, int64_t value) {
  SizeBindings sizes;
  for (const auto& [symbol, size] : program.size_defaults) sizes[symbol] = size;
  const std::vector<std::string> free = freeSymbols(program);
  for (const std::string& symbol : free) sizes[symbol] = value;
  solveGuards(program, sizes, {free.begin(), free.end()});
  return sizes;
}

// As the defaults of the symbols.
void giveDefaults(Program& program, const SizeBindings& sizes) {
  std::map<std::string, int64_t> defaults(program.size_defaults.begin(),
                                          program.size_defaults.end());
  for (const auto& [symbol, value] : sizes) defaults[symbol] = value;
  program.size_defaults.assign(defaults.begin(), defaults.end());
}

// The smallest job that has all ranks of the meshes as far as they tell.
int64_t leastJobOf(const Meshes& meshes) {
  int64_t least = 1;
  for (const DeviceMesh& mesh : meshes) {
    least = std::max(least, knownDevices(mesh).value_or(1));
    for (int64_t rank : mesh.ranks) least = std::max(least, rank + 1);
  }
  return least <= kMaxMesh ? least : 1;
}

// The smallest jobs in which the meshes and the constant peers of the program fit: three when it
// speaks of the job's size, else one.
std::vector<int64_t> jobsFor(const Program& program) {
  int64_t least = 1;
  bool depends = false;
  for (const DeviceMesh& mesh : program.meshes) depends = depends || mesh.sizeIsFromJob();
  const auto peer = [&](const Size& size, const Team& team) {
    const bool is_job =
        !team.mesh.valid() || (team.axes.empty() && program.meshes[team.mesh].sizeIsFromJob());
    if (is_job && size.isConstant()) least = std::max(least, size.constant() + 1);
  };
  forEachInstruction(program.body, [&](const Instruction& x, InstructionIndex) {
    std::vector<std::string> symbols;
    for (const Size& size : sizesOf(x.op)) size.collectSymbols(symbols);
    const auto ofJob = [](const std::string& s) { return s == "rank" || s == "ranks"; };
    depends = depends || std::any_of(symbols.begin(), symbols.end(), ofJob);
    const Team* team = teamOf(x.op);
    if (team == nullptr) return;
    // The sizes of a post are ranks within its team: a root or the other end.
    for (const Size& size : sizesOf(x.op)) peer(size, *team);
    // A Send or Recv depends on the size of the job only by the ranks that it names.
    depends |= std::holds_alternative<Communicate>(x.op) && !team->mesh.valid();
  });
  std::vector<int64_t> jobs;
  std::exception_ptr why;
  const int64_t of_meshes = leastJobOf(program.meshes);
  const int64_t most = of_meshes - 1 + kMaxJob;
  for (int64_t job = std::max(least, of_meshes);
       job <= most && jobs.size() < (depends ? kMaxJobs : 1); ++job) {
    try {
      Scope(program.meshes, {}, 0, job);
      jobs.push_back(job);
    } catch (const UserError&) {
      why = std::current_exception();
    }
  }
  if (jobs.empty() && why) std::rethrow_exception(why);
  HEDDLE_USER_CHECK(!jobs.empty(), "program {} names rank {}, beyond the {} that are checked",
                    program.name, least - 1, most);
  return jobs;
}

// false with the reason in `why`: a view does not exist with these sizes. Races, and ranks that
// post what does not fit, are always errors.
bool traceJobs(const Program& program, const SizeBindings& sizes, const std::vector<int64_t>& jobs,
               BuffersAreFreed freed, std::exception_ptr& why) {
  for (int64_t job : jobs) {
    std::optional<CollectiveMatcher> posts;
    for (int64_t rank = 0; rank < job; ++rank) {
      Unrolled unrolled;
      try {
        unrolled = unroll(program, {sizes, {}, rank, job});
      } catch (const UserError&) {
        if (!why) why = std::current_exception();
        return false;
      }
      if (rank < kMaxJob) checkRaces(program, unrolled, freed);
      if (!posts) posts.emplace(program, job);
      posts->add(unrolled);
    }
    posts->check();
  }
  return true;
}

bool tryJobs(const Program& program, const std::vector<int64_t>& jobs, BuffersAreFreed freed,
             std::exception_ptr& why) {
  const bool one_trial = freeSymbols(program).empty();
  std::vector<int64_t> trials(std::begin(kTrialSizes), std::end(kTrialSizes));
  if (jobs.size() == 1) trials.insert(trials.end(), {jobs[0], 8 * jobs[0]});
  for (int64_t value : trials) {
    if (traceJobs(program, trialSizes(program, value), jobs, freed, why)) return true;
    if (one_trial) break;
  }
  return false;
}

void verifyJobs(const Program& whole, const ActualJob& actual, BuffersAreFreed freed) {
  verifyStructure(whole);
  Program program = inlineCalls(whole);
  std::exception_ptr why;
  if (actual.sizes) giveDefaults(program, *actual.sizes);
  if (actual.ranks > 0 && tryJobs(program, {actual.ranks}, freed, why)) return;
  const bool may_fit = actual.ranks == 0 || !actual.sizes;
  if (may_fit && tryJobs(program, jobsFor(program), freed, why)) return;
  std::rethrow_exception(why);
}

}  // namespace

void verify(const Program& program, const ActualJob& actual) {
  verifyJobs(program, actual, BuffersAreFreed::Yes);
}

void verifyOrder(const Program& program) { verifyJobs(program, {}, BuffersAreFreed::No); }

}  // namespace heddle::host
