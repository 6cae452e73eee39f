#include "tools/tune/tune.h"

#include <algorithm>
#include <set>

#include "codegen/bind/time_model.h"
#include "host/device/kernel_choices.h"
#include "ir/base/check.h"
#include "tools/tune/kernel_runs.h"

namespace heddle::tools {
namespace {

std::unique_ptr<CandidateTimer> makeRuns(const host::LaunchedKernel& kernel,
                                         const std::vector<codegen::Candidate>& all,
                                         host::Device& device, codegen::ImageCache& images,
                                         uint64_t seed, std::vector<TunedKernel::Row>& rows) {
  auto runs = std::make_unique<KernelRuns>(kernel, all, device, images, seed);
  const std::vector<std::string> faults = runs->faults();
  for (size_t i = 0; i < all.size(); ++i) {
    rows[i].fault = faults[i];
    if (const auto used = faults[i].empty() ? runs->resources(i) : std::nullopt) {
      rows[i].registers = used->registers;
    }
  }
  return runs;
}

// Marks the stored choice as chosen. Returns false if the kernel has no such candidate.
bool takeStored(const std::vector<codegen::Candidate>& all,
                const std::optional<std::string>& stored, TunedKernel& kernel) {
  for (size_t i = 0; stored && i < all.size(); ++i) {
    if (kernel.rows[i].parameters != *stored) continue;
    kernel.chosen = i;
    kernel.origin = TunedKernel::Origin::Stored;
    return true;
  }
  return false;
}

void addRows(const host::LaunchedKernel& launched, const std::vector<codegen::Candidate>& all,
             const codegen::Machine& machine, TunedKernel& kernel) {
  const std::vector<double> predicted =
      codegen::predictedSeconds(launched.kernel.segment, launched.in, launched.out,
                                launched.alignments, launched.run, all, machine);
  for (size_t i = 0; i < all.size(); ++i) {
    TunedKernel::Row& row = kernel.rows.emplace_back();
    row.parameters = codegen::print(all[i].choice);
    row.predicted = predicted[i];
  }
}

// Returns whether the kernel must be measured. If not, sets its origin and its choice.
bool mustMeasure(const std::vector<codegen::Candidate>& all, const TuneOptions& options,
                 TunedKernel& kernel) {
  if (all.size() < 2) {
    kernel.origin = TunedKernel::Origin::Single;
    return false;
  }
  if (options.measured == Measured::All) return true;
  if (options.find && takeStored(all, options.find(kernel.key), kernel)) return false;
  if (options.measured == Measured::Unknown || areDifferent(kernel.rows)) return true;
  kernel.origin = TunedKernel::Origin::Alike;
  return false;
}

void measure(CandidateTimer& timer, TunedKernel& kernel) {
  std::vector<size_t> usable;
  for (size_t i = 0; i < kernel.rows.size(); ++i) {
    if (kernel.rows[i].fault.empty()) usable.push_back(i);
  }
  HEDDLE_USER_CHECK(!usable.empty(), "kernel {}: no candidate can be used; the first one {}",
                    kernel.name, kernel.rows.front().fault);
  const std::vector<RaceResult> results = race(kernel.rows.size(), usable, timer);
  for (const size_t i : usable) {
    kernel.rows[i].seconds = results[i].seconds;
    kernel.rows[i].runs = results[i].runs;
  }
  kernel.chosen = winnerOf(results, usable);
}

}  // namespace

std::vector<TunedKernel> tune(const host::Program& program, const SizeBindings& sizes, int ranks,
                              host::Device& device, codegen::ImageCache& images,
                              const TuneOptions& options) {
  const auto target =
      device.kind() == host::DeviceKind::Cuda ? codegen::Target::Cuda : codegen::Target::Cpp;
  const codegen::Machine machine = codegen::machineOf(target, device.description());
  std::vector<TunedKernel> tuned;
  std::set<std::string> seen;
  const auto visit = [&](int rank, const host::LaunchedKernel& launched) {
    const std::vector<codegen::Candidate> all = launched.candidates();
    if (!launched.kernel.candidate.empty()) {
      codegen::findCandidate(all, launched.kernel.candidate, launched.kernel.name);
      return;
    }
    if (all.front().plan.stages.empty()) return;
    const std::string key = host::choiceKey(all, launched.in, launched.out, device);
    if (!seen.insert(key).second) return;
    TunedKernel& kernel = tuned.emplace_back();
    kernel.name = launched.kernel.name;
    kernel.rank = rank;
    kernel.key = key;
    addRows(launched, all, machine, kernel);
    if (!mustMeasure(all, options, kernel)) return;
    const std::unique_ptr<CandidateTimer> timer =
        options.makeTimer ? options.makeTimer(launched, all, kernel.rows)
                          : makeRuns(launched, all, device, images, options.seed, kernel.rows);
    measure(*timer, kernel);
  };
  for (int rank = 0; rank < ranks; ++rank) {
    host::forEachLaunchedKernel(
        program, sizes, rank, ranks, device.kind(), host::Launches::All,
        [&](const host::LaunchedKernel& launched) { visit(rank, launched); });
  }
  return tuned;
}

bool areDifferent(const std::vector<TunedKernel::Row>& rows) {
  constexpr double kFactor = 1.03;
  const auto [least, most] = std::minmax_element(
      rows.begin(), rows.end(), [](const TunedKernel::Row& a, const TunedKernel::Row& b) {
        return a.predicted < b.predicted;
      });
  return most->predicted > kFactor * least->predicted;
}

Choices choicesOf(const std::vector<TunedKernel>& kernels) {
  Choices choices;
  for (const TunedKernel& kernel : kernels) {
    choices[kernel.key] = kernel.rows.at(kernel.chosen).parameters;
  }
  return choices;
}

}  // namespace heddle::tools
