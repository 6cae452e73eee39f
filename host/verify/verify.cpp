#include "host/verify/verify.h"

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>

#include "host/program/visit.h"
#include "host/unroll/scope.h"
#include "host/verify/check_races.h"
#include "host/verify/match_collectives.h"
#include "host/verify/verify_structure.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

// The number of ranks of a job that are checked for races. Higher ranks rarely have races that no
// lower rank has. jobsFor() tries at most this many job sizes.
constexpr int64_t kMaxJob = 64;
// The largest job size that the meshes can determine. If the meshes need more ranks, verify()
// ignores the meshes when it chooses the size of the checked job.
constexpr int64_t kMaxMesh = 1024;
// Number of job sizes that are checked if the program depends on the number of ranks.
constexpr size_t kMaxJobs = 3;

// Values for symbols without a default. tryJobs() tries them in this order until unroll() accepts
// the program.
constexpr int64_t kTrialSizes[] = {4, 8, 64, 12, 2, 1};
// Values for scalars that decide sizes. tryJobs() combines each of them with each of the values
// above.
// kAsSizes: the scalar has the same value as the symbols.
constexpr int64_t kAsSizes = -1;
constexpr int64_t kTrialScalars[] = {kAsSizes, 1, 0};

std::vector<std::string> freeSymbols(const Program& program) {
  std::vector<std::string> found;
  std::unordered_set<std::string> seen;
  for (SlotId id : program.inputs) {
    for (const Size& size : program.slots[id].tensor.sizes()) {
      size.collectSymbols(found, seen);
    }
  }
  for (const SizeGuard& guard : program.guards) {
    guard.a.collectSymbols(found, seen);
    guard.b.collectSymbols(found, seen);
  }
  for (const std::string& symbol : scalarSymbolsOf(program)) {
    if (seen.insert(symbol).second) found.push_back(symbol);
  }
  std::unordered_set<std::string> defaults;
  for (const auto& [symbol, value] : program.size_defaults) defaults.insert(symbol);
  std::erase_if(found, [&](const std::string& symbol) {
    const bool reserved = symbol == "rank" || symbol == "ranks" || symbol.starts_with("@");
    return reserved || defaults.contains(symbol);
  });
  return found;
}

// Sets symbols by the guards of the form `symbol == expression`, each to the value of the
// expression. `free` contains the symbols that may be set.
void solveGuards(const Program& program, SizeBindings& sizes, std::set<std::string> free) {
  const auto solve = [&](const Size& symbol, const Size& value) {
    if (symbol.kind() != Size::Kind::Symbol || free.erase(symbol.symbolName()) == 0) return;
    try {
      sizes[symbol.symbolName()] = value.evaluate(lookupIn(sizes));
    } catch (const UserError&) {
      // The value cannot be computed, for example because it depends on the job. The symbol
      // therefore keeps its value. unroll() checks the guard later.
    }
  };
  for (const SizeGuard& guard : program.guards) {
    if (guard.at_most) continue;
    solve(guard.a, guard.b);
    solve(guard.b, guard.a);
  }
}

SizeBindings trialSizes(const Program& program, int64_t value, int64_t scalar) {
  SizeBindings sizes;
  for (const auto& [symbol, size] : program.size_defaults) sizes[symbol] = size;
  const std::vector<std::string> free = freeSymbols(program);
  for (const std::string& symbol : free) {
    sizes[symbol] = isScalarSymbol(symbol) && scalar != kAsSizes ? scalar : value;
  }
  for (SlotId id : program.inputs) {
    const Slot& slot = program.slots[id];
    const auto scalar_size = sizes.find(scalarSymbol(slot.name));
    const bool is_free = std::find(free.begin(), free.end(), scalarSymbol(slot.name)) != free.end();
    if (is_free && scalar_size != sizes.end() && slot.default_value) {
      scalar_size->second = toInt(*slot.default_value);
    }
  }
  solveGuards(program, sizes, {free.begin(), free.end()});
  return sizes;
}

// Sets the defaults of the program's symbols to these sizes.
void giveDefaults(Program& program, const SizeBindings& sizes) {
  std::map<std::string, int64_t> defaults(program.size_defaults.begin(),
                                          program.size_defaults.end());
  for (const auto& [symbol, value] : sizes) defaults[symbol] = value;
  program.size_defaults.assign(defaults.begin(), defaults.end());
}

// Returns the number of ranks of the smallest job that contains all known ranks of the meshes.
// Returns 1 if this number exceeds kMaxMesh.
int64_t leastJobOf(const Meshes& meshes) {
  int64_t least = 1;
  for (const DeviceMesh& mesh : meshes) {
    least = std::max(least, knownDevices(mesh).value_or(1));
    for (int64_t rank : mesh.ranks) least = std::max(least, rank + 1);
  }
  return least <= kMaxMesh ? least : 1;
}

// Returns the numbers of ranks of the smallest jobs that contain the ranks of the meshes, and the
// constant roots and peers of teams whose size follows from the job. Returns up to three jobs if
// the program depends on the number of ranks, and otherwise one job.
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
    // The size expressions of a post are ranks in its team: the root, or the peer of a Send or
    // Recv.
    for (const Size& size : sizesOf(x.op)) peer(size, *team);
    // A collective of all ranks depends on the number of ranks. A Send or Recv depends on this
    // number only if the expression of its peer does.
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
  HEDDLE_USER_CHECK(!jobs.empty(),
                    "program {} names rank {}, but only jobs of up to {} ranks are checked",
                    program.name, least - 1, most);
  return jobs;
}

// Checks the unrolled programs of these jobs. If the program cannot be unrolled for these sizes,
// for example because a view does not exist, stores the reason in `why` and returns false. The
// caller may then try other sizes. Throws UserError if there is a race, or if the posts of ranks do
// not match: no program may have these errors for any sizes.
bool checkJobs(const Program& program, const SizeBindings& sizes, const std::vector<int64_t>& jobs,
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

// Checks the jobs with the first trial sizes for which unroll() accepts the program. Returns false
// if unroll() accepts none. If there is one job, the last two trial sizes are its number of ranks
// and 8 times this number.
bool tryJobs(const Program& program, const std::vector<int64_t>& jobs, BuffersAreFreed freed,
             std::exception_ptr& why) {
  const bool one_trial = freeSymbols(program).empty();
  std::vector<int64_t> trials(std::begin(kTrialSizes), std::end(kTrialSizes));
  if (jobs.size() == 1) trials.insert(trials.end(), {jobs[0], 8 * jobs[0]});
  const bool has_scalars = !scalarSymbolsOf(program).empty();
  for (int64_t value : trials) {
    for (int64_t scalar : kTrialScalars) {
      const SizeBindings sizes = trialSizes(program, value, scalar);
      if (checkJobs(program, sizes, jobs, freed, why)) return true;
      if (one_trial || !has_scalars) break;
    }
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
