#include "host/device/load_module.h"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "ir/base/check.h"

namespace heddle::host {
namespace {

std::string folderOfThisLibrary() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&folderOfThisLibrary), &info) == 0) return "";
  const std::string file = info.dli_fname == nullptr ? "" : info.dli_fname;
  const size_t slash = file.rfind('/');
  return slash == std::string::npos ? "" : file.substr(0, slash);
}

// Returns the paths that findModuleEntry() tries, in order.
std::vector<std::string> pathsOf(const char* library) {
  std::vector<std::string> paths;
  const std::string own = folderOfThisLibrary();
  if (!own.empty()) paths.push_back(own + "/" + library);
  const char* configured = std::getenv("HEDDLE_MODULE_DIR");
  if (configured != nullptr && *configured != '\0') {
    paths.push_back(std::string(configured) + "/" + library);
  }
  paths.emplace_back(library);
  return paths;
}

template <class Module>
const Module* find(const char* library, const char* symbol, std::string& why) {
  void* entry = findModuleEntry(library, symbol, why);
  if (entry == nullptr) return nullptr;
  return reinterpret_cast<const Module* (*)()>(entry)();
}

template <class Module>
const Module& require(const Module* (*find)(std::string&)) {
  std::string why;
  const Module* module = find(why);
  if (module == nullptr) throwUserError(why, ErrorCode::Unsupported);
  return *module;
}

}  // namespace

// No cache is needed: if a library is already loaded, dlopen() returns the loaded one. RTLD_LOCAL
// hides the symbols of a module, and of the libraries that it loads, from all libraries that are
// loaded later. Otherwise such a library could call functions of the module's libraries by mistake,
// for example those of another MPI library than its own.
void* findModuleEntry(const char* library, const char* symbol, std::string& why) {
  why = fmt::format("{} cannot be loaded", library);
  for (const std::string& path : pathsOf(library)) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* said = dlerror();
      why += fmt::format("; {}: {}", path, said == nullptr ? "unknown error" : said);
      continue;
    }
    void* entry = dlsym(handle, symbol);
    if (entry != nullptr) {
      why.clear();
      return entry;
    }
    why += fmt::format("; {}: has no entry point {}", path, symbol);
  }
  return nullptr;
}

const CudaModule* findCudaModule(std::string& why) {
  return find<CudaModule>("libheddle_cuda.so", "heddleCudaModule", why);
}
const comm::NcclModule* findNcclModule(std::string& why) {
  return find<comm::NcclModule>("libheddle_nccl.so", "heddleNcclModule", why);
}
const comm::MpiModule* findMpiModule(std::string& why) {
  return find<comm::MpiModule>("libheddle_mpi.so", "heddleMpiModule", why);
}

const CudaModule& cudaModule() { return require<CudaModule>(findCudaModule); }
const comm::NcclModule& ncclModule() { return require<comm::NcclModule>(findNcclModule); }
const comm::MpiModule& mpiModule() { return require<comm::MpiModule>(findMpiModule); }

}  // namespace heddle::host
