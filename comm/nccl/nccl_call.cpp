#include "comm/nccl/nccl_call.h"

#include <chrono>
#include <cstdlib>
#include <thread>

#include "ir/base/check.h"

namespace heddle::comm::nccl {
namespace {

// Defaults of callDeadline() and postDeadline(), in seconds. They leave enough time for the first
// connections of a large job, and end before the usual limits of job schedulers.
constexpr int kDefaultDeadline = 120;
constexpr int kPostDeadline = 600;
// settle() first polls kYields times without sleeping. After that it sleeps for kSleep between
// polls.
constexpr int kYields = 1000;
constexpr auto kSleep = std::chrono::microseconds(100);

std::chrono::seconds givenOr(int otherwise) {
  const char* given = std::getenv("HEDDLE_NCCL_TIMEOUT");
  const int parsed = given == nullptr ? 0 : std::atoi(given);
  return std::chrono::seconds(parsed > 0 ? parsed : otherwise);
}

}  // namespace

std::chrono::seconds callDeadline() {
  static const std::chrono::seconds given = givenOr(kDefaultDeadline);
  return given;
}

std::chrono::seconds postDeadline() {
  static const std::chrono::seconds given = givenOr(kPostDeadline);
  return given;
}

void check(const char* call, ncclResult_t result, ncclComm_t comm) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  const char* last = ncclGetLastError(comm);
  userError("{} failed: {} ({})", call, ncclGetErrorString(result), last == nullptr ? "" : last);
}

void settle(const char* call, ncclComm_t comm, const FaultText& fault) {
  const auto start = std::chrono::steady_clock::now();
  for (int poll = 0;; ++poll) {
    ncclResult_t state = ncclInProgress;
    check("ncclCommGetAsyncError", ncclCommGetAsyncError(comm, &state), comm);
    check(call, state, comm);
    if (state == ncclSuccess) return;
    if (poll < kYields) {
      std::this_thread::yield();
      continue;
    }
    const std::string why = fault();
    HEDDLE_USER_CHECK(why.empty(), "{}: {}", call, why);
    HEDDLE_USER_CHECK(std::chrono::steady_clock::now() - start < callDeadline(),
                      "{}: no answer from the other ranks in {} s", call, callDeadline().count());
    std::this_thread::sleep_for(kSleep);
  }
}

ncclDataType_t dataTypeOf(DType dtype) {
  switch (dtype) {
    // f8 types are moved but never reduced, so only their size matters. operatorOf() handles
    // bools.
    case DType::Bool:
    case DType::U8:
    case DType::F8E4M3:
    case DType::F8E5M2:
      return ncclUint8;
    case DType::I8:
      return ncclInt8;
    case DType::I32:
      return ncclInt32;
    case DType::I64:
      return ncclInt64;
    case DType::F16:
      return ncclFloat16;
    case DType::BF16:
      return ncclBfloat16;
    case DType::F32:
      return ncclFloat32;
    case DType::F64:
      return ncclFloat64;
  }
  throwInternalError(__FILE__, __LINE__, "dtype", "not a dtype");
}

ncclRedOp_t operatorOf(ReduceOp op, DType dtype, int ranks) {
  const bool boolean = dtype == DType::Bool;
  switch (op) {
    case ReduceOp::Sum:
      return boolean ? ncclMax : ncclSum;
    case ReduceOp::Prod:
      return boolean ? ncclMin : ncclProd;
    case ReduceOp::Min:
      return ncclMin;
    case ReduceOp::Max:
      return ncclMax;
    case ReduceOp::Avg:
      return ranks == 1 ? ncclSum : ncclAvg;
  }
  throwInternalError(__FILE__, __LINE__, "op", "not a reduction");
}

}  // namespace heddle::comm::nccl
