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
  // Called after a pass that changed the fusion or the program, with its text form.
  std::function<void(std::string_view pass, const std::string& text)> dump;
  // Called after every pass. A pass that runs on two versions of a program is reported twice.
  std::function<void(std::string_view pass, double seconds)> timing;
  // false leaves out the verification at the end of a pipeline, for a caller that verifies the
  // result itself or that already verified this fusion with other default sizes.
  bool verify = true;
  // true verifies after every pass. If a pass broke the fusion or the program, this is an
  // InternalError that names the pass.
  bool verify_each = verifyEachByDefault();
};

// Throws UserError if `skip` contains a name that is not in `names`.
void checkSkippedPasses(const std::vector<std::string>& skip,
                        const std::vector<std::string_view>& names);

// Throws InternalError: this pass broke the fusion or the program, with the text of `error`.
[[noreturn]] void passIsWrong(std::string_view pass, const std::exception& error);

// Calls work() and reports its seconds to options.timing under `name`.
template <class Work>
auto timedPass(const PassOptions& options, std::string_view name, const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  auto result = work();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (options.timing) options.timing(name, took.count());
  return result;
}

// Runs single passes with the same options: skips, times, dumps and verifies them. Ir is Fusion or
// host::Program. The options must outlive the driver.
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

  // Returns pass(input), or `input` if the pass is skipped. `verify` throws if its argument is not
  // legal after this pass.
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
