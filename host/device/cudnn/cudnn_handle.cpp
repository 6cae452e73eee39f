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
  static std::map<int, std::weak_ptr<SharedHandle>> handles;
  const std::lock_guard lock(mutex);
  std::weak_ptr<SharedHandle>& known = handles[device];
  std::shared_ptr<SharedHandle> handle = known.lock();
  if (handle == nullptr) known = handle = std::make_shared<SharedHandle>(device);
  return handle;
}

}  // namespace heddle::host::cudnn
