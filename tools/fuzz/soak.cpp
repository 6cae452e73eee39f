#include "tools/fuzz/soak.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>

#include "codegen/compile/image_cache.h"
#include "host/device/cpu/cpu_device.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "ir/types/npy.h"
#include "tools/random/case_files.h"
#include "tools/random/reduce.h"
#include "tools/random/run_case.h"

namespace heddle::fuzz {
namespace {

namespace fs = std::filesystem;
using random::FusionCase;

std::unique_ptr<host::Device> makeDevice(const std::string& name) {
  if (name == "none") return nullptr;
  HEDDLE_USER_CHECK(name == "cpu" || name == "cuda", "--device {}: expected cpu, cuda or none",
                    name);
  return name == "cuda" ? host::makeCudaDevice(0) : host::makeCpuDevice();
}

random::GeneratorOptions generatorOf(const SoakOptions& options) {
  static const std::map<std::string, OpKind> kinds = {
      {"full", OpKind::Full}, {"iota", OpKind::Iota},       {"index", OpKind::Index},
      {"scan", OpKind::Scan}, {"scatter", OpKind::Scatter}, {"matmul", OpKind::Matmul}};
  random::GeneratorOptions generator;
  for (const std::string& name : options.without) {
    if (name == "wild-casts") {
      generator.wild_casts = false;
      continue;
    }
    HEDDLE_USER_CHECK(kinds.contains(name),
                      "--without {}: expected full, iota, index, scan, scatter, matmul or "
                      "wild-casts",
                      name);
    generator.without.push_back(kinds.at(name));
  }
  return generator;
}

// A cache of compiled kernels in a temporary folder. The destructor removes the folder, because no
// later process needs the kernels of random fusions.
struct Images {
  fs::path folder = fs::temp_directory_path() / fmt::format("heddle-fuzz-{}", ::getpid());
  codegen::ImageCache cache{folder.string()};
  ~Images() {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
};

class Soak {
 public:
  explicit Soak(const SoakOptions& options)
      : options_(options), device_(makeDevice(options.device)) {}

  int run() {
    const auto start = std::chrono::steady_clock::now();
    uint64_t seed = options_.seed;
    for (; !isOver(start, seed); ++seed) one(seed);
    const random::Comparison& c = total_;
    fmt::print(
        "heddle-fuzz: {} fusions, seeds {} to {}: {} failed; {} elements, {} compared ({} of them "
        "exactly), {} excluded\n",
        seed - options_.seed, options_.seed, seed - 1, failures_, c.elements, c.compared, c.exact,
        c.elements - c.compared);
    return failures_ == 0 ? 0 : 1;
  }

 private:
  bool isOver(std::chrono::steady_clock::time_point start, uint64_t seed) const {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    if (failures_ >= options_.most_failures) return true;
    if (options_.count > 0) return seed - options_.seed >= static_cast<uint64_t>(options_.count);
    return elapsed.count() >= options_.seconds;
  }

  std::string check(const FusionCase& fusion_case, random::Comparison* comparison) const {
    std::string failure = random::checkWithoutDevice(fusion_case);
    if (!failure.empty() || device_ == nullptr) return failure;
    const random::CaseResult result = random::checkOn(*device_, &images_.cache, fusion_case);
    if (comparison != nullptr) *comparison += result.comparison;
    return result.failure;
  }

  void one(uint64_t seed) {
    const FusionCase made = random::randomCase(seed, generatorOf(options_));
    const std::string failure = check(made, &total_);
    if (failure.empty()) return;
    ++failures_;
    fmt::print("seed {}: {}\n", seed, failure);
    fs::create_directories(options_.out);
    const std::string path = (fs::path(options_.out) / fmt::format("seed-{}", seed)).string();
    random::writeCase(made, path);
    if (options_.reduces) writeReduced(made, path + "-reduced");
    std::fflush(stdout);
  }

  void writeReduced(const FusionCase& made, const std::string& path) const {
    const FusionCase small = random::reduce(
        made, [&](const FusionCase& candidate) { return !check(candidate, nullptr).empty(); }, 300);
    random::writeCase(small, path);
    fmt::print(
        "{}\n{}\nreplay: {} --device {}\n    or: heddle-fuzz --replay {}.fusion --device {}\n",
        check(small, nullptr), print(small.fusion), random::replayCommand(small, path),
        options_.device, path, options_.device);
  }

  SoakOptions options_;
  mutable Images images_;
  std::unique_ptr<host::Device> device_;
  random::Comparison total_;
  int failures_ = 0;
};

}  // namespace

int soak(const SoakOptions& options) { return Soak(options).run(); }

int writeCases(const SoakOptions& options) {
  fs::create_directories(options.out);
  for (int64_t i = 0; i < options.count; ++i) {
    const uint64_t seed = options.seed + static_cast<uint64_t>(i);
    const FusionCase made = random::randomCase(seed, generatorOf(options));
    const std::string path = (fs::path(options.out) / fmt::format("seed-{}", seed)).string();
    random::writeCase(made, path);
    const std::vector<random::Bounded> outputs =
        random::evaluateBounded(made.fusion, made.inputs, made.sizes);
    for (size_t k = 0; k < outputs.size(); ++k) {
      const std::string& name = made.fusion.value(made.fusion.outputs()[k]).name;
      writeNpy(fmt::format("{}.out.{}.npy", path, name), outputs[k].value);
      writeNpy(fmt::format("{}.bound.{}.npy", path, name),
               random::doubles(outputs[k].value, outputs[k].errors));
    }
  }
  fmt::print("heddle-fuzz: {} fusions in {}\n", options.count, options.out);
  return 0;
}

int replayCase(const std::string& file, const std::string& device_name) {
  const FusionCase read = random::readCase(file);
  std::string failure = random::checkWithoutDevice(read);
  const std::unique_ptr<host::Device> device = makeDevice(device_name);
  if (failure.empty() && device != nullptr) {
    random::CaseResult result = random::checkOn(*device, nullptr, read);
    fmt::print("{} of {} elements compared\n", result.comparison.compared,
               result.comparison.elements);
    failure = result.failure;
  }
  fmt::print("{}\n", failure.empty() ? "no failure" : failure);
  return failure.empty() ? 0 : 1;
}

}  // namespace heddle::fuzz
