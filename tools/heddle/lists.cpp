// Implements the commands that list the ops and the devices.
#include <cstdio>

#include "codegen/compile/cpp_compiler.h"
#include "codegen/kernel.h"
#include "host/device/cpu/cpu_device.h"
#include "host/device/load_module.h"
#include "ir/text/op_listing.h"
#include "tools/heddle/options.h"

namespace heddle::tools {
namespace {

void line(const char* what, const std::string& text) {
  std::printf("%-10s %s\n", what, text.c_str());
}

// Returns only the version of a compiler, which is the second line of KernelCompiler::identity().
// The options and CPU features in the following lines are too long to print.
std::string versionOf(const std::string& identity) {
  const size_t program = identity.find('\n');
  if (program == std::string::npos) return identity;
  const size_t begin = program + 1;
  return identity.substr(begin, identity.find('\n', begin) - begin);
}

}  // namespace

int opsCommand(const Options& options) {
  std::fputs((options.markdown ? opsMarkdown() : listOps()).c_str(), stdout);
  return 0;
}

int devicesCommand(const Options&) {
  line("cpu", host::makeCpuDevice()->description());
  std::string why;
  const std::unique_ptr<codegen::KernelCompiler> compiler = codegen::makeCppCompiler(why);
  line("", compiler ? "compiler: " + versionOf(compiler->identity()) : "no compiler: " + why);
  const int gpus = host::cudaDeviceCount(why);
  if (gpus == 0) line("cuda", "none: " + why);
  for (int i = 0; i < gpus; ++i) line("cuda", host::makeCudaDevice(i)->description());
  line("mpi", host::findMpiModule(why) != nullptr ? "present" : "absent: " + why);
  line("nccl", host::findNcclModule(why) != nullptr ? "present" : "absent: " + why);
  return 0;
}

}  // namespace heddle::tools
