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

// The options that the pipelines of fusion passes and of host passes share.
struct PassOptions {
  // Names of the passes to leave out. A name of no pass is a UserError.
  std::vector<std::string> skip;
  // Called after each pass that changed the fusion or the program, with the new text form.
  std::function<void(std::string_view pass, const std::string& text)> dump;
  // Called after every pass with its duration. A pass that runs on two versions of a program is
  // reported twice.
  std::function<void(std::string_view pass, double seconds)> timing;
  // false leaves out the verification at the end of a pipeline, for a caller that verifies the
  // result itself or that already verified this fusion with other default sizes.
  bool verify = true;
  // true verifies the fusion or the program after every pass. If the verification fails, the
  // pipeline throws InternalError with the name of the pass.
  bool verify_each = verifyEachByDefault();
};

// Throws UserError if `skip` contains a name that is not in `names`.
void checkSkippedPasses(const std::vector<std::string>& skip,
                        const std::vector<std::string_view>& names);

// Throws an InternalError that names the pass as the one that broke the fusion or the program, and
// that contains the message of `error`.
[[noreturn]] void passIsWrong(std::string_view pass, const std::exception& error);

// Returns work(). Reports its duration in seconds to options.timing as that of pass `name`.
template <class Work>
auto timedPass(const PassOptions& options, std::string_view name, const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  auto result = work();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (options.timing) options.timing(name, took.count());
  return result;
}

// Runs passes one by one with the same options, which say whether to skip, time, dump and verify a
// pass. Ir is Fusion or host::Program. The options must outlive the driver.
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

  // Returns pass(input), or `input` if the pass is skipped. verify(result) must throw if the result
  // is not legal after this pass.
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
