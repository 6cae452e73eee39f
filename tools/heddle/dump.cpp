#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "host/device/attention.h"
#include "host/executable.h"
#include "host/inspect.h"
#include "host/passes/chunk/chunk_collectives.h"
#include "host/passes/write_in_place.h"
#include "host/plan/bind_inputs.h"
#include "host/program/visit.h"
#include "host/tensor.h"
#include "host/text/program_text.h"
#include "host/unroll/late_values.h"
#include "host/unroll/unroll.h"
#include "host/verify/verify.h"
#include "ir/analysis/concretize_sizes.h"
#include "ir/base/check.h"
#include "ir/base/pass_driver.h"
#include "ir/graph/size_scalars.h"
#include "ir/graph/verify.h"
#include "ir/passes/orders/infer_orders.h"
#include "ir/passes/orders/order_notes.h"
#include "ir/segment/segment.h"
#include "ir/system/files.h"
#include "ir/text/fusion_text.h"
#include "tools/heddle/job.h"
#include "tools/heddle/prepare.h"
#include "tools/heddle/source.h"

namespace heddle::tools {
namespace {

// One part of a dump. heddle writes it to a file in --dump-dir, or prints it on stdout.
struct Piece {
  std::string file;  // "03_kernel_k0_rank1.cu"
  std::string title;
  std::string text;
};

bool wants(const Options& options, std::string_view stage) {
  return options.stage == "all" || options.stage == stage;
}

std::string hostJson(const host::Program& program) {
  nlohmann::ordered_json json = {{"program", program.name}};
  int index = 0;
  for (const std::string& text : host::instructionTexts(program)) {
    json["instructions"].push_back({{"index", index++}, {"text", text}});
  }
  return json.dump(2) + "\n";
}

std::string segmentsIn(const std::string& format, const SegmentedFusion& segmented) {
  if (format == "dot") return dumpDot(segmented);
  return format == "json" ? dumpJson(segmented) : dumpText(segmented);
}

// Adds the list of values that one rank knows only when a run starts.
void dumpLateValues(const host::Program& program, const SizeBindings& sizes, int rank, int ranks,
                    std::vector<Piece>& pieces) {
  host::UnrollRequest request{sizes, host::inputDescs(program, sizes, rank, ranks), rank, ranks};
  request.late = host::lateInputsOf(program);
  const host::Unrolled unrolled = host::unroll(program, request);
  pieces.push_back({fmt::format("06_late_rank{}.txt", rank), fmt::format("late rank {}", rank),
                    host::describeLateValues(program, unrolled)});
}

// Returns the options that decide which attentions become library calls. The options depend on the
// device whose kernels are shown, and on the sizes.
SegmentOptions libraryOptions(const Source& source, const Options& options) {
  const auto kind = options.device == "cuda" ? host::DeviceKind::Cuda : host::DeviceKind::Cpu;
  return host::attentionOptions(kind, settingsOf(source, options).sizes);
}

// Adds a table of the candidates of every kernel of one rank.
void dumpCandidates(const host::Program& program, const SizeBindings& sizes, int rank, int ranks,
                    const Options& options, std::vector<Piece>& pieces) {
  const auto device = options.device == "cuda" ? host::DeviceKind::Cuda : host::DeviceKind::Cpu;
  std::string text;
  for (const auto& kernel : host::kernelCandidates(program, sizes, rank, ranks, device)) {
    text += fmt::format("kernel @{}\n", kernel.name);
    for (size_t i = 0; i < kernel.rows.size(); ++i) {
      const host::KernelCandidates::Row& row = kernel.rows[i];
      text += fmt::format("  {}: {}; {} launch{}{}{}\n", i, row.parameters, row.launches,
                          row.launches == 1 ? "" : "es",
                          row.workspace_bytes == 0
                              ? ""
                              : fmt::format(", workspace of {} bytes", row.workspace_bytes),
                          i == kernel.used ? ", used" : "");
    }
  }
  pieces.push_back({fmt::format("03_candidates_rank{}.txt", rank),
                    fmt::format("candidates rank {}", rank), text});
}

// Adds the schedule, the source or both (--stage) of every kernel of one rank, each kernel once.
// The program must contain no Call instructions, because a callee has its own kernel ids.
void dumpKernels(const host::Program& program, const SizeBindings& sizes, int rank, int ranks,
                 const Options& options, std::vector<Piece>& pieces) {
  const bool is_cuda = options.device == "cuda";
  const auto device = is_cuda ? host::DeviceKind::Cuda : host::DeviceKind::Cpu;
  const char* suffix = is_cuda ? "cu" : "cpp";
  for (const host::KernelTexts& kernel : host::kernelTexts(program, sizes, rank, ranks, device)) {
    const std::string label = fmt::format("{} rank {}", kernel.name, rank);
    if (wants(options, "schedule")) {
      pieces.push_back({fmt::format("03_schedule_{}_rank{}.txt", kernel.name, rank),
                        "schedule " + label, kernel.schedule + "\n"});
    }
    if (wants(options, "kernel")) {
      pieces.push_back({fmt::format("04_kernel_{}_rank{}.{}", kernel.name, rank, suffix),
                        "kernel " + label, kernel.source});
    }
  }
}

SegmentedFusion segmentsOf(const Fusion& fusion, int ranks, const Options& options,
                           const host::PassOptions& passes) {
  const Fusion ready = host::runFusionPasses(fusion, ranks, passes);
  return timedPass(passes, "segment",
                   [&] { return segment(ready, libraryOptions(fusion, options)); });
}

// Returns the decisions about sizes with a '?' and about reshapes whose sizes depend on scalars,
// and the fusion after these decisions.
std::string concretizedIn(const Options& options, const Fusion& fusion) {
  const SizeDecisions decisions = decideSizes(fusion, defaultSizes(fusion));
  const std::string text = print(concretizeSizes(fusion, decisions));
  if (options.format == "json") {
    nlohmann::ordered_json json = {{"stage", "concretized"}, {"decisions", decisions.str()}};
    json["text"] = text;
    return json.dump(2) + "\n";
  }
  const bool is_empty = decisions.decisions.empty() && decisions.reshapes.empty();
  std::string notes = is_empty ? "# no size has a '?', and no reshape depends on a scalar\n" : "";
  std::istringstream lines(decisions.str());
  for (std::string line; std::getline(lines, line);) notes += "# " + line + "\n";
  return notes + text;
}

// Returns the fusion with the memory orders that results take over from the inputs. The stage
// `fusion` comes before the passes that choose shardings, so the function ignores shardings. In the
// stage `segments`, a collective may need another memory order, which then replaces the inferred
// one.
Fusion withHints(const Fusion& fusion, const host::PassOptions& passes) {
  const bool is_skipped =
      std::find(passes.skip.begin(), passes.skip.end(), "inferOrders") != passes.skip.end();
  // The pass needs decided sizes, which the stage `concretized` shows.
  if (is_skipped || !fusion.symbolic_sizes.empty()) return fusion;
  Fusion unsharded = fusion;
  for (ValueId id : fusion.values().ids()) unsharded.setSharding(id, {});
  const Fusion inferred = inferOrders(unsharded);
  Fusion result = fusion;
  for (ValueId id : fusion.values().ids()) result.layout(id) = inferred.tensor(id).layout;
  const auto notes = inferred.annotation<std::vector<OrderNote>>(kOrderAnnotation);
  if (notes) addOrderNotes(result, *notes);
  return result;
}

std::string fusionJson(const Fusion& fusion, const std::string& text) {
  nlohmann::ordered_json json = {{"stage", "fusion"}, {"text", text}};
  json["orders"] = nlohmann::ordered_json::array();
  std::vector<ValueId> values;
  for (ValueId id : fusion.values().ids()) values.push_back(id);
  for (const ValueOrder& each : ordersOf(fusion, values)) {
    nlohmann::ordered_json undone;
    if (!each.undone.empty()) undone = each.undone;
    json["orders"].push_back({{"value", each.value},
                              {"order", each.order},
                              {"kind", name(each.kind)},
                              {"from", each.from},
                              {"undone", undone}});
  }
  return json.dump(2) + "\n";
}

void dumpFusion(const Fusion& fusion, int ranks, const Options& options,
                const host::PassOptions& passes, std::vector<Piece>& pieces) {
  const std::string suffix = options.format == "text" ? "txt" : options.format;
  if (wants(options, "fusion") && options.format != "dot") {
    const Fusion hinted = withHints(fusion, passes);
    const std::string text = print(hinted);
    pieces.push_back({"01_fusion." + suffix, "fusion",
                      options.format == "json" ? fusionJson(hinted, text) : text});
  }
  const bool has_decisions = !fusion.symbolic_sizes.empty() || !decideReshapes(fusion, {}).empty();
  if (options.stage == "concretized" || (has_decisions && wants(options, "concretized"))) {
    pieces.push_back({"01_concretized." + suffix, "concretized", concretizedIn(options, fusion)});
  }
  if (wants(options, "segments")) {
    pieces.push_back({"02_segments." + suffix, "segments",
                      segmentsIn(options.format, segmentsOf(fusion, ranks, options, passes))});
  }
}

// Returns comment lines about decisions of the passes. For each collective that may be split into
// chunks, a line says how it is split, or why it is not split (host::explainChunks()). For each
// output that lower() copies to an input, a line says whether a pass removes the copy, or why it
// does not (host::explainReuses()). Leaves out the lines of a skipped pass.
std::string passNotes(const host::Program& program, const Options& options,
                      const host::PassOptions& passes) {
  const auto skips = [&](const char* pass) {
    return std::find(options.skip.begin(), options.skip.end(), pass) != options.skip.end();
  };
  std::vector<std::string> lines;
  if (!skips("chunk_collectives")) lines = host::explainChunks(program, passes);
  if (!skips("write_in_place")) {
    for (std::string& line : host::explainReuses(program)) lines.push_back(std::move(line));
  }
  std::string notes;
  for (const std::string& line : lines) notes += "# " + line + "\n";
  return notes;
}

void writePieces(const std::string& folder, const std::vector<Piece>& pieces) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  HEDDLE_USER_CHECK(!error, "--dump-dir {}: {}", folder, error.message());
  for (const Piece& piece : pieces) {
    writeFileOf((std::filesystem::path(folder) / piece.file).string(), {piece.text});
  }
}

void checkSource(const Source& source, const Options& options, const SizeBindings& sizes) {
  if (const auto* fusion = std::get_if<Fusion>(&source)) {
    checkSizes(*fusion, sizes);
    return heddle::verify(*fusion);
  }
  const auto& program = std::get<host::Program>(source);
  host::verify(program, options.ranks > 0 ? host::ActualJob{options.ranks, SizeBindings{}}
                                          : host::ActualJob{});
}

// Compiles only as far as the wanted stages need. Collects all parts before it prints or writes the
// first one, so that an error of the compilation leaves no incomplete dump.
int dumpSource(Source source, const Options& options) {
  const SizeBindings set = settingsOf(source, options).sizes;
  source = withSizes(std::move(source), set);
  HEDDLE_USER_CHECK(options.format != "dot" || options.stage == "segments",
                    "--format dot shows only segments: add --stage segments");
  const int ranks = options.ranks > 0 ? options.ranks : 1;
  std::vector<Piece> pieces;
  const auto* fusion = std::get_if<Fusion>(&source);
  const bool wants_kernels = wants(options, "schedule") || wants(options, "kernel");
  // Only the stages `schedule`, `kernel`, `candidates` and `late` need a value for each size.
  const bool wants_candidates = options.stage == "candidates";
  const bool wants_sizes = wants_kernels || wants_candidates || wants(options, "late");
  HEDDLE_USER_CHECK(fusion != nullptr || wants_sizes || wants(options, "host"),
                    "--stage {}: {} is a host program, which has no such stage", options.stage,
                    options.file);
  const SizeBindings set_sizes = settingsOf(source, options).sizes;
  const host::PassOptions passes = passOptions(options, set_sizes);
  checkSource(source, options, set_sizes);
  PassTimes times;
  const host::PassOptions timed_passes = passOptions(options, set_sizes, &times);
  if (fusion != nullptr) {
    // If a program is compiled below, that compilation runs the same passes and is timed instead of
    // this one.
    const bool is_last = options.stage == "segments";
    dumpFusion(*fusion, ranks, options, is_last ? timed_passes : passes, pieces);
  }
  if (wants_sizes || wants(options, "host")) {
    std::string notes;
    host::Program program;
    if (fusion != nullptr) {
      program = lowered(*fusion, ranks, timed_passes, libraryOptions(source, options)).program;
      if (wants(options, "host")) notes = passNotes(program, options, passes);
      program = host::runPasses(std::move(program), timed_passes);
    } else {
      program = std::get<host::Program>(source);
    }
    applyForced(program, options.force);
    if (wants_sizes) {
      const SizeBindings sizes = settingsOf(source, options).sizes;
      requireSizes(source, sizes);
      // --dump-dir writes files for every rank, but stdout shows only rank 0.
      const int shown = options.dump_dir.empty() ? 1 : ranks;
      if (fusion == nullptr) host::verify(program, {ranks, sizes});
      const host::Program inlined = host::inlineCalls(host::concretized(program, ranks));
      for (int rank = 0; rank < shown; ++rank) {
        if (wants_kernels) dumpKernels(inlined, sizes, rank, ranks, options, pieces);
        if (wants_candidates) dumpCandidates(inlined, sizes, rank, ranks, options, pieces);
        if (wants(options, "late")) dumpLateValues(inlined, sizes, rank, ranks, pieces);
      }
    }
    if (wants(options, "host")) {
      const bool json = options.format == "json";
      pieces.push_back({json ? "05_host.json" : "05_host.hostir", "host",
                        json ? hostJson(program) : notes + host::print(program)});
    }
  }
  if (options.time_passes) std::fputs(times.table().c_str(), stderr);
  if (!options.dump_dir.empty()) {
    writePieces(options.dump_dir, pieces);
    return 0;
  }
  for (const Piece& piece : pieces) {
    // A single part is printed without a title, so that its text can be parsed.
    if (pieces.size() > 1) std::fputs(("# ==== " + piece.title + "\n").c_str(), stdout);
    std::fputs(piece.text.c_str(), stdout);
  }
  return 0;
}

}  // namespace

int dumpCommand(const Options& options) {
  Source source = readSource(options.file);
  return inFile(options.file, source, [&] { return dumpSource(source, options); });
}

}  // namespace heddle::tools
