#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle {

// Returns true if the environment variable HEDDLE_VERIFY_EACH is set to anything but "" and "0".
// ctest sets it for every test.
bool verifyEachByDefault();

// Options of a pipeline, a sequence of passes. One pipeline transforms fusions (ir/graph/fusion.h).
// A second one transforms host programs (host/program/program.h).
struct PassOptions {
  // Names of the passes to skip. The pipeline throws UserError for a name that no pass has.
  std::vector<std::string> skip;
  // Called after each pass that changed the fusion or the program. `text` is the text form after
  // the pass.
  std::function<void(std::string_view pass, const std::string& text)> dump;
  // Called after every pass with its duration. If the pipeline runs a pass on two versions of a
  // program, the pass is reported twice.
  std::function<void(std::string_view pass, double seconds)> timing;
  // true: the pipeline verifies its final result. A caller that verifies the result itself, or has
  // already done so, sets this to false.
  bool verify = true;
  // true: the pipeline verifies the fusion or the program after every pass. If a verification
  // fails, the pipeline throws InternalError with the name of the pass.
  bool verify_each = verifyEachByDefault();
};

// Throws UserError if `skip` contains a name that is not in `names`.
void checkSkippedPasses(const std::vector<std::string>& skip,
                        const std::vector<std::string_view>& names);

// Throws InternalError. The message says that this pass broke the fusion or the program, and
// contains the message of `error`.
[[noreturn]] void passIsWrong(std::string_view pass, const std::exception& error);

// Calls work() and returns its result. Reports the duration in seconds to options.timing, as the
// duration of the pass `name`.
template <class Work>
auto timedPass(const PassOptions& options, std::string_view name, const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  auto result = work();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (options.timing) options.timing(name, took.count());
  return result;
}

// Runs passes one by one, and skips, times, dumps and verifies them as the options say. Ir is
// Fusion (ir/graph/fusion.h) or host::Program (host/program/program.h). The options must outlive
// the driver.
template <class Ir>
class PassDriver {
 public:
  using Same = bool (*)(const Ir&, const Ir&);
  using Print = std::string (*)(const Ir&);

  PassDriver(const PassOptions& options, Same same, Print print)
      : options_(options), same_(same), print_(print) {}

  bool skips(std::string_view name) const {
    for (const std::string& skipped : options_.skip) {
      if (skipped == name) return true;
    }
    return false;
  }

  // Returns pass(input), or `input` if the pass is skipped. verify(result) must throw an exception
  // if the result is not valid after this pass.
  template <class Pass, class Verify>
  Ir run(std::string_view name, Ir input, const Pass& pass, const Verify& verify) const {
    if (skips(name)) return input;
    const Ir before = options_.dump ? input : Ir();
    Ir result = timedPass(options_, name, [&] { return pass(std::move(input)); });
    if (options_.dump && !same_(before, result)) options_.dump(name, print_(result));
    if (options_.verify_each) {
      try {
        verify(result);
      } catch (const std::exception& error) {
        passIsWrong(name, error);
      }
    }
    return result;
  }

 private:
  const PassOptions& options_;
  Same same_;
  Print print_;
};

}  // namespace heddle
