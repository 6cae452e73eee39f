#include "tools/fuzz/commands.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <variant>

#include "ir/base/check.h"
#include "ir/reference/sparse.h"
#include "tools/heddle/options.h"
#include "tools/heddle/source.h"

namespace heddle::fuzz {
namespace {

constexpr int64_t kLargestDefault = 8;  // replaces larger default sizes
// A fusion does not run if an input or an output has more elements. A host program does not run if
// a slot has more elements.
constexpr int64_t kMostElements = 1 << 16;
constexpr double kMostOperations = 1e7;        // limit for the operations of the reference
constexpr int64_t kMemory = int64_t{1} << 26;  // memory limit of each rank, in bytes

// Redirects stdout and stderr to /dev/null while the object exists.
class Silence {
 public:
  Silence() : out_(redirect(stdout)), error_(redirect(stderr)) {}
  ~Silence() {
    restore(stdout, out_);
    restore(stderr, error_);
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  static int redirect(FILE* file) {
    std::fflush(file);
    const int saved = dup(fileno(file));
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, fileno(file));
    close(null);
    return saved;
  }
  static void restore(FILE* file, int saved) {
    std::fflush(file);
    dup2(saved, fileno(file));
    close(saved);
  }
  int out_;
  int error_;
};

const std::vector<std::pair<std::string, int64_t>>& defaultsOf(const tools::Source& source) {
  if (const auto* fusion = std::get_if<Fusion>(&source)) return fusion->size_defaults;
  return std::get<host::Program>(source).size_defaults;
}

bool isSmall(const TensorView& tensor, const SizeBindings& sizes) {
  int64_t elements = 1;
  for (const Size& size : tensor.sizes()) {
    const int64_t extent = size.evaluate([&](const std::string& symbol) -> std::optional<int64_t> {
      const auto found = sizes.find(symbol);
      // A symbol without a default, such as `ranks` or the index of a loop, usually has a small
      // value. Assume kLargestDefault.
      return found == sizes.end() ? kLargestDefault : found->second;
    });
    if (extent > kMostElements) return false;
    elements *= std::max<int64_t>(extent, 1);
    if (elements > kMostElements) return false;
  }
  return true;
}

bool isSmall(const Fusion& fusion, const SizeBindings& sizes) {
  WantedElements wanted;
  for (const ValueId id : fusion.outputs()) {
    std::vector<int64_t> extents;
    if (!isSmall(fusion.tensor(id), sizes)) return false;
    for (const Size& size : fusion.tensor(id).sizes()) {
      extents.push_back(size.evaluate(lookupIn(sizes)));
    }
    wanted.emplace_back(Selection::all(extents));
  }
  return referenceCostAt(fusion, sizes, wanted).operations < kMostOperations;
}

bool isSmall(const host::Program& program, const SizeBindings& sizes) {
  const auto isSmallSlot = [&](const host::Slot& slot) { return isSmall(slot.tensor, sizes); };
  const auto isSmallCallee = [&](const host::Program& callee) { return isSmall(callee, sizes); };
  return std::all_of(program.slots.begin(), program.slots.end(), isSmallSlot) &&
         std::all_of(program.callees.begin(), program.callees.end(), isSmallCallee);
}

// Returns whether a run of the text needs little memory and, for a fusion, little time of the
// reference. A mutated text often asks for gigabytes, and heddle accepts any sizes that the machine
// can hold.
bool isSmall(const tools::Source& source, const SizeBindings& sizes) {
  for (const tools::InputSpec& input : tools::inputsOf(source)) {
    if (!isSmall(input.tensor, sizes)) return false;
  }
  if (const auto* fusion = std::get_if<Fusion>(&source)) return isSmall(*fusion, sizes);
  return isSmall(std::get<host::Program>(source), sizes);
}

}  // namespace

Commands::Commands() { setenv("HEDDLE_CXX", "/no/compiler", 1); }

void Commands::run(const std::string& text, const std::string& extension) {
  tools::Options options;
  options.file = folder_.path() + "/input" + extension;
  std::ofstream(options.file, std::ios::binary) << text;
  const Silence silence;
  const tools::Source source = tools::readSource(options.file);
  SizeBindings sizes;
  for (const auto& [symbol, value] : defaultsOf(source)) {
    sizes[symbol] = std::min(value, kLargestDefault);
    options.set.push_back(fmt::format("{}={}", symbol, sizes[symbol]));
  }
  options.device = "cpu";
  options.ranks = 4;
  tools::verifyCommand(options);
  tools::dumpCommand(options);
  if (!isSmall(source, sizes)) return;
  options.memory_limit = kMemory;
  options.patience = 5;
  const bool is_fusion = std::holds_alternative<Fusion>(source);
  if (is_fusion) options.check = "full";
  for (const int ranks : {1, 2}) {
    options.ranks = ranks;
    const int code = tools::runCommand(options);
    // A mutated program may leave an output unwritten, so its ranks may return different values.
    HEDDLE_CHECK(code == 0 || !is_fusion, "the check of {} rank(s) failed", ranks);
  }
}

}  // namespace heddle::fuzz
