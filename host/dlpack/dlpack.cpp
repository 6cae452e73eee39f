#include "host/dlpack/dlpack.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/dlpack/dlpack_abi.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

DLDataType dlpackTypeOf(DType dtype) {
  const auto bits = static_cast<uint8_t>(8 * sizeOf(dtype));
  switch (dtype) {
    case DType::Bool:
      return {dlpack::kBool, bits, 1};
    case DType::U8:
      return {dlpack::kUInt, bits, 1};
    case DType::I8:
    case DType::I32:
    case DType::I64:
      return {dlpack::kInt, bits, 1};
    case DType::F8E4M3:
      return {dlpack::kFloat8E4M3, bits, 1};
    case DType::F8E5M2:
      return {dlpack::kFloat8E5M2, bits, 1};
    case DType::BF16:
      return {dlpack::kBfloat, bits, 1};
    case DType::F16:
    case DType::F32:
    case DType::F64:
      return {dlpack::kFloat, bits, 1};
  }
  HEDDLE_CHECK(false, "dtype {}", static_cast<int>(dtype));
}

// Returns the name of an element type, such as "uint16".
std::string textOf(const DLDataType& type) {
  const std::string lanes = type.lanes == 1 ? "" : fmt::format(" with {} lanes", type.lanes);
  const char* kind = nullptr;
  switch (type.code) {
    case dlpack::kInt:
      kind = "int";
      break;
    case dlpack::kUInt:
      kind = "uint";
      break;
    case dlpack::kFloat:
      kind = "float";
      break;
    case dlpack::kBfloat:
      kind = "bfloat";
      break;
    case dlpack::kComplex:
      kind = "complex";
      break;
    case dlpack::kBool:
      kind = "bool";
      break;
    default:
      return fmt::format("type code {} with {} bits{}", type.code, type.bits, lanes);
  }
  return fmt::format("{}{}{}", kind, type.bits, lanes);
}

DType dtypeOf(const DLDataType& type) {
  std::string names;
  for (const DType dtype : kAllDTypes) {
    const DLDataType other = dlpackTypeOf(dtype);
    if (type.code == other.code && type.bits == other.bits && type.lanes == other.lanes) {
      return dtype;
    }
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name(dtype));
  }
  userErrorWith(ErrorCode::Type,
                "a DLPack tensor has elements of type {}, expected one of {} with one lane: cast "
                "the tensor first",
                textOf(type), names);
}

// Returns the name of a device, such as "cuda:1".
std::string textOf(const DLDevice& device) {
  switch (device.device_type) {
    case dlpack::kCpu:
      return "the CPU";
    case dlpack::kCuda:
      return fmt::format("cuda:{}", device.device_id);
    case dlpack::kCudaHost:
      return "pinned memory of the CPU";
    case dlpack::kCudaManaged:
      return "CUDA managed memory";
    default:
      return fmt::format("device {} of type {}", device.device_id, device.device_type);
  }
}

// Returns the DLPack device of the memory that a device allocates. `current` makes the GPU current.
// The second call of makeCurrent() returns the device that was current before it, which is this
// GPU.
DLDevice deviceOf(Device& device) {
  if (device.kind() != DeviceKind::Cuda) return {dlpack::kCpu, 0};
  const CurrentDevice current(device);
  const Device::Current state = device.makeCurrent();
  device.restoreCurrent(state);
  return {dlpack::kCuda, state.device};
}

void checkDevice(Device& device, const DLDevice& found) {
  const DLDevice expected = deviceOf(device);
  const bool fits =
      expected.device_type == dlpack::kCpu
          ? found.device_type == dlpack::kCpu || found.device_type == dlpack::kCudaHost
          : found.device_type == dlpack::kCudaManaged ||
                (found.device_type == dlpack::kCuda && found.device_id == expected.device_id);
  HEDDLE_USER_CHECK_CODE(Unsupported, fits,
                         "a DLPack tensor is on {}, but the device {} needs a tensor on {}: copy "
                         "the tensor first",
                         textOf(found), device.description(), textOf(expected));
}

// Describes a tensor. An axis of one element may have any stride, and so may every axis of a tensor
// without elements.
TensorDesc descOf(const DLTensor& given) {
  HEDDLE_USER_CHECK_CODE(ShapeMismatch, given.ndim >= 0, "a DLPack tensor has {} axes", given.ndim);
  HEDDLE_USER_CHECK_CODE(ShapeMismatch, given.ndim == 0 || given.shape != nullptr,
                         "a DLPack tensor with {} axes has no sizes", given.ndim);
  const std::vector<int64_t> sizes(given.shape, given.shape + given.ndim);
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    HEDDLE_USER_CHECK_CODE(ShapeMismatch, sizes[axis] >= 0,
                           "axis {} of a DLPack tensor has the negative size {}", axis,
                           sizes[axis]);
  }
  TensorDesc desc = denseDesc(dtypeOf(given.dtype), sizes);
  if (given.strides == nullptr || desc.numel() == 0) return desc;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    const int64_t stride = given.strides[axis];
    if (stride < 0 && sizes[axis] == 1) continue;
    HEDDLE_USER_CHECK_CODE(ShapeMismatch, stride >= 0,
                           "axis {} of a DLPack tensor with the sizes {} has the negative stride "
                           "{}, expected 0 or more: copy the tensor first",
                           axis, str(sizes), stride);
    desc.strides[axis] = stride;
  }
  return desc;
}

