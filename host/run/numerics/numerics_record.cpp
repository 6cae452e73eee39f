#include "host/run/numerics/numerics_record.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "ir/base/check.h"

namespace heddle::host {
namespace {

// Returns a text such as "%y (op log): 3 of 64 elements (3 NaN, 0 infinite), the first at [0]".
// `ops` has one op per tensor, or is empty. The keys of `bad` are positions in `tensors`.
std::string listed(const std::vector<Plan::NamedOperand>& tensors,
                   const std::vector<std::string>& ops, const std::map<size_t, BadElements>& bad) {
  std::string text;
  for (const auto& [i, elements] : bad) {
    const std::string op = i < ops.size() && !ops[i].empty() ? " (op " + ops[i] + ")" : "";
    text += fmt::format("{}%{}{}: {}", text.empty() ? "" : "; ", tensors.at(i).name, op,
                        describe(elements));
  }
  return text;
}

}  // namespace

bool checksNumericsByDefault() {
  const char* value = std::getenv("HEDDLE_CHECK_NUMERICS");
  const std::string_view text = value == nullptr ? "" : value;
  return !text.empty() && text != "0";
}

void NumericsRecord::add(int32_t inspection, bool after, size_t i, const BadElements& bad) {
  std::lock_guard lock(mutex_);
  Found& found = found_[inspection];
  (after ? found.written : found.read)[i] = bad;
}

std::string NumericsRecord::report(
    const IdVector<InspectionId, Plan::Inspection>& inspections,
    const std::function<std::string(InstructionIndex)>& textOf) const {
  std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& [id, found] : found_) {
    if (found.written.empty()) continue;
    const bool made_here = found.read.empty();
    if (!text.empty() && !made_here) continue;
    const Plan::Inspection& inspection = inspections[InspectionId(id)];
    text += (text.empty() ? "" : "\n") + line(inspection, found, textOf(inspection.instruction));
    if (made_here) break;
  }
  return text;
}

std::string NumericsRecord::line(const Plan::Inspection& inspection, const Found& found,
                                 const std::string& text) const {
  std::string line = fmt::format(
      "rank {}: {}{} wrote NaN or infinity to {}", rank_, text,
      inspection.occurrence > 0 ? fmt::format(", execution {},", inspection.occurrence + 1) : "",
      listed(inspection.written, inspection.ops, found.written));
  if (!found.read.empty()) {
    return line + "; bad before it: " + listed(inspection.read, {}, found.read);
  }
  return line + (inspection.communicates ? "; what this rank contributed was finite"
                                         : "; everything that it read was finite");
}

void NumericsLog::print(const std::string& report) {
  std::lock_guard lock(mutex_);
  if (report == latest_) return;
  latest_ = report;
  if (report.empty()) return;
  std::string text;
  for (size_t begin = 0; begin < report.size();) {
    const size_t end = std::min(report.find('\n', begin), report.size());
    text += "heddle: numerics: " + report.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  std::fputs(text.c_str(), stderr);
}

}  // namespace heddle::host
