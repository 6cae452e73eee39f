#include "codegen/families/shared_launch.h"

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <cstring>
#include <map>

#include "ir/base/ceil_div.h"
#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

// The bytes of an i64 in the argument struct (codegen/families/shared_launch.h).
constexpr size_t kFieldBytes = 8;
constexpr size_t kTableAlignment = 8;
// In the argument struct, the length of `first` is a multiple of kPartStep, and the bytes of
// `table` are a multiple of kByteStep. Two launches whose numbers of parts differ little then often
// have the same text.
constexpr size_t kPartStep = 16;
constexpr size_t kByteStep = 512;

size_t roundUp(size_t n, size_t step) { return (n + step - 1) / step * step; }

template <class T>
void put(std::vector<std::byte>& bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

size_t headerBytes(size_t bodies, size_t most_parts) {
  return kFieldBytes * (1 + 2 * bodies) + roundUp(sizeof(int32_t) * most_parts, kTableAlignment);
}

}  // namespace

void SharedLaunches::add(TileProgram program, std::string text, std::string schedule,
                         const std::vector<int>& operands, int32_t entry) {
  auto body = std::find_if(bodies_.begin(), bodies_.end(),
                           [&](const Body& known) { return known.text == text; });
  if (body == bodies_.end()) {
    bodies_.push_back({std::move(text), std::move(schedule), {}, {}});
    body = bodies_.end() - 1;
  }
  body->structs.push_back({entry, 0, program.frame.args.values()});
  LaunchStage part = makeStage(program);
  for (LaunchStage::PointerPatch& patch : part.pointers) {
    patch.operand = operands.at(static_cast<size_t>(patch.operand));
  }
  for (LaunchStage::ScalarPatch& patch : part.scalars) {
    patch.operand = operands.at(static_cast<size_t>(patch.operand));
  }
  body->parts.push_back(std::move(part));
}

// Divides the parts into launches, in the order of the bodies. Fills a launch up to the limits
// before it begins the next one. The computed size of an argument struct may contain the fields of
// one body too many.
std::vector<SharedLaunches::Launch> SharedLaunches::divide() const {
  const size_t limit = target_ == Target::Cuda ? kMostArgumentBytes : SIZE_MAX;
  std::vector<Launch> launches;
  size_t bytes = 0;
  size_t parts = 0;
  for (size_t b = 0; b < bodies_.size(); ++b) {
    for (size_t p = 0; p < bodies_[b].parts.size(); ++p) {
      bytes += bodies_[b].parts[p].args.size();
      const size_t most = roundUp(++parts + 1, kPartStep);
      const size_t bodies = launches.empty() ? 1 : launches.back().size() + 1;
      const bool full = roundUp(bytes, kByteStep) + headerBytes(bodies, most) > limit;
      const bool other_body = p == 0 && bodies > kMostBodies;
      if (launches.empty() || full || other_body) {
        launches.emplace_back();
        bytes = bodies_[b].parts[p].args.size();
        parts = 1;
      }
      Launch& launch = launches.back();
      if (launch.empty() || launch.back().body != b) launch.push_back({b, p, p});
      launch.back().end = p + 1;
    }
  }
  return launches;
}

std::vector<SharedLaunches::Kind> SharedLaunches::kindsOf(
    const std::vector<Launch>& launches) const {
  std::vector<Kind> kinds;
  for (const Launch& launch : launches) {
    std::vector<size_t> bodies;
    size_t parts = 0;
    size_t bytes = 0;
    for (const Range& range : launch) {
      const std::vector<LaunchStage>& of_body = bodies_[range.body].parts;
      bodies.push_back(range.body);
      parts += range.end - range.begin;
      bytes += (range.end - range.begin) * of_body.front().args.size();
    }
    auto kind = std::find_if(kinds.begin(), kinds.end(),
                             [&](const Kind& known) { return known.bodies == bodies; });
    if (kind == kinds.end()) {
      kinds.push_back({bodies, {}, {}});
      kind = kinds.end() - 1;
    }
    kind->launches.push_back(launch);
    SharedKernel& kernel = kind->kernel;
    kernel.block = bodies_[bodies.front()].parts.front().block;
    kernel.most_parts = std::max(kernel.most_parts, roundUp(parts + 1, kPartStep));
    kernel.table_bytes = std::max(kernel.table_bytes, roundUp(bytes, kByteStep));
    kernel.bytes = headerBytes(bodies.size(), kernel.most_parts) + kernel.table_bytes;
  }
  return kinds;
}

