#include "tests/text/runner/stages.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include "codegen/emit/plan_kernel.h"
#include "host/compile_stages.h"
#include "host/lower/lower.h"
#include "host/passes/chunk/chunk_collectives.h"
#include "host/passes/pipeline.h"
#include "host/passes/write_in_place.h"
#include "host/plan/local_segment.h"
#include "host/tensor.h"
#include "host/text/program_text.h"
#include "host/unroll/unroll.h"
#include "host/verify/verify.h"
#include "ir/analysis/concretize_sizes.h"
#include "ir/analysis/kernel_rules.h"
#include "ir/analysis/reshard_step.h"
#include "ir/base/check.h"
#include "ir/graph/size_scalars.h"
#include "ir/graph/verify.h"
#include "ir/passes/note_stream_splits.h"
#include "ir/passes/pipeline.h"
#include "ir/passes/sharding/reshard_moves.h"
#include "ir/segment/segment.h"
#include "ir/text/fusion_text.h"
#include "tests/text/runner/command.h"
#include "tests/text/runner/frame.h"

namespace heddle::text_tests {
namespace {

struct Options {
  int64_t ranks = 0;
  bool known_sizes = false;
  bool twice = false;
  std::string show;
  std::string format = "text";
  std::string device = "cpu";
  SizeBindings sizes;
  host::PassOptions passes;
  SegmentOptions library;
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

std::vector<std::string> namesOf(const std::vector<std::string_view>& names) {
  return {names.begin(), names.end()};
}

// Returns all passes of the stage. The options `only`, `upto` and `skip` select among them.
std::vector<std::string> passesOf(const std::string& stage) {
  return namesOf(stage == "host" ? host::passNames() : heddle::passNames());
}

class OptionReader {
 public:
  explicit OptionReader(const std::string& stage) : passes_(passesOf(stage)) {}

  Options read(const std::vector<std::string>& words) {
    for (size_t i = 0; i < words.size(); ++i) {
      if (words[i] == "--set") {
        HEDDLE_USER_CHECK(i + 1 < words.size(), "--set needs t=12");
        const auto [symbol, value] = pairOf(words[++i]);
        options_.sizes[symbol] = std::stoll(value);
      } else if (words[i] == "twice") {
        options_.twice = true;
      } else {
        const auto [key, value] = pairOf(words[i]);
        option(key, value);
      }
    }
    options_.passes.chunk_sizes = options_.sizes;
    options_.known_sizes |= !options_.sizes.empty();
    return options_;
  }

 private:
  static std::pair<std::string, std::string> pairOf(const std::string& word) {
    const size_t equals = word.find('=');
    HEDDLE_USER_CHECK(equals != std::string::npos, "unknown option `{}`", word);
    return {word.substr(0, equals), word.substr(equals + 1)};
  }

  void option(const std::string& key, const std::string& value) {
    if (key == "ranks") return void(options_.ranks = std::stoll(value));
    if (key == "show") return void(options_.show = value);
    if (key == "format") return void(options_.format = value);
    if (key == "device") return void(options_.device = value);
    if (key == "chunks") return void(options_.passes.chunks = std::stoll(value));
    if (key == "attention") return attention(value);
    if (key == "overlap") return void(options_.passes.overlap = value != "off");
    if (key == "sizes") return void(options_.known_sizes = value == "known");
    if (key == "skip") return skip(split(value, ','));
    if (key == "only")
      return only(value == "none" ? std::vector<std::string>() : split(value, ','));
    if (key == "upto") return upto(value);
    userError("unknown option `{}={}`", key, value);
  }

  // `library`: a library accepts every attention for which Attention::why_not is empty.
  void attention(const std::string& value) {
    HEDDLE_USER_CHECK(value == "library", "attention={}, expected library", value);
    options_.library.attention = [](const Fusion&, const Attention&) { return std::string(); };
  }

  void skip(const std::vector<std::string>& names) {
    options_.passes.skip = names;
    // Without one of these passes a program has races or buffers that nothing frees, so it is not
    // verified.
    for (const std::string& name : names) {
      if (name == "insert_sync" || name == "insert_frees") options_.passes.verify = false;
    }
  }

