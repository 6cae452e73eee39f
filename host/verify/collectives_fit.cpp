#include "host/verify/collectives_fit.h"

#include "comm/operation.h"
#include "ir/base/check.h"

namespace heddle::host {

using comm::CollectiveKind;

bool collectivesFit(const comm::Operation& a, const comm::Operation& b) {
  if (a.kind == CollectiveKind::AllToAllV && b.kind == a.kind) return a.dtype == b.dtype;
  return comm::agree(a, 0, b, 0);
}

std::string postText(const comm::Operation& operation) {
  if (operation.kind != CollectiveKind::AllToAllV) return comm::describe(operation);
  return fmt::format("{} of {}", comm::name(operation.kind), name(operation.dtype));
}

}  // namespace heddle::host
