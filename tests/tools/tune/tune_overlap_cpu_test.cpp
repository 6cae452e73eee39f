#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "host/device/cpu/cpu_device.h"
#include "host/executable.h"
#include "host/job/worlds.h"
#include "host/peak_memory.h"
#include "host/plan/bind_inputs.h"
#include "host/tensor.h"
#include "host/text/program_text.h"
#include "host/unroll/unroll.h"
#include "tests/comm/ranks.h"
#include "tests/host/executable_common.h"
#include "tests/tools/cli.h"
#include "tools/tune/tune_overlap.h"

namespace heddle::tools::tune_overlap_cpu_test {
namespace {

constexpr int kRanks = 2;

// The choices are stored in a folder of the test.
class TuneOverlap : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    const char* before = std::getenv("HEDDLE_CACHE_DIR");
    if (before != nullptr) before_ = before;
    setenv("HEDDLE_CACHE_DIR", (folder_ / "cache").c_str(), 1);
    options_.file = "examples/tp_mlp.fusion";
    options_.tune = "full";
    prepared_.source = readSource(options_.file);
    bindInputs(prepared_, options_);
    compileProgram(prepared_, options_, kRanks);
    candidates_ = overlapCandidates(prepared_, options_, kRanks);
  }
  void TearDown() override {
    before_ ? setenv("HEDDLE_CACHE_DIR", before_->c_str(), 1) : unsetenv("HEDDLE_CACHE_DIR");
    Cli::TearDown();
  }

  using Body = std::function<void(const Rank& rank, codegen::ImageCache& images)>;
  void onRanks(const Body& body) const {
    comm::conformance::expectAllWell(comm::conformance::runRanks(
        host::makeInProcessWorldsFor(host::DeviceKind::Cpu, kRanks),
        [&](std::unique_ptr<comm::World>& world) {
          const auto device = host::makeCpuDevice({.threads = 1, .adversarial_seed = {}});
          codegen::ImageCache images((folder_ / "cache").string());
          body(Rank{world->rank(), world->size(), device.get(), world.get(), nullptr}, images);
          world->barrier();
        }));
  }

  // Returns the choice of each rank.
  std::array<OverlapChoice, kRanks> choose(const OverlapOptions& options) {
    std::array<OverlapChoice, kRanks> choices;
    onRanks([&](const Rank& rank, codegen::ImageCache& images) {
      choices[static_cast<size_t>(rank.rank)] =
          chooseOverlap(rank, candidates_, prepared_.inputs, images, options);
    });
    return choices;
  }

  // Returns the first output of rank 0.
  HostTensor outputOf(const host::Program& program) {
    HostTensor output;
    onRanks([&](const Rank& rank, codegen::ImageCache& images) {
      host::Executable executable(program, {rank.device, rank.world, &images, {}});
      const host::Outputs outputs =
          executable.run(placeInputs(rank, executable.program(), prepared_.inputs));
      outputs.wait();
      if (rank.rank == 0) output = toHost(*rank.device, std::get<host::Tensor>(outputs[0]));
    });
    return output;
  }

  Options options_;
  Prepared prepared_;
  std::vector<OverlapCandidate> candidates_;

 private:
  std::optional<std::string> before_;
};

// Measures nothing: one candidate takes a second, and all others take two.
class FakeTimer : public CandidateTimer {
 public:
  explicit FakeTimer(size_t fastest) : fastest_(fastest) {}
  double run(size_t candidate) override { return candidate == fastest_ ? 1 : 2; }

 private:
  size_t fastest_;
};

OverlapOptions forced(size_t candidate) {
  OverlapOptions options;
  options.again = true;
  options.makeTimer = [=] { return std::make_unique<FakeTimer>(candidate); };
  return options;
}

TEST_F(TuneOverlap, CandidatesAreDifferentPrograms) {
  ASSERT_GE(candidates_.size(), 3u);
  EXPECT_EQ(candidates_[0].overlap, "auto");
  EXPECT_EQ(candidates_[1].overlap, "off");
  for (size_t i = 0; i < candidates_.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      EXPECT_NE(host::print(candidates_[i].program), host::print(candidates_[j].program));
    }
  }
}

