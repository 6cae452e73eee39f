#include "tools/tune/tune.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <set>
#include <utility>

#include "codegen/bind/candidate_numbers.h"
#include "codegen/bind/time_model.h"
#include "host/device/kernel_choices.h"
#include "ir/base/check.h"
#include "ir/system/usable_cpus.h"
#include "tools/tune/compile_ahead.h"
#include "tools/tune/kernel_runs.h"

namespace heddle::tools {
namespace {

// A kernel that will be measured.
struct Work {
  host::Kernel kernel;
  host::LaunchedKernel launched;  // refers to `kernel`
  std::vector<codegen::Candidate> all;
  std::vector<std::string> orders;  // reductionOrder() per candidate
  size_t index;                     // index of the kernel in Tuner::tuned_
  std::vector<size_t> allowed;      // the candidates that may be chosen, the preferred one first

  Work(const host::LaunchedKernel& of, std::vector<codegen::Candidate> candidates)
      : kernel(of.kernel),
        launched{kernel, of.target, of.in, of.out, of.alignments, of.run, of.scalars},
        all(std::move(candidates)),
        index(0) {}
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
};

std::optional<size_t> indexOf(const std::vector<TunedKernel::Row>& rows,
                              const std::string& parameters) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].parameters == parameters) return i;
  }
  return std::nullopt;
}

void choose(TunedKernel& kernel, size_t candidate, TunedKernel::Origin origin) {
  kernel.chosen = candidate;
  kernel.origin = origin;
}

class Tuner {
 public:
  Tuner(const host::Program& program, const SizeBindings& sizes, int ranks, host::Device& device,
        codegen::ImageCache& images, const TuneOptions& options)
      : device_(device),
        images_(images),
        options_(options),
        target_(device.kind() == host::DeviceKind::Cuda ? codegen::Target::Cuda
                                                        : codegen::Target::Cpp),
        machine_(codegen::machineOf(target_, device.description())) {
    for (int rank = 0; rank < ranks; ++rank) {
      host::forEachLaunchedKernel(
          program, sizes, rank, ranks, device.kind(), host::Launches::All,
          [&](const host::LaunchedKernel& launched) { visit(rank, launched); });
    }
  }

  std::vector<TunedKernel> run() {
    CompileAhead ahead(laterSources(), images_, *device_.compiler());
    for (const Work& work : works_) {
      if (options_.on_kernel) options_.on_kernel();
      measure(work, tuned_[work.index]);
    }
    return std::move(tuned_);
  }

 private:
  void visit(int rank, host::LaunchedKernel launched) {
    launched.run.clusters = device_.compiler()->supportsClusters();
    std::vector<codegen::Candidate> all = launched.candidates();
    if (!launched.kernel.candidate.empty()) {
      codegen::findCandidate(all, launched.kernel.candidate, launched.kernel.name);
      return;
    }
    if (all.front().plan.stages.empty()) return;
    std::string key = host::choiceKey(all, launched.in, launched.out, device_);
    if (!seen_.insert(key).second) return;
    TunedKernel& kernel = tuned_.emplace_back();
    kernel.name = launched.kernel.name;
    kernel.rank = rank;
    kernel.key = std::move(key);
    Work& work = works_.emplace_back(launched, std::move(all));
    work.index = tuned_.size() - 1;
    addRows(work, kernel);
    if (!mustMeasure(work, kernel)) works_.pop_back();
  }

  void addRows(Work& work, TunedKernel& kernel) const {
    const std::vector<codegen::KernelNumbers> numbers =
        codegen::candidateNumbers(work.kernel.segment, work.launched.in, work.launched.out, target_,
                                  work.launched.alignments, work.launched.run, work.all);
    const std::vector<double> predicted = codegen::predictedSeconds(work.all, numbers, machine_);
    for (size_t i = 0; i < work.all.size(); ++i) {
      TunedKernel::Row& row = kernel.rows.emplace_back();
      row.parameters = codegen::print(work.all[i].choice);
      row.predicted = predicted[i];
      work.orders.push_back(codegen::reductionOrder(numbers[i], target_));
    }
  }

  // Sets Work::allowed, and returns whether the kernel must be measured. If not, sets the origin
  // and the choice of the kernel.
  bool mustMeasure(Work& work, TunedKernel& kernel) const {
    work.allowed.resize(work.all.size());
    std::iota(work.allowed.begin(), work.allowed.end(), size_t{0});
    if (!options_.agreed.empty() && !allowAgreed(work, kernel)) return false;
    if (work.all.size() < 2) {
      choose(kernel, 0, TunedKernel::Origin::Single);
      return false;
    }
    if (options_.measured == Measured::All) return true;
    const std::optional<std::string> stored =
        options_.find ? options_.find(kernel.key) : std::nullopt;
    const std::optional<size_t> known = stored ? indexOf(kernel.rows, *stored) : std::nullopt;
    if (known && std::ranges::find(work.allowed, *known) != work.allowed.end()) {
      choose(kernel, *known, TunedKernel::Origin::Stored);
      return false;
    }
    std::vector<TunedKernel::Row> rows;
    for (const size_t i : work.allowed) rows.push_back(kernel.rows[i]);
    if (options_.measured == Measured::Unknown || areDifferent(rows)) return true;
    choose(kernel, work.allowed.front(), TunedKernel::Origin::Alike);
    return false;
  }

