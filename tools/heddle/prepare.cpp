#include "tools/heddle/prepare.h"

#include <algorithm>
#include <map>
#include <new>
#include <utility>

#include "comm/communicator.h"
#include "comm/process/process_info.h"
#include "host/device/attention.h"
#include "host/inspect.h"
#include "host/passes/pipeline.h"
#include "host/plan/bind_inputs.h"
#include "host/program/visit.h"
#include "host/tensor.h"
#include "host/text/program_rules.h"
#include "host/text/program_text.h"
#include "host/unroll/unroll.h"
#include "host/verify/verify.h"
#include "ir/base/check.h"
#include "ir/graph/verify.h"
#include "tools/heddle/gather.h"
#include "tools/heddle/partial.h"

namespace heddle::tools {
namespace {

// Returns the program of the source. If the source is a fusion, also fills the members that
// describe its passes and segments.
host::Program programOf(Prepared& prepared, int ranks, const Options& options) {
  const Source& source = prepared.source;
  if (const auto* program = std::get_if<host::Program>(&source)) return *program;
  const host::PassOptions passes =
      passOptions(options, settingsOf(source, options).sizes, &prepared.pass_times);
  Lowered steps =
      lowered(std::get<Fusion>(source), ranks, passes,
              host::attentionOptions(chooseDevice(options.device), prepared.inputs.sizes));
  prepared.segments = host::segmentTexts(steps.segmented);
  prepared.segmentations = 1;
  prepared.split_calls = steps.segmented.split_calls;
  return host::runPasses(std::move(steps.program), passes);
}

// Adds the kernels of the program and of the programs that it calls.
void addKernels(host::Program& program, std::vector<host::Kernel*>& kernels) {
  for (host::KernelId id : program.kernels.ids()) kernels.push_back(&program.kernels[id]);
  for (host::Program& callee : program.callees) addKernels(callee, kernels);
}

std::vector<std::string> inputNames(const host::Program& program) {
  std::vector<std::string> names;
  for (host::SlotId id : program.inputs) names.push_back("%" + program.slots[id].name);
  return names;
}

}  // namespace

void applyForced(host::Program& program, const std::vector<std::string>& force) {
  if (force.empty()) return;
  std::vector<host::Kernel*> kernels;
  addKernels(program, kernels);
  std::map<std::string, std::string> seen;  // per kernel: the text that names its candidate
  for (const std::string& each : force) {
    const size_t equals = each.find('=');
    HEDDLE_USER_CHECK(equals != std::string::npos,
                      "--force {}: expected the name of a kernel and a candidate, as in k3=2",
                      each);
    const size_t begin = each.starts_with('@') ? 1 : 0;
    const std::string name = each.substr(begin, equals - begin);
    const std::string candidate = each.substr(equals + 1);
    const std::string fault = host::candidateViolation(candidate);
    HEDDLE_USER_CHECK(fault.empty(), "--force {}: {}", each, fault);
    const auto [earlier, is_first] = seen.emplace(name, each);
    HEDDLE_USER_CHECK(is_first,
                      "--force {}: the candidate of @{} is set twice, first with --force {}", each,
                      name, earlier->second);
    std::vector<std::string> names;
    bool found = false;
    for (host::Kernel* kernel : kernels) {
      names.push_back(kernel->name);
      if (kernel->name != name) continue;
      kernel->candidate = candidate;
      found = true;
    }
    HEDDLE_USER_CHECK(found, "--force {}: the program has no kernel @{}; its kernels are {}", each,
                      name, names.empty() ? "none" : fmt::format("@{}", fmt::join(names, ", @")));
  }
}

void bindInputs(Prepared& prepared, const Options& options) {
  inFile(options.file, prepared.source, [&] {
    prepared.inputs = makeInputs(prepared.source, options);
    prepared.source = withSizes(std::move(prepared.source), prepared.inputs.sizes);
    if (const auto* fusion = std::get_if<Fusion>(&prepared.source)) {
      checkGuards(fusion->guards, prepared.inputs.sizes);
      checkSizes(*fusion, prepared.inputs.sizes);
    }
  });
}

void compileProgram(Prepared& prepared, const Options& options, int ranks) {
  inFile(options.file, prepared.source, [&] {
    prepared.program = programOf(prepared, ranks, options);
    applyForced(prepared.program, options.force);
    if (options.verify) host::verify(prepared.program, {ranks, prepared.inputs.sizes});
  });
}

std::vector<host::Argument> placeInputs(const Rank& rank, const host::Program& program,
                                        const Inputs& inputs) {
  const comm::World::Task task(rank.world, comm::RankTask::CopyingInputs);
  const std::vector<TensorDesc> descs =
      host::inputDescs(program, inputs.sizes, rank.rank, rank.ranks);
  std::vector<host::Argument> arguments;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const host::Slot& slot = program.slots[program.inputs[i]];
    if (slot.is_scalar) {
      arguments.emplace_back(inputs.scalars[i]);
      continue;
    }
    const TensorDesc& desc = descs[i];
    const HostTensor& whole = inputs.tensors[i];
    if (inputs.sizes.contains(scalarSymbol(slot.name))) {  // its value decides sizes or offsets
      host::Tensor value{whole.data.get(), desc, whole.data};
      value.in_host_memory = true;
      arguments.emplace_back(std::move(value));
      continue;
    }
    HEDDLE_USER_CHECK(!whole.data || whole.sizes == desc.global || whole.sizes == desc.sizes,
                      "--input %{}: the file has sizes {}, expected {}", slot.name,
                      str(whole.sizes), str(desc.global));
    try {
      HostTensor block = !whole.data                 ? randomBlock(desc, inputs.seed, slot.name)
                         : whole.sizes == desc.sizes ? whole
                                                     : localBlock(whole, desc);
      if (const auto partial = partialOf(program, program.inputs[i])) {
        block = partOf(block, *partial, rank.rank);
      }
      arguments.emplace_back(host::toDevice(*rank.device, rank.device->allocator(), block, desc));
    } catch (const UserError& error) {
      userError("input %{}: {}", slot.name, error.what());
    } catch (const std::bad_alloc&) {
      userError("input %{}: out of memory: {}{} does not fit in the memory of this machine",
                slot.name, name(desc.dtype), str(desc.sizes));
    }
  }
  return arguments;
}

