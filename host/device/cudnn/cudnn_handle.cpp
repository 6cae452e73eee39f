#include "host/device/cudnn/cudnn_handle.h"

#include <map>

#include "host/device/cudnn/cudnn_check.h"

namespace heddle::host::cudnn {

SharedHandle::SharedHandle(int on) : device(on) {
  const CurrentDevice current(device);
  check(cudnnCreate(&handle), "cudnnCreate");
}

SharedHandle::~SharedHandle() { cudnnDestroy(handle); }

std::shared_ptr<SharedHandle> handleOf(int device) {
  static std::mutex mutex;
  // Not destroyed when the process ends, because CUDA may end first.
  static auto* const handles = new std::map<int, std::shared_ptr<SharedHandle>>;
  const std::lock_guard lock(mutex);
  std::shared_ptr<SharedHandle>& handle = (*handles)[device];
  if (handle == nullptr) handle = std::make_shared<SharedHandle>(device);
  return handle;
}

}  // namespace heddle::host::cudnn
