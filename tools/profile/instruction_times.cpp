#include "tools/profile/instruction_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tools/bench/csv.h"
#include "tools/bench/median.h"

namespace heddle::tools {
namespace {

// Returns the number with three digits after the point. Returns "" for 0, which means unknown.
std::string known(double value) { return value > 0 ? fmt::format("{:.3f}", value) : ""; }

double quotient(double value, double by) { return by > 0 ? value / by : 0; }

std::vector<std::string> cellsOf(int rank, host::InstructionIndex instruction,
                                 const InstructionTimes& times, const PeakRates& rates) {
  const int64_t total =
      std::accumulate(times.nanoseconds.begin(), times.nanoseconds.end(), int64_t{0});
  const std::vector<double> each(times.nanoseconds.begin(), times.nanoseconds.end());
  const double seconds = 1e-9 * static_cast<double>(total);
  const double copied = quotient(static_cast<double>(times.bytes), seconds);
  const double computed = quotient(times.operations, seconds);
  const double peak = times.product ? rates.productRate(*times.product) : 0;
  const bool ran = !times.nanoseconds.empty();
  return {fmt::format("{}", rank),
          fmt::format("{}", instruction),
          times.text,
          fmt::format("{}", times.issued),
          ran ? fmt::format("{:.3f}", 1e6 * seconds) : "",
          ran ? fmt::format("{:.3f}", 1e-3 * median(each)) : "",
          fmt::format("{}", times.bytes),
          known(quotient(copied, rates.copy_bytes_per_second)),
          known(quotient(computed, peak)),
          known(1e-9 * rates.copy_bytes_per_second),
          known(1e-9 * peak)};
}

}  // namespace

double PeakRates::productRate(const host::MatmulWork& work) const {
  host::MatmulWork kind = work;
  kind.operations = 0;
  for (const auto& [known_kind, rate] : products) {
    if (known_kind == kind) return rate;
  }
  return 0;
}

void addRun(host::RunProfile& profile, TimesByInstruction& times) {
  const auto work = profile.deviceWork();
  const std::map<host::InstructionIndex, host::MatmulWork> products = profile.matmuls();
  for (const host::TimelineEvent& event : profile.events()) {
    if (!work.contains(event.instruction)) continue;
    InstructionTimes& instruction = times[event.instruction];
    if (instruction.text.empty()) instruction.text = event.text;
    const auto product = products.find(event.instruction);
    if (product != products.end()) instruction.product = product->second;
    if (!event.stream.valid()) {
      ++instruction.issued;
      instruction.bytes += event.bytes;
      if (product != products.end()) instruction.operations += product->second.operations;
    } else {
      instruction.nanoseconds.push_back(event.end - event.begin);
    }
  }
}

std::string profileHeader() {
  return csvLine({"rank", "index", "instruction", "count", "total_us", "median_us", "bytes",
                  "of_copy", "of_peak", "copy_gb_per_s", "peak_gop_per_s"});
}

std::string profileRows(int rank, const TimesByInstruction& times, const PeakRates& rates) {
  std::string text;
  for (const auto& [instruction, each] : times) {
    text += csvLine(cellsOf(rank, instruction, each, rates));
  }
  return text;
}

}  // namespace heddle::tools
