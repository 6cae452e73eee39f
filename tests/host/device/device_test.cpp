#include "host/device/device.h"

#include <gtest/gtest.h>

#include <exception>
#include <new>
#include <string>
#include <vector>

#include "ir/base/error.h"

namespace heddle::host::device_test {
namespace {

template <class Error>
std::string rethrown(const ErrorSink& sink, const std::vector<std::string>* texts) {
  try {
    sink.rethrow(texts);
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing";
}

TEST(DeviceErrorSink, FirstErrorIsKeptWithItsInstruction) {
  ErrorSink sink;
  EXPECT_FALSE(sink.failed());
  sink.rethrow();
  sink.report(std::make_exception_ptr(UserError("first")), 1);
  sink.report(std::make_exception_ptr(UserError("second")), 0);
  EXPECT_TRUE(sink.failed());
  EXPECT_EQ(rethrown<UserError>(sink, nullptr), "instruction 1: first");
  const std::vector<std::string> texts = {"a", "free %x"};
  EXPECT_EQ(rethrown<UserError>(sink, &texts), "instruction 1 (free %x): first");
  sink.clear();
  EXPECT_FALSE(sink.failed());
  sink.rethrow();
}

TEST(DeviceErrorSink, ErrorTypeIsKept) {
  ErrorSink sink;
  sink.report(std::make_exception_ptr(InternalError("bug")), -1);
  EXPECT_EQ(rethrown<InternalError>(sink, nullptr), "bug");
  sink.clear();
  sink.report(std::make_exception_ptr(std::bad_alloc()), 3);
  EXPECT_EQ(rethrown<UserError>(sink, nullptr), "instruction 3: out of memory");
}

}  // namespace
}  // namespace heddle::host::device_test