TEST_F(TuneOverlap, LocalFusionsAndHostProgramsHaveOneCandidate) {
  for (const char* file : {"examples/softmax.fusion", "examples/ring_allgather.hostir"}) {
    Prepared other;
    Options options;
    options.file = file;
    other.source = readSource(options.file);
    bindInputs(other, options);
    compileProgram(other, options, kRanks);
    EXPECT_EQ(overlapCandidates(other, options, kRanks).size(), 1u) << file;
  }
}

TEST_F(TuneOverlap, AllRanksUseEachForcedChoiceAndGetTheSameNumbers) {
  const HostTensor expected = outputOf(candidates_[1].program);
  for (size_t i = 0; i < candidates_.size(); ++i) {
    for (const OverlapChoice& choice : choose(forced(i))) EXPECT_EQ(choice.chosen, i);
    const HostTensor got = outputOf(candidates_[i].program);
    ASSERT_EQ(got.numel(), expected.numel());
    for (int64_t k = 0; k < got.numel(); ++k) {
      const double wanted = toDouble(expected.at(k));
      EXPECT_NEAR(toDouble(got.at(k)), wanted, 1e-3 * (1 + std::fabs(wanted)))
          << candidates_[i].overlap << ", element " << k;
    }
  }
}

TEST_F(TuneOverlap, StoredChoiceIsUsedWithoutMeasuring) {
  const size_t last = candidates_.size() - 1;
  choose(forced(last));
  OverlapOptions stored;
  stored.makeTimer = [] {
    ADD_FAILURE() << "the choice is measured again";
    return std::make_unique<FakeTimer>(0);
  };
  for (const OverlapChoice& choice : choose(stored)) {
    EXPECT_EQ(choice.chosen, last);
    EXPECT_TRUE(choice.results.empty());
  }
  for (const OverlapChoice& choice : choose(forced(0))) EXPECT_EQ(choice.chosen, 0u);
}

OverlapOptions given(const std::string& key, const std::string& choice) {
  OverlapOptions options;
  options.given = {{key, choice}};
  options.measures = false;
  options.makeTimer = [] {
    ADD_FAILURE() << "a job with a given choice measures";
    return std::make_unique<FakeTimer>(0);
  };
  return options;
}

TEST_F(TuneOverlap, GivenChoicesDecideWithoutMeasuring) {
  const std::string key = choose(forced(0))[0].key;
  ASSERT_FALSE(key.empty());
  for (size_t i = 0; i < candidates_.size(); ++i) {
    for (const OverlapChoice& choice : choose(given(key, "overlap " + candidates_[i].overlap))) {
      EXPECT_EQ(choice.chosen, i);
    }
  }
  // These choices do not apply: another job, an overlap that is no candidate, a kernel.
  const std::string other(64, '0');
  for (const OverlapOptions& options :
       {given(other, "overlap off"), given(key, "overlap 7"), given(key, "loops unroll=2")}) {
    EXPECT_EQ(choose(options)[0].chosen, 0u);
    EXPECT_EQ(choose(options)[0].origin, "first candidate");
  }
}

TEST_F(TuneOverlap, MissingChoicesAreErrorsIfOnlyGivenChoicesAreAllowed) {
  OverlapOptions options = given(std::string(64, '0'), "overlap off");
  options.given_only = true;
  onRanks([&](const Rank& rank, codegen::ImageCache& images) {
    const std::string error = host::testing::userErrorOf(
        [&] { chooseOverlap(rank, candidates_, prepared_.inputs, images, options); });
    EXPECT_NE(error.find("the file has no overlap for this job"), std::string::npos) << error;
  });
}

TEST_F(TuneOverlap, CandidatesRunOnAllRanks) {
  const auto choices = choose({});
  EXPECT_EQ(choices[0].chosen, choices[1].chosen);
  ASSERT_EQ(choices[0].results.size(), candidates_.size());
  for (const CandidateResult& result : choices[0].results) {
    EXPECT_GE(result.runs, 2);
    EXPECT_TRUE(std::isfinite(result.seconds));
  }
}

