#include "tools/heddle/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ir/base/check.h"
#include "ir/graph/print_values.h"
#include "ir/text/fusion_text.h"
#include "tools/bench/median.h"

namespace heddle::tools {
namespace {

constexpr int64_t kShown = 6;

std::string typeText(const HostTensor& tensor) {
  return fmt::format("{}{}", name(tensor.dtype), str(tensor.sizes));
}

std::string firstElements(const HostTensor& tensor) {
  std::string text;
  for (int64_t i = 0; i < std::min(kShown, tensor.numel()); ++i) {
    if (i > 0) text += ", ";
    const Scalar value = tensor.at(i);
    const double* number = std::get_if<double>(&value);  // all other scalars print exactly
    text += number != nullptr ? fmt::format("{:.6g}", *number) : printScalar(value);
  }
  return tensor.numel() > kShown ? text + ", ..." : text;
}

std::string bytesText(int64_t bytes) {
  if (bytes < 1 << 20) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

std::string checkText(const OutputCheck& check) {
  const std::string name =
      check.rank < 0 ? check.name : fmt::format("{}, the copy of rank {},", check.name, check.rank);
  if (check.passed()) {
    return fmt::format("%{} right in {} elements, largest error {:.3g}", name, check.compared,
                       check.max_error);
  }
  return fmt::format("%{} WRONG in {} of {} elements; {}", name, check.wrong, check.compared,
                     check.first_wrong);
}

std::vector<int> ranksThatDiffer(const Gathered& output) {
  std::vector<int> ranks;
  for (const Gathered::Difference& one : output.differences) {
    ranks.push_back(output.blocks[one.block].rank);
  }
  return ranks;
}

std::string numericsText(const std::vector<std::string>& numerics) {
  std::vector<size_t> ranks;
  for (size_t rank = 0; rank < numerics.size(); ++rank) {
    if (!numerics[rank].empty()) ranks.push_back(rank);
  }
  if (ranks.empty()) return "numerics no instruction wrote NaN or infinity\n";
  return fmt::format(
      "numerics NaN or infinity on rank {}; the messages on stderr name the instructions\n",
      fmt::join(ranks, ", "));
}

std::string differenceText(const std::string& name, const Gathered& output,
                           const Gathered::Difference& difference) {
  const Block& block = output.blocks[difference.block];
  return fmt::format("         %{} DIFFERS on rank {} from rank {} in {} of {} elements\n", name,
                     block.rank, output.holderOf(difference.first), difference.count,
                     block.data.numel());
}

}  // namespace

bool Report::passed() const {
  const auto right = [](const OutputCheck& check) { return check.passed(); };
  const auto same = [](const Gathered& output) { return output.differences.empty(); };
  const auto empty = [](const std::string& found) { return found.empty(); };
  return std::all_of(checks.begin(), checks.end(), right) &&
         std::all_of(numerics.begin(), numerics.end(), empty) &&
         std::all_of(outputs.begin(), outputs.end(), same);
}

std::string reportText(const Report& r) {
  std::string text = fmt::format("{} on {}, {} rank(s){}\n", r.file, r.device, r.ranks,
                                 r.ranks > 1 ? ", transport " + r.transport : "");
  for (const std::string& input : r.inputs) text += fmt::format("input    {}\n", input);
  for (const std::string& segment : r.segments) text += fmt::format("segment  {}\n", segment);
  if (!r.overlap.empty()) text += fmt::format("overlap  {}\n", r.overlap);
  for (size_t i = 0; i < r.outputs.size(); ++i) {
    const HostTensor& whole = r.outputs[i].whole;
    const std::string& reduced = r.outputs[i].reduced;
    text += fmt::format(
        "output   %{}: {} = {}{}{}\n", r.output_names[i], typeText(whole), firstElements(whole),
        reduced.empty() ? "" : fmt::format(" (the {} of its parts)", reduced),
        r.aliased[i].empty() ? "" : fmt::format(" (in the memory of {})", r.aliased[i]));
    for (const Gathered::Difference& one : r.outputs[i].differences) {
      text += differenceText(r.output_names[i], r.outputs[i], one);
    }
  }
  text += fmt::format("time     {:.3f} ms per run (median of {}), first run {:.1f} ms\n",
                      1e3 * median(r.seconds), r.seconds.size(), 1e3 * r.prepare_seconds);
  const int64_t without_reuse = r.stats.peak_bytes_without_reuse;
  text +=
      fmt::format("memory   {}{} at the peak, temporaries and outputs of one rank\n",
                  bytesText(r.stats.peak_bytes),
                  without_reuse == r.stats.peak_bytes
                      ? ""
                      : fmt::format(" ({} if no value reused memory)", bytesText(without_reuse)));
  if (r.stats.communicators > 0) {
    text += fmt::format("start    {} communicator(s) of rank 0, created in {:.1f} ms\n",
                        r.stats.communicators, 1e3 * r.stats.communicator_seconds);
  }
  for (const OutputCheck& check : r.checks) {
    text += fmt::format("check    {} ({}{})\n", checkText(check), r.check_mode,
                        r.reference.empty() ? "" : ", against " + r.reference);
  }
  if (!r.numerics.empty()) text += numericsText(r.numerics);
  return text;
}

// The keys have this order: the run, its times, memory, plans, kernels and communicators, its
// outputs and its checks. "passed" is the last key. Each output and each check is an object.
std::string reportJson(const Report& r) {
  nlohmann::ordered_json json = {{"file", r.file},
                                 {"device", r.device},
                                 {"ranks", r.ranks},
                                 {"transport", r.transport},
                                 {"inputs", r.inputs},
                                 {"segments", r.segments},
                                 {"median_ms", 1e3 * median(r.seconds)},
                                 {"first_run_ms", 1e3 * r.prepare_seconds},
                                 {"runs", r.seconds.size()},
                                 {"peak_bytes", r.stats.peak_bytes},
                                 {"peak_bytes_without_reuse", r.stats.peak_bytes_without_reuse},
                                 {"plans", r.stats.plans},
                                 {"segmentations", r.segmentations},
                                 {"split_calls", r.split_calls},
                                 {"kernel_texts", r.stats.kernel_texts},
                                 {"kernels_reused", r.stats.kernels_reused},
                                 {"kernels_compiled", r.stats.kernels_compiled},
                                 {"kernels_loaded", r.stats.kernels_loaded},
                                 {"kernels_unloaded", r.stats.kernels_unloaded},
                                 {"kernel_bytes", r.stats.kernel_bytes},
                                 {"communicators", r.stats.communicators},
                                 {"communicators_ms", 1e3 * r.stats.communicator_seconds}};
  if (!r.overlap.empty()) json["overlap"] = r.overlap;
  for (size_t i = 0; i < r.outputs.size(); ++i) {
    json["outputs"].push_back({{"name", r.output_names[i]},
                               {"type", typeText(r.outputs[i].whole)},
                               {"shape", r.outputs[i].whole.sizes},
                               {"block", r.descs[i].sizes},
                               {"strides", r.descs[i].strides},
                               {"first", firstElements(r.outputs[i].whole)},
                               {"reduced", r.outputs[i].reduced},
                               {"aliases", r.aliased[i]},
                               {"ranks_that_differ", ranksThatDiffer(r.outputs[i])}});
  }
  if (!r.reference.empty()) json["reference"] = r.reference;
  for (const OutputCheck& check : r.checks) {
    json["check"].push_back({{"name", check.name},
                             {"rank", check.rank},
                             {"mode", r.check_mode},
                             {"compared", check.compared},
                             {"wrong", check.wrong},
                             {"max_error", check.max_error},
                             {"first_wrong", check.first_wrong}});
  }
  if (!r.numerics.empty()) json["numerics"] = r.numerics;
  json["passed"] = r.passed();
  return json.dump(2) + "\n";
}

}  // namespace heddle::tools
