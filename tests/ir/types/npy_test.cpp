#include "ir/types/npy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <sstream>

#include "ir/base/check.h"

namespace heddle::npy_test {
namespace {

// Builds a .npy file of version 1 by hand.
std::string file(std::string header, const std::string& data) {
  header += '\n';
  std::string out = std::string("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  return out + header + data;
}

template <class T>
std::string bytesOf(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

HostTensor read(const std::string& bytes, std::optional<DType> wanted = {}) {
  std::istringstream in(bytes);
  return readNpy(in, "x.npy", wanted);
}

std::string errorOf(const std::string& bytes) {
  try {
    read(bytes);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Npy, EveryDtypeRoundTrips) {
  for (DType dtype : kAllDTypes) {
    for (const std::vector<int64_t>& sizes :
         {std::vector<int64_t>{}, {7}, {2, 3}, {0, 5}, {3, 1, 4, 2}}) {
      const HostTensor tensor = randomTensor(dtype, sizes, 1, "x");
      std::ostringstream out;
      writeNpy(out, tensor);
      const HostTensor again = read(out.str(), dtype);
      EXPECT_EQ(again.dtype, dtype);
      EXPECT_EQ(again.sizes, sizes);
      EXPECT_EQ(
          std::memcmp(again.data.get(), tensor.data.get(), static_cast<size_t>(tensor.bytes())), 0);
    }
  }
}

TEST(Npy, WrittenBytesEqualThoseOfNumPy) {
  HostTensor tensor(DType::F32, {2});
  tensor.set(0, 1.0);
  tensor.set(1, -2.0);
  std::ostringstream out;
  writeNpy(out, tensor);
  // 128 bytes precede the data: 6 magic, 2 version, 2 length, 118 header.
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  header.resize(117, ' ');
  EXPECT_EQ(out.str(), file(header, bytesOf<float>({1, -2})));
}

TEST(Npy, FortranOrderAndVersion2AreRead) {
  std::string bytes = file("{'shape': (2, 3), 'fortran_order': True, \"descr\": '<i8'}",
                           bytesOf<int64_t>({0, 3, 1, 4, 2, 5}));
  bytes[6] = 2;
  bytes.insert(10, 2, '\0');  // version 2 stores the length in four bytes
  const HostTensor tensor = read(bytes);
  EXPECT_EQ(tensor.sizes, (std::vector<int64_t>{2, 3}));
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(toInt(tensor.at(i)), i);
}

TEST(Npy, Bf16BitsAreRead) {
  for (const char* descr : {"<V2", "|V2", "<u2"}) {
    const HostTensor tensor =
        read(file(fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': (2,), }}", descr),
                  bytesOf<uint16_t>({0x3f80, 0xc000})));
    EXPECT_EQ(tensor.dtype, DType::BF16);
    EXPECT_EQ(toDouble(tensor.at(0)), 1.0);
    EXPECT_EQ(toDouble(tensor.at(1)), -2.0);
  }
}

TEST(Npy, Float8BitsAreRead) {
  for (const char* descr : {"<V1", "|V1", "|u1"}) {
    const std::string bytes =
        file(fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': (2,), }}", descr),
             bytesOf<uint8_t>({0x3c, 0xc0}));
    const HostTensor wide = read(bytes, DType::F8E5M2);
    EXPECT_EQ(wide.dtype, DType::F8E5M2);
    EXPECT_EQ(toDouble(wide.at(0)), 1.0);
    EXPECT_EQ(toDouble(wide.at(1)), -2.0);
    const HostTensor fine = read(bytes, DType::F8E4M3);
    EXPECT_EQ(fine.dtype, DType::F8E4M3);
    EXPECT_EQ(toDouble(fine.at(0)), 1.5);
    EXPECT_EQ(read(bytes).dtype, descr[1] == 'u' ? DType::U8 : DType::F8E4M3);
    EXPECT_EQ(read(bytes, DType::F16).dtype, read(bytes).dtype);
  }
}

TEST(Npy, WrongFilesAreReported) {
  EXPECT_EQ(errorOf("not a npy file"), "x.npy is not a .npy file");
  EXPECT_EQ(errorOf("\x93NU"), "x.npy: the file ends within its magic: got 3 bytes of 8");
  EXPECT_EQ(errorOf(std::string("\x93NUMPY\x03\x00", 8)), "x.npy: .npy version 3, expected 1 or 2");
  EXPECT_EQ(errorOf(file("{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }", "")),
            "x.npy: elements of type '<i2', expected |b1 (bool), |u1 (u8), |i1 (i8), <i4 (i32), "
            "<i8 (i64), |V1 (f8), <f2 (f16), <V2 or <u2 (bf16), <f4 (f32) or <f8 (f64); convert "
            "with numpy's astype");
  EXPECT_EQ(errorOf(file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "1234")),
            "x.npy: 4 bytes of data, expected 8 for f32[2]");
  EXPECT_EQ(errorOf(file("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "12345")),
            "x.npy: bytes after the data");
  EXPECT_EQ(errorOf(file("{'descr': '<f4', 'shape': (2,), }", "12345678")),
            "x.npy: broken .npy header at byte 33: expected descr, fortran_order and shape");
  EXPECT_EQ(errorOf(file("{'descr': [('a', '<f4')]}", "")),
            "x.npy: broken .npy header at byte 10: expected a plain dtype, as in '<f4'");
  EXPECT_EQ(errorOf(file("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", "")),
            "x.npy: broken .npy header at byte 51: expected a size");
  EXPECT_THROW(readNpy("/no/such/file.npy"), UserError);
}

}  // namespace
}  // namespace heddle::npy_test