std::vector<size_t> donatedInputs(const host::Program& program, const Options& options) {
  std::vector<size_t> positions;
  for (const std::string& name : options.donate) {
    const auto isIt = [&](host::SlotId id) { return program.slots[id].name == name; };
    const auto found = std::find_if(program.inputs.begin(), program.inputs.end(), isIt);
    HEDDLE_USER_CHECK(found != program.inputs.end(),
                      "--donate {}: the program has no input %{}, its inputs are {}", name, name,
                      fmt::join(inputNames(program), ", "));
    positions.push_back(static_cast<size_t>(found - program.inputs.begin()));
  }
  return positions;
}

host::PassOptions passOptions(const Options& options, const SizeBindings& sizes, PassTimes* times) {
  host::PassOptions passes;
  passes.skip = options.skip;
  passes.chunk_sizes = sizes;
  passes.verify_each |= options.verify_each;
  if (options.time_passes && times != nullptr) {
    passes.timing = [times](std::string_view pass, double seconds) { times->add(pass, seconds); };
  }
  passes.overlap = options.overlap != "off";
  if (passes.overlap && options.overlap != "auto") passes.chunks = std::stoll(options.overlap);
  return passes;
}

host::DeviceKind chooseDevice(const std::string& asked) {
  if (asked == "cpu") return host::DeviceKind::Cpu;
  if (asked == "null") return host::DeviceKind::Null;
  std::string why;
  const bool cuda = host::cudaDeviceCount(why) > 0;
  if (asked == "cuda") {
    HEDDLE_USER_CHECK(cuda, "--device cuda: {}", why);
    return host::DeviceKind::Cuda;
  }
  return cuda ? host::DeviceKind::Cuda : host::DeviceKind::Cpu;
}

host::InjectedFault faultOf(const std::string& spec, int ranks) {
  host::InjectedFault fault = host::parseFault(spec);
  HEDDLE_USER_CHECK(fault.rank < ranks, "--inject {}: rank={}, the job has {} rank(s)", spec,
                    fault.rank, ranks);
  HEDDLE_USER_CHECK(fault.kind != host::InjectedFault::Kind::Stall || ranks > 1,
                    "--inject {}: a stall needs another rank that notices it; the job has one rank",
                    spec);
  fault.is_process = processRank().has_value();
  return fault;
}

void checkInjected(const host::InjectedFault& fault, const host::Program& program,
                   const SizeBindings& sizes, int ranks) {
  const host::Program inlined = host::inlineCalls(host::concretized(program, ranks));
  const std::vector<std::string> texts = host::instructionTexts(inlined);
  HEDDLE_USER_CHECK(static_cast<size_t>(fault.instruction) < texts.size(),
                    "--inject: there is no instruction {}, the program has {}", fault.instruction,
                    texts.size());
  const host::Unrolled unrolled = host::unroll(inlined, {sizes, {}, fault.rank, ranks});
  const auto isIt = [&](const host::UnrolledStep& step) { return step.index == fault.instruction; };
  HEDDLE_USER_CHECK(std::any_of(unrolled.steps.begin(), unrolled.steps.end(), isIt),
                    "--inject: rank {} issues nothing for instruction {} ({})", fault.rank,
                    fault.instruction, texts[fault.instruction]);
}

}  // namespace heddle::tools
