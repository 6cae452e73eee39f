#pragma once

#include <cstdint>

// The binary interface of DLPack 1.1 (https://github.com/dmlc/dlpack), as far as heddle uses it.
// The structs have the same names and layout as in dlpack.h of the DLPack project. A source file
// that includes this header must therefore not include dlpack.h. Public headers only declare the
// structs, so that a program may include dlpack.h.
extern "C" {

struct DLPackVersion {
  uint32_t major;
  uint32_t minor;
};

struct DLDevice {
  int32_t device_type;  // heddle::host::dlpack::DeviceType
  int32_t device_id;    // the number of a GPU; 0 for the CPU
};

struct DLDataType {
  uint8_t code;  // heddle::host::dlpack::TypeCode
  uint8_t bits;
  uint16_t lanes;  // more than 1: each element is a vector
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; nullptr: row-major without gaps
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);  // may be nullptr
};

// All later versions of DLPack keep the members up to `flags`. Another major version may change the
// members after `flags`.
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);  // may be nullptr
  uint64_t flags;
  DLTensor dl_tensor;
};

}  // extern "C"

namespace heddle::host::dlpack {

inline constexpr DLPackVersion kVersion = {1, 1};
inline constexpr uint64_t kReadOnly = 1;  // a bit of DLManagedTensorVersioned::flags

enum DeviceType : int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13 };

enum TypeCode : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6,
  kFloat8E4M3 = 10,  // kDLFloat8_e4m3fn: no infinities, at most 448
  kFloat8E5M2 = 12,
};

}  // namespace heddle::host::dlpack