  // Allows the agreed candidate (TuneOptions::agreed) and all candidates that give the same bits.
  // If the other rank has an equal device (the same key), or if only the agreed candidate is
  // allowed, chooses the agreed candidate and returns false. Otherwise returns true.
  bool allowAgreed(Work& work, TunedKernel& kernel) const {
    HEDDLE_CHECK(work.index < options_.agreed.size(), "kernel {} is new to the other rank",
                 kernel.name);
    const KeyedChoice& agreed = options_.agreed[work.index];
    const std::optional<size_t> same = indexOf(kernel.rows, agreed.parameters);
    HEDDLE_USER_CHECK(same.has_value(),
                      "kernel {}: another rank has chosen the candidate '{}', which the device of "
                      "this rank ({}) does not have",
                      kernel.name, agreed.parameters, device_.description());
    work.allowed = {*same};
    for (size_t i = 0; i < work.orders.size(); ++i) {
      if (i != *same && work.orders[i] == work.orders[*same]) work.allowed.push_back(i);
    }
    if (agreed.key != kernel.key && work.allowed.size() > 1) return true;
    choose(kernel, *same, TunedKernel::Origin::Agreed);
    return false;
  }

  // Returns the sources that CompileAhead compiles: the sources of all kernels except the first
  // one, which measure() compiles without delay. Returns none if TuneOptions::compiles_ahead is
  // false, or if compilers would take processors from a CPU device.
  std::vector<CompileAhead::Sources> laterSources() const {
    const bool has_idle = target_ == codegen::Target::Cuda || usableCpus() > machine_.processors;
    std::vector<CompileAhead::Sources> kernels;
    for (size_t i = 1; i < works_.size() && options_.compiles_ahead.value_or(has_idle); ++i) {
      CompileAhead::Sources& sources = kernels.emplace_back();
      for (const codegen::Candidate& each : works_[i].all) sources.push_back(&each.plan.source);
    }
    return kernels;
  }

  std::unique_ptr<CandidateTimer> makeTimer(const Work& work, TunedKernel& kernel) const {
    if (options_.makeTimer) return options_.makeTimer(work.launched, work.all, kernel.rows);
    auto runs = std::make_unique<KernelRuns>(work.launched, work.all, work.orders, device_, images_,
                                             options_.seed);
    const std::vector<std::string> faults = runs->faults();
    for (size_t i = 0; i < work.all.size(); ++i) {
      TunedKernel::Row& row = kernel.rows[i];
      row.fault = faults[i];
      if (const auto used = faults[i].empty() ? runs->resources(i) : std::nullopt) {
        row.registers = used->registers;
        row.local_bytes = used->local_bytes;
      }
    }
    return runs;
  }

  void measure(const Work& work, TunedKernel& kernel) const {
    const std::unique_ptr<CandidateTimer> timer = makeTimer(work, kernel);
    dropSpilled(kernel.rows);
    std::vector<size_t> usable;
    for (const size_t i : work.allowed) {
      if (kernel.rows[i].fault.empty()) usable.push_back(i);
    }
    HEDDLE_USER_CHECK(!usable.empty(), "kernel {}: no candidate can be used; the first one {}",
                      kernel.name, kernel.rows[work.allowed.front()].fault);
    const std::vector<CandidateResult> results =
        measureCandidates(kernel.rows.size(), usable, *timer);
    for (const size_t i : usable) {
      kernel.rows[i].seconds = results[i].seconds;
      kernel.rows[i].runs = results[i].runs;
    }
    kernel.chosen = winnerOf(results, usable);
  }

  host::Device& device_;
  codegen::ImageCache& images_;
  const TuneOptions& options_;
  const codegen::Target target_;
  const codegen::Machine machine_;
  std::set<std::string> seen_;  // the keys of tuned_
  std::vector<TunedKernel> tuned_;
  std::deque<Work> works_;
};

}  // namespace

std::vector<TunedKernel> tune(const host::Program& program, const SizeBindings& sizes, int ranks,
                              host::Device& device, codegen::ImageCache& images,
                              const TuneOptions& options) {
  return Tuner(program, sizes, ranks, device, images, options).run();
}

bool areDifferent(const std::vector<TunedKernel::Row>& rows) {
  constexpr double kFactor = 1.03;
  const auto [least, most] = std::minmax_element(
      rows.begin(), rows.end(), [](const TunedKernel::Row& a, const TunedKernel::Row& b) {
        return a.predicted < b.predicted;
      });
  return most->predicted > kFactor * least->predicted;
}

void dropSpilled(std::vector<TunedKernel::Row>& rows) {
  const auto fits = [](const TunedKernel::Row& row) {
    return row.fault.empty() && row.local_bytes <= kMostLocalBytes;
  };
  if (std::none_of(rows.begin(), rows.end(), fits)) return;
  for (TunedKernel::Row& row : rows) {
    if (!row.fault.empty() || fits(row)) continue;
    row.fault = fmt::format(
        "spills registers: {} bytes of local memory per thread, at most {} are "
        "allowed",
        row.local_bytes, kMostLocalBytes);
  }
}

std::vector<KeyedChoice> keyedChoicesOf(const std::vector<TunedKernel>& kernels) {
  std::vector<KeyedChoice> choices;
  for (const TunedKernel& kernel : kernels) {
    choices.push_back({kernel.key, kernel.rows.at(kernel.chosen).parameters});
  }
  return choices;
}

Choices choicesOf(const std::vector<TunedKernel>& kernels) {
  Choices choices;
  for (const auto& [key, parameters] : keyedChoicesOf(kernels)) choices[key] = parameters;
  return choices;
}

}  // namespace heddle::tools