TEST_F(TuneOverlap, CommandPrintsTheChoiceAndChecksTheResult) {
  const std::string run = "run examples/tp_mlp.fusion --device cpu --ranks 2 --check=full ";
  const CliResult first = heddle(run + "--tune full");
  EXPECT_EQ(first.code, 0) << first.text;
  EXPECT_NE(first.text.find("\noverlap  "), std::string::npos) << first.text;
  const CliResult second = heddle(run + "--tune auto");
  EXPECT_EQ(second.code, 0) << second.text;
  EXPECT_NE(second.text.find(" (stored)\n"), std::string::npos) << second.text;
}

TEST_F(TuneOverlap, ExportedChoicesAreUsedWithAnEmptyCache) {
  const std::string file = (folder_ / "choices.txt").string();
  const std::string run = "run examples/tp_mlp.fusion --device cpu --ranks 2 --check=full ";
  const CliResult first = heddle(run + "--tune full --export " + file);
  EXPECT_EQ(first.code, 0) << first.text;
  setenv("HEDDLE_CACHE_DIR", (folder_ / "empty").c_str(), 1);
  const CliResult second = heddle(run + "--choices-only --choices " + file);
  EXPECT_EQ(second.code, 0) << second.text;
  EXPECT_NE(second.text.find(" (given)\n"), std::string::npos) << second.text;
  const CliResult other = heddle(run + "--set tokens=32 --choices-only --choices " + file);
  EXPECT_EQ(other.code, 2) << other.text;
  EXPECT_NE(other.text.find("the file has no overlap for this job"), std::string::npos)
      << other.text;
}

TEST_F(TuneOverlap, GivenOverlapsForcedKernelsAndFaultsAreKept) {
  const std::string run = "run examples/tp_mlp.fusion --device cpu --ranks 2 --tune full ";
  for (const char* option :
       {"--overlap 2", "--overlap auto", "--force k0=0", "--inject rank=1,instr=1,delay=0.01s"}) {
    const CliResult result = heddle(run + option);
    EXPECT_EQ(result.code, 0) << result.text;
    EXPECT_EQ(result.text.find("\noverlap  "), std::string::npos) << option << result.text;
  }
}

TEST_F(TuneOverlap, CandidatesNeedNoMoreMemoryThanTheFirst) {
  Prepared prepared;
  Options options;
  options.file = "examples/tp_mlp.fusion";
  options.set = {"tokens=131072"};
  prepared.source = readSource(options.file);
  bindInputs(prepared, options);
  compileProgram(prepared, options, 4);
  const auto peak = [&](const host::Program& program) {
    const host::Program inlined = host::concretized(program, 4);
    return host::peakOf(host::unroll(inlined, {prepared.inputs.sizes, {}, 0, 4}));
  };
  const std::vector<OverlapCandidate> candidates = overlapCandidates(prepared, options, 4);
  EXPECT_EQ(peak(candidates[0].program), 100'663'296);
  for (const OverlapCandidate& each : candidates) {
    EXPECT_LE(peak(each.program), peak(candidates[0].program)) << each.overlap;
    EXPECT_NE(each.overlap, "8") << "8 chunks need 151 MB";
  }
}

TEST_F(TuneOverlap, InputsThatTheRunWritesHaveTheirValuesAfterwards) {
  const std::string file = write("update.fusion", R"(heddle 1
mesh @m = [x=ranks]
fusion update(%acc: f32[t, h] shard(@m), %x: f32[t, k] shard(@m, 1: x), %w: f32[k, h] shard(@m, 0: x))
    with t = 64, h = 32, k = 64 {
  %y = matmul(%x, %w)
  %sum = add(%acc, %y)
  return %sum shard(@m) in %acc
}
)");
  const CliResult result =
      heddle("run " + file + " --device cpu --ranks 2 --check=full --tune full");
  EXPECT_EQ(result.code, 0) << result.text;
  EXPECT_NE(result.text.find("\noverlap  "), std::string::npos) << result.text;
}

}  // namespace
}  // namespace heddle::tools::tune_overlap_cpu_test