// Returns a launch with its argument struct (shared_launch.h describes the fields). Adds the
// argument structs of the parts to `layout`.
LaunchStage SharedLaunches::stageOfLaunch(const SharedKernel& kernel, const Launch& launch,
                                          StageLayout& layout) const {
  LaunchStage stage;
  stage.entry = kernel.entry;
  stage.grid = 0;
  stage.block = kernel.block;
  stage.args.resize(kernel.bytes);
  const size_t begins = kFieldBytes;
  const size_t offsets = begins + kFieldBytes * launch.size();
  const size_t firsts = offsets + kFieldBytes * launch.size();
  const size_t table = kernel.bytes - kernel.table_bytes;
  layout.first = static_cast<int32_t>(firsts);
  size_t parts = 0;
  size_t at_byte = table;
  for (size_t b = 0; b < launch.size(); ++b) {
    put(stage.args, begins + kFieldBytes * b, static_cast<int64_t>(parts));
    put(stage.args, offsets + kFieldBytes * b, static_cast<int64_t>(at_byte - table));
    for (size_t p = launch[b].begin; p < launch[b].end; ++p) {
      const LaunchStage& part = bodies_[launch[b].body].parts[p];
      put(stage.args, firsts + sizeof(int32_t) * parts++, static_cast<int32_t>(stage.grid));
      std::memcpy(stage.args.data() + at_byte, part.args.data(), part.args.size());
      layout.structs.push_back(bodies_[launch[b].body].structs[p]);
      layout.structs.back().offset = static_cast<int32_t>(at_byte);
      for (LaunchStage::PointerPatch patch : part.pointers) {
        patch.offset += static_cast<int32_t>(at_byte);
        stage.pointers.push_back(patch);
      }
      for (LaunchStage::ScalarPatch patch : part.scalars) {
        patch.offset += static_cast<int32_t>(at_byte);
        stage.scalars.push_back(patch);
      }
      stage.grid += part.grid;
      at_byte += part.args.size();
    }
  }
  put(stage.args, 0, static_cast<int64_t>(parts));
  put(stage.args, firsts + sizeof(int32_t) * parts, static_cast<int32_t>(stage.grid));
  return stage;
}

std::string SharedLaunches::describeLaunch(const Launch& launch) const {
  size_t parts = 0;
  std::string bodies;
  for (const Range& range : launch) {
    const size_t of_body = range.end - range.begin;
    parts += of_body;
    bodies += fmt::format("\n  {} as {}", of_body, bodies_[range.body].schedule);
  }
  return fmt::format("one launch of {} parts{}", parts, bodies);
}

SharedLaunches::Result SharedLaunches::finish() const {
  Result result;
  std::map<size_t, std::string> names;  // body -> its name
  for (Kind& kind : kindsOf(divide())) {
    // The underscore at the end ensures that no entry is the beginning of another entry.
    kind.kernel.entry = fmt::format("{}_k{}_", entry_, result.kernels.size());
    for (size_t b : kind.bodies) {
      const auto [name, is_new] =
          names.try_emplace(b, fmt::format("{}body{}_", kind.kernel.entry, b));
      kind.kernel.bodies.push_back(name->second);
      if (!is_new) continue;
      std::string text = bodies_[b].text;
      boost::replace_all(text, bodyName(), name->second);
      result.bodies += text;
    }
    for (const Launch& launch : kind.launches) {
      result.stages.push_back(stageOfLaunch(kind.kernel, launch, result.layouts.emplace_back()));
      result.description += (result.description.empty() ? "" : "\n") + describeLaunch(launch);
    }
    result.kernels.push_back(std::move(kind.kernel));
  }
  return result;
}

}  // namespace heddle::codegen