  void only(const std::vector<std::string>& names) {
    std::vector<std::string> others = passes_;
    for (const std::string& name : names) {
      HEDDLE_USER_CHECK(std::erase(others, name) == 1, "there is no pass {} in this stage", name);
    }
    skip(others);
  }

  void upto(const std::string& name) {
    const auto at = std::find(passes_.begin(), passes_.end(), name);
    HEDDLE_USER_CHECK(at != passes_.end(), "there is no pass {} in this stage", name);
    skip({at + 1, passes_.end()});
  }

  std::vector<std::string> passes_;
  Options options_;
};

// Returns the lines for which keep(line) is true.
template <class Keep>
std::string filtered(const std::string& text, const Keep& keep) {
  std::string result;
  for (const std::string& line : split(text, '\n')) {
    if (keep(line)) result += line + "\n";
  }
  return result;
}

std::string withoutVersion(const std::string& text) { return text.substr(text.find('\n') + 1); }

// --- fusions ------------------------------------------------------------------------------------

// Returns a comment that says how a `set` changes the sharding of its operand, such as "# %y:
// reduce_scatter of %y_partial, axis 0 over x".
std::string describeStep(const Fusion& fusion, const Expression& expr) {
  const ReshardStep step = reshardStepOf(fusion, expr);
  if (step.kind == ReshardStep::Kind::Same) {
    return fmt::format("# %{}: another name of %{}\n", fusion.value(expr.outputs[0]).name,
                       fusion.value(expr.inputs[0]).name);
  }
  std::string detail;
  if (step.joined >= 0) detail += fmt::format(", axis {} to", step.joined);
  if (step.axis >= 0) detail += fmt::format("{} axis {}", step.joined >= 0 ? "" : ",", step.axis);
  if (!step.team.empty()) detail += " over";
  for (MeshAxis axis : step.team) detail += " " + std::string(name(axis));
  if (step.root >= 0) detail += fmt::format(" in @{} with root {}", step.mesh.name, step.root);
  return fmt::format("# %{}: {} of %{}{}\n", fusion.value(expr.outputs[0]).name, name(step.kind),
                     fusion.value(expr.inputs[0]).name, detail);
}

std::string describeFacts(const Fusion& fusion, const Fusion& input) {
  std::string text;
  for (const Expression& expr : fusion.exprs()) {
    if (expr.op->kind == OpKind::Set) text += describeStep(fusion, expr);
  }
  for (const SizeGuard& guard : fusion.guards) {
    if (std::find(input.guards.begin(), input.guards.end(), guard) != input.guards.end()) continue;
    text += fmt::format("# guard {} {} {}: {}\n", guard.a.str(),
                        guard.at_most ? "<=" : "==", guard.b.str(), guard.source);
  }
  const auto splits = fusion.annotation<StreamSplits>(kStreamSplits);
  for (const StreamRequest& request : splits.value_or(StreamSplits())) {
    text += fmt::format("# chunks of %{}: stream({}: {})\n", request.name, request.split.axis,
                        request.split.chunks);
  }
  return text;
}

// Returns the decisions for the default sizes as comments, and the fusion after them.
std::string decidedText(const Fusion& input) {
  const SizeDecisions decisions = decideSizes(input, defaultSizes(input));
  std::string text;
  for (const std::string& line : split(decisions.str(), '\n')) text += "# " + line + "\n";
  const Fusion fusion = concretizeSizes(input, decisions);
  return text + withoutVersion(print(fusion)) + describeFacts(fusion, input);
}

std::string fusionText(const Fusion& input, const Options& options) {
  if (options.show == "decisions") return decidedText(input);
  const int64_t ranks = std::max<int64_t>(options.ranks, 1);
  const Fusion fusion = host::runFusionPasses(input, ranks, options.passes);
  if (options.twice) {
    const std::string again = print(host::runFusionPasses(fusion, ranks, options.passes));
    HEDDLE_USER_CHECK(again == print(fusion), "the second run gives\n{}", again);
  }
  std::string text = withoutVersion(print(fusion)) + describeFacts(fusion, input);
  if (options.show == "why") {
    for (const std::string& line : split(dumpResharding(fusion), '\n')) text += "# " + line + "\n";
  }
  return text;
}

SegmentedFusion segmentsOf(const Fusion& input, const Options& options) {
  const int64_t ranks = std::max<int64_t>(options.ranks, 1);
  return segment(host::runFusionPasses(input, ranks, options.passes), options.library);
}

std::vector<std::string> valueNames(const Fusion& fusion, const std::vector<ValueId>& ids) {
  std::vector<std::string> names;
  for (ValueId id : ids) names.push_back(fusion.value(id).name);
  return names;
}

// Requires that each segment, extracted as a fusion, is legal and has the inputs and outputs that
// the segmentation lists.
void checkSegments(const SegmentedFusion& segmented) {
  for (const Group& group : segmented.groups) {
    const Fusion part = extract(segmented, group);
    verify(part);
    HEDDLE_USER_CHECK(
        valueNames(part, part.inputs()) == valueNames(segmented.fusion, group.inputs) &&
            valueNames(part, part.outputs()) == valueNames(segmented.fusion, group.outputs),
        "the segment has other inputs or outputs than its group:\n{}", print(part));
    const std::string why = group.kind == GroupKind::Kernel ? kernelRuleViolation(part) : "";
    HEDDLE_USER_CHECK(why.empty(), "the segment is not one kernel: {}\n{}", why, print(part));
  }
}

std::string segmentText(const Fusion& input, const Options& options) {
  const SegmentedFusion segmented = segmentsOf(input, options);
  checkSegments(segmented);
  if (options.format == "dot") return dumpDot(segmented);
  if (options.format == "json") return dumpJson(segmented);
  const std::string text = dumpText(segmented);
  return options.show == "groups" ? text.substr(text.find("\ng0: ") + 1) : text;
}

// --- host programs ------------------------------------------------------------------------------

std::string programText(const host::Program& program, const Options& options) {
  const std::string text = withoutVersion(host::print(program));
  if (options.show == "posts") {
    return filtered(text, [](const std::string& line) {
      return line.find("communicate ") != std::string::npos;
    });
  }
  if (options.show != "body") return text;
  bool in_program = false;
  return filtered(text, [&](const std::string& line) {
    in_program = in_program || line.starts_with("program ");
    return in_program && !line.starts_with("  slot ");
  });
}

host::Program lowered(const std::variant<Fusion, host::Program>& source, const Options& options) {
  if (const auto* program = std::get_if<host::Program>(&source)) return *program;
  Options fusion_options = options;
  // The passes of the fusion know only their own names, so names of host passes are removed from
  // `skip`.
  std::erase_if(fusion_options.passes.skip, [](const std::string& name) {
    const std::vector<std::string_view> names = host::passNames();
    return std::find(names.begin(), names.end(), name) != names.end();
  });
  return host::lower(segmentsOf(std::get<Fusion>(source), fusion_options),
                     std::max<int64_t>(options.ranks, 1));
}

std::string hostText(const std::variant<Fusion, host::Program>& source, const Options& options) {
  const host::Program input = lowered(source, options);
  if (options.show == "why") {
    std::string text;
    for (const std::string& line : host::explainChunks(input, options.passes)) text += line + "\n";
    for (const std::string& line : host::explainReuses(input)) text += line + "\n";
    return text;
  }
  const host::Program program = host::runPasses(input, options.passes);
  const std::string text = host::print(program);
  HEDDLE_USER_CHECK(sameProgram(host::parseProgram(text), program),
                    "the text is another program when it is parsed:\n{}", text);
  if (options.twice) {
    const std::string again = host::print(host::runPasses(program, options.passes));
    HEDDLE_USER_CHECK(again == text, "the second run gives\n{}", again);
  }
  return programText(program, options);
}

std::string verifyText(const std::variant<Fusion, host::Program>& source, const Options& options) {
  host::Program program;
  if (const auto* fusion = std::get_if<Fusion>(&source)) {
    verify(*fusion);
    const int64_t ranks = std::max<int64_t>(options.ranks, 1);
    program = host::compile(*fusion, ranks, {options.passes}, options.library);
  } else {
    program = std::get<host::Program>(source);
  }
  host::ActualJob job{options.ranks, std::nullopt};
  if (options.known_sizes) job.sizes = options.sizes;
  host::verify(program, job);
  return "legal\n";
}

// Returns the schedule of each kernel on rank 0, at the sizes of --set or else at the default
// sizes.
std::string scheduleText(const Fusion& fusion, const Options& options) {
  const auto ranks = static_cast<int>(std::max<int64_t>(options.ranks, 1));
  const host::Program program = host::compile(fusion, ranks, {options.passes});
  SizeBindings sizes(fusion.size_defaults.begin(), fusion.size_defaults.end());
  for (const auto& [symbol, value] : options.sizes) sizes[symbol] = value;
  host::UnrollRequest request{sizes, host::inputDescs(program, sizes, 0, ranks), 0, ranks};
  const auto target = options.device == "cuda" ? codegen::Target::Cuda : codegen::Target::Cpp;
  const auto descs = [](const host::ViewList& views) {
    std::vector<TensorDesc> list;
    for (const host::View& view : views) list.push_back(view.desc);
    return list;
  };
  std::string text;
  const host::Unrolled unrolled = host::unroll(program, request);
  for (const host::UnrolledStep& step : unrolled.steps) {
    if (step.instruction == nullptr) continue;
    const auto* launch = std::get_if<host::LaunchKernel>(&step.instruction->op);
    if (launch == nullptr) continue;
    const host::Kernel& kernel = program.kernels[launch->kernel];
    text +=
        fmt::format("kernel {}\n{}\n", kernel.name,
                    codegen::describeKernel(
                        kernel.segment, descs(step.inputs), descs(step.outputs), target, {},
                        host::runSizes(kernel.segment, codegen::analyze(kernel.segment),
                                       descs(step.inputs), descs(step.outputs), sizes, 0, ranks))
                        .schedule);
  }
  return text;
}

std::string textOf(const std::string& stage, const std::string& input, const Options& options) {
  // No newline follows the version line, so messages count lines from the first line of the input.
  const std::string text = std::string(kVersionLine) + " " + input;
  const auto source = host::parseFile(text, "case");
  if (stage == "host") return hostText(source, options);
  if (stage == "verify") return verifyText(source, options);
  if (stage == "lower") return programText(lowered(source, options), options);
  const Fusion& fusion = std::get<Fusion>(source);
  if (stage == "fusion") return fusionText(fusion, options);
  if (stage == "segment") return segmentText(fusion, options);
  return scheduleText(fusion, options);
}

Outcome outcomeOf(const std::string& stage, const std::string& input, const Options& options) {
  try {
    return {false, textOf(stage, input, options)};
  } catch (const UserError& error) {
    return {true, error.what() + std::string("\n")};
  } catch (const InternalError& error) {
    return {true, "internal error: " + (error.what() + std::string("\n"))};
  }
}

}  // namespace

Outcome runCase(const std::string& stage, const Case& test) {
  constexpr std::string_view kStages[] = {"fusion", "segment",  "lower",  "host",
                                          "verify", "schedule", "command"};
  HEDDLE_USER_CHECK(std::find(std::begin(kStages), std::end(kStages), stage) != std::end(kStages),
                    "tests/text/{}: there is no such stage", stage);
  const Options options = OptionReader(stage).read(test.options);
  const std::optional<Frame> frame = frameOf(test.input);
  if (stage == "command") {
    HEDDLE_USER_CHECK(frame, "a case of the stage command has no line `--- each`");
    return {false, runCommands(frame->text, frame->lines)};
  }
  if (!frame) return outcomeOf(stage, test.input, options);
  std::string text;
  for (const std::string& line : frame->lines) {
    text += outcomeOfLine(line, outcomeOf(stage, frame->with(line), options).text);
  }
  return {false, text};
}

}  // namespace heddle::text_tests