void* dataOf(const DLTensor& given, const TensorDesc& desc) {
  if (given.data == nullptr) {
    HEDDLE_USER_CHECK(desc.numel() == 0, "a DLPack tensor with the sizes {} has no data",
                      str(desc.sizes));
    return nullptr;
  }
  std::byte* data = static_cast<std::byte*>(given.data) + given.byte_offset;
  HEDDLE_USER_CHECK(
      reinterpret_cast<uintptr_t>(data) % static_cast<uint64_t>(sizeOf(desc.dtype)) == 0,
      "the data of a DLPack tensor is at the address {}, expected a multiple of {} bytes for {}: "
      "copy the tensor first",
      fmt::ptr(data), sizeOf(desc.dtype), name(desc.dtype));
  return data;
}

// Owns a managed tensor of another library.
template <class Managed>
struct Received {
  Received() = default;
  Received(const Received&) = delete;
  Received& operator=(const Received&) = delete;
  ~Received() {
    if (managed != nullptr && managed->deleter != nullptr) managed->deleter(managed);
  }
  Managed* managed = nullptr;
};

// The function takes ownership of `managed` only after the last operation that may throw.
template <class Managed>
Tensor receive(Device& device, Managed* managed) {
  checkDevice(device, managed->dl_tensor.device);
  Tensor tensor;
  tensor.desc = descOf(managed->dl_tensor);
  tensor.data = dataOf(managed->dl_tensor, tensor.desc);
  const auto received = std::make_shared<Received<Managed>>();
  received->managed = managed;
  tensor.owner = received;
  return tensor;
}

// A managed tensor for another library, with the lists and the owner to which it refers. The
// consumer deletes it through Managed::deleter.
template <class Managed>
struct Given {
  Managed managed = {};
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  std::shared_ptr<void> owner;
};

std::vector<int64_t> stridesOf(const TensorDesc& desc) {
  const size_t rank = desc.rank();
  HEDDLE_USER_CHECK_CODE(ShapeMismatch,
                         (desc.strides.empty() || desc.strides.size() == rank) &&
                             (desc.alloc.empty() || desc.alloc.size() == rank),
                         "the lists of the descriptor of a tensor for DLPack differ in length");
  if (!desc.strides.empty()) return desc.strides;
  return stridesFor(desc.alloc.empty() ? desc.sizes : desc.alloc, rowMajor(desc.rank()));
}

template <class Managed>
std::unique_ptr<Given<Managed>> give(Device& device, const Tensor& tensor) {
  const TensorDesc& desc = tensor.desc;
  HEDDLE_USER_CHECK_CODE(Unsupported, device.kind() != DeviceKind::Null,
                         "a null device has no memory for a DLPack tensor");
  HEDDLE_USER_CHECK(desc.held, "this rank holds no part of the tensor for DLPack");
  HEDDLE_USER_CHECK(tensor.data != nullptr || desc.numel() == 0,
                    "the tensor {}{} for DLPack has no data", name(desc.dtype), str(desc.sizes));
  auto given = std::make_unique<Given<Managed>>();
  given->sizes = desc.sizes;
  given->strides = stridesOf(desc);
  HEDDLE_USER_CHECK_CODE(ShapeMismatch, given->strides.size() == desc.rank(),
                         "the tensor for DLPack has {} axes and {} strides", desc.rank(),
                         given->strides.size());
  given->owner = tensor.owner;
  DLTensor& out = given->managed.dl_tensor;
  out.data = desc.numel() == 0 ? nullptr : tensor.data;
  out.device = tensor.in_host_memory ? DLDevice{dlpack::kCpu, 0} : deviceOf(device);
  out.ndim = static_cast<int32_t>(desc.rank());
  out.dtype = dlpackTypeOf(desc.dtype);
  out.shape = given->sizes.data();
  out.strides = given->strides.data();
  given->managed.manager_ctx = given.get();
  given->managed.deleter = [](Managed* self) {
    delete static_cast<Given<Managed>*>(self->manager_ctx);
  };
  return given;
}

}  // namespace

Tensor fromDLPack(Device& device, DLManagedTensor* managed) {
  HEDDLE_USER_CHECK(managed != nullptr, "fromDLPack: the managed tensor is a null pointer");
  return receive(device, managed);
}

Tensor fromDLPack(Device& device, DLManagedTensorVersioned* managed, DLPackAccess access) {
  HEDDLE_USER_CHECK(managed != nullptr, "fromDLPack: the managed tensor is a null pointer");
  HEDDLE_USER_CHECK_CODE(Unsupported, managed->version.major == dlpack::kVersion.major,
                         "a DLPack tensor has version {}.{}, expected version {}",
                         managed->version.major, managed->version.minor, dlpack::kVersion.major);
  const bool is_read_only = (managed->flags & dlpack::kReadOnly) != 0;
  HEDDLE_USER_CHECK(!is_read_only || access == DLPackAccess::ReadOnly,
                    "a DLPack tensor is read-only: pass DLPackAccess::ReadOnly if no run writes "
                    "it, or copy the tensor first");
  return receive(device, managed);
}

DLManagedTensor* toDLPack(Device& device, const Tensor& tensor) {
  return &give<DLManagedTensor>(device, tensor).release()->managed;
}

DLManagedTensorVersioned* toDLPackVersioned(Device& device, const Tensor& tensor,
                                            DLPackAccess access) {
  auto given = give<DLManagedTensorVersioned>(device, tensor);
  given->managed.version = dlpack::kVersion;
  if (access == DLPackAccess::ReadOnly) given->managed.flags = dlpack::kReadOnly;
  return &given.release()->managed;
}

}  // namespace heddle::host
