#include "tools/tune/tune.h"

#include <cmath>
#include <set>

#include "host/device/kernel_choices.h"
#include "ir/base/check.h"
#include "tools/bench/csv.h"
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
    kernel.was_known = true;
    return true;
  }
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

std::string microseconds(double seconds) {
  return std::isfinite(seconds) ? fmt::format("{:.3f}", 1e6 * seconds) : "";
}

}  // namespace

std::vector<TunedKernel> tune(const host::Program& program, const SizeBindings& sizes, int ranks,
                              host::Device& device, codegen::ImageCache& images,
                              const TuneOptions& options) {
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
    for (const codegen::Candidate& each : all) {
      kernel.rows.emplace_back().parameters = codegen::print(each.choice);
    }
    const bool may_know = !options.measures_all && options.find;
    if (all.size() < 2 || (may_know && takeStored(all, options.find(key), kernel))) return;
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

Choices choicesOf(const std::vector<TunedKernel>& kernels) {
  Choices choices;
  for (const TunedKernel& kernel : kernels) {
    choices[kernel.key] = kernel.rows.at(kernel.chosen).parameters;
  }
  return choices;
}

std::string tuneText(const std::vector<TunedKernel>& kernels) {
  std::string text;
  for (const TunedKernel& kernel : kernels) {
    text += fmt::format("kernel @{}, rank {}{}\n", kernel.name, kernel.rank,
                        kernel.was_known ? ", choice was stored" : "");
    for (size_t i = 0; i < kernel.rows.size(); ++i) {
      const TunedKernel::Row& row = kernel.rows[i];
      const std::string time =
          std::isfinite(row.seconds)
              ? fmt::format("{} us, median of {}", microseconds(row.seconds), row.runs)
              : "not measured";
      text += fmt::format("  {} {}: {}; {}{}{}\n", i == kernel.chosen ? "*" : " ", i,
                          row.parameters, row.fault.empty() ? time : row.fault,
                          row.registers ? fmt::format(", {} registers", *row.registers) : "",
                          i == kernel.chosen ? ", chosen" : "");
    }
  }
  return text;
}

std::string tuneCsv(const std::vector<TunedKernel>& kernels) {
  std::string text = csvLine({"kernel", "rank", "candidate", "parameters", "us", "runs",
                              "registers", "fault", "chosen", "key"});
  for (const TunedKernel& kernel : kernels) {
    for (size_t i = 0; i < kernel.rows.size(); ++i) {
      const TunedKernel::Row& row = kernel.rows[i];
      text += csvLine({kernel.name, fmt::format("{}", kernel.rank), fmt::format("{}", i),
                       row.parameters, microseconds(row.seconds), fmt::format("{}", row.runs),
                       row.registers ? fmt::format("{}", *row.registers) : "", row.fault,
                       i == kernel.chosen ? "1" : "0", kernel.key});
    }
  }
  return text;
}

}  // namespace heddle::tools
