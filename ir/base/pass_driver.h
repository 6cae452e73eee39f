#pragma once

#include <chrono>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/base/pass_options.h"

namespace heddle {

// Throws UserError if `skip` contains a name that is not in `names`.
void checkSkippedPasses(const std::vector<std::string>& skip,
                        const std::vector<std::string_view>& names);

// Throws InternalError, because the pass has produced an invalid fusion or program. The message
// names the pass and contains the message of `error`.
[[noreturn]] void passIsWrong(std::string_view pass, const std::exception& error);

// Calls work() and returns its result. Then calls options.timing, if it is set, with `name` and the
// duration of work() in seconds.
template <class Work>
auto timedPass(const PassOptions& options, std::string_view name, const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  auto result = work();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (options.timing) options.timing(name, took.count());
  return result;
}

// Runs passes one by one. PassOptions::skip, dump, timing and verify_each apply to each of them. Ir
// is Fusion (ir/graph/fusion.h) or host::Program (host/program/program.h). The options must outlive
// the driver. `same` returns whether two Irs are equal, and `print` returns the text form.
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

  // Returns pass(input), or `input` if the pass is skipped. With PassOptions::verify_each, run()
  // calls verify(result) after the pass. If `verify` throws an exception because the result is not
  // valid, run() throws InternalError.
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
