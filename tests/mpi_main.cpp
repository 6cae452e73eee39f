// The main() of tests that run under mpirun. Every rank runs the same GoogleTest suites. main()
// does not start MPI: the World of the tests starts it. Rank 0 prints the progress. Each rank
// prints its own failures with its number.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

namespace {

// The exit code if every test was skipped. ctest then counts the job as skipped (SKIP_RETURN_CODE).
constexpr int kAllSkipped = 77;

std::string rankOfJob() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return rank == nullptr ? "0" : rank;
}

class RankedFailures : public testing::EmptyTestEventListener {
 public:
  explicit RankedFailures(std::string rank) : rank_(std::move(rank)) {}

  void OnTestStart(const testing::TestInfo& test) override {
    test_ = std::string(test.test_suite_name()) + "." + test.name();
  }
  void OnTestEnd(const testing::TestInfo&) override { test_ = "outside a test"; }

  // GoogleTest holds its lock during this call, so this function must not ask GoogleTest for the
  // current test. Prints each failure with a single write: otherwise lines of two ranks could be
  // mixed.
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    const std::string file = result.file_name() == nullptr ? "?" : result.file_name();
    const std::string text = "[rank " + rank_ + "] FAILED " + test_ + "\n" + file + ":" +
                             std::to_string(result.line_number()) + "\n" + result.message() + "\n";
    std::fputs(text.c_str(), stderr);
  }

 private:
  std::string rank_;
  std::string test_ = "outside a test";
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::string rank = rankOfJob();
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  if (rank != "0") delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new RankedFailures(rank));

  const int failed = RUN_ALL_TESTS();
  if (failed != 0) return failed;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  if (all.test_to_run_count() > 0 && all.successful_test_count() == 0) return kAllSkipped;
  return 0;
}
