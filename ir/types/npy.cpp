#include "ir/types/npy.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <istream>
#include <limits>
#include <optional>
#include <ostream>
#include <utility>

#include "ir/base/check.h"
#include "ir/system/files.h"

namespace heddle {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;  // bytes to which NumPy aligns the data in the file

std::string_view descrOf(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return "|b1";
    case DType::U8:
      return "|u1";
    case DType::I8:
      return "|i1";
    case DType::I32:
      return "<i4";
    case DType::I64:
      return "<i8";
    case DType::F8E4M3:
    case DType::F8E5M2:
      return "|V1";
    case DType::F16:
      return "<f2";
    case DType::BF16:
      return "<V2";
    case DType::F32:
      return "<f4";
    case DType::F64:
      return "<f8";
  }
  HEDDLE_CHECK(false, "dtype {} is not in the enum", static_cast<int>(dtype));
}

std::optional<DType> dtypeOf(std::string_view descr, std::optional<DType> wanted) {
  if (descr == "|V2" || descr == "V2" || descr == "<u2") return DType::BF16;
  const bool bytes = descr == "<V1" || descr == "|V1" || descr == "V1";
  const bool wants_float8 = wanted && isFloat8(*wanted);
  if (wants_float8 && (bytes || descr == "|u1")) return wanted;
  if (bytes) return DType::F8E4M3;
  for (DType dtype : kAllDTypes) {
    if (descr == descrOf(dtype)) return dtype;
  }
  return std::nullopt;
}

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// Parses the header, which is a Python dict literal: {'descr': '<f4', 'fortran_order': False,
// 'shape': (3, 4), }
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Header run() {
    Header header;
    int seen = 0;
    expect('{');
    while (!accept('}')) {
      std::string key = string();
      expect(':');
      if (key == "descr") {
        if (peek() != '\'' && peek() != '"') fail("a plain dtype, as in '<f4'");
        header.descr = string();
      } else if (key == "fortran_order") {
        header.fortran_order = boolean();
      } else if (key == "shape") {
        header.shape = shape();
      } else {
        userError("{}: the .npy header has the unknown key '{}'", file_, key);
      }
      ++seen;
      if (!accept(',') && peek() != '}') fail("',' or '}'");
    }
    if (seen != 3) fail("descr, fortran_order and shape");
    return header;
  }

 private:
  [[noreturn]] void fail(std::string_view expected) const {
    userError("{}: broken .npy header at byte {}: expected {}", file_, at_, expected);
  }
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("'{}'", c));
  }

  std::string string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("a string");
    const size_t end = text_.find(quote, ++at_);
    if (end == std::string_view::npos) fail("the end of a string");
    std::string out(text_.substr(at_, end - at_));
    at_ = end + 1;
    return out;
  }

  bool boolean() {
    peek();
    for (auto [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return value;
    }
    fail("True or False");
  }

  std::vector<int64_t> shape() {
    std::vector<int64_t> sizes;
    expect('(');
    while (!accept(')')) {
      sizes.push_back(integer());
      if (!accept(',') && peek() != ')') fail("',' or ')'");
    }
    return sizes;
  }

  int64_t integer() {
    if (peek() < '0' || peek() > '9') fail("a size");
    int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, text_[at_] - '0', &value)) {
        fail("a size that fits in 64 bits");
      }
    }
    return value;
  }

  std::string_view text_;
  const std::string& file_;
  size_t at_ = 0;
};

std::string readBytes(std::istream& in, size_t count, const std::string& file,
                      std::string_view what) {
  std::string bytes(count, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(count));
  HEDDLE_USER_CHECK(static_cast<size_t>(in.gcount()) == count,
                    "{}: the file ends within its {}: got {} bytes of {}", file, what, in.gcount(),
                    count);
  return bytes;
}

std::string readHeaderText(std::istream& in, const std::string& file) {
  const std::string start = readBytes(in, 8, file, "magic");
  HEDDLE_USER_CHECK(std::string_view(start).substr(0, 6) == kMagic, "{} is not a .npy file", file);
  const int version = static_cast<unsigned char>(start[6]);
  HEDDLE_USER_CHECK(version == 1 || version == 2, "{}: .npy version {}, expected 1 or 2", file,
                    version);
  const std::string length = readBytes(in, version == 1 ? 2 : 4, file, "header");
  size_t bytes = 0;
  for (size_t i = length.size(); i-- > 0;) {
    bytes = bytes << 8 | static_cast<unsigned char>(length[i]);
  }
  constexpr size_t kLongest = 1 << 20;
  HEDDLE_USER_CHECK(bytes <= kLongest, "{}: the .npy header has {} bytes, expected at most {}",
                    file, bytes, kLongest);
  return readBytes(in, bytes, file, "header");
}

// Throws UserError if the file has fewer bytes than its header states. This check comes before the
// allocation, because a wrong header could otherwise request any amount of memory. If the stream
// has no positions (a pipe), only readData() checks the number of bytes.
void checkDataBytes(std::istream& in, const Header& header, DType dtype, const std::string& file) {
  int64_t expected = sizeOf(dtype);
  for (const int64_t size : header.shape) {
    // HostTensor() reports this overflow, unless a later size is 0: then there are no data to
    // check.
    if (__builtin_mul_overflow(expected, size, &expected)) return;
  }
  const std::istream::pos_type begin = in.tellg();
  if (begin == std::istream::pos_type(-1)) return in.clear();
  const int64_t found = in.seekg(0, std::ios::end).tellg() - begin;
  in.seekg(begin);
  HEDDLE_USER_CHECK(found >= expected, "{}: {} bytes of data, expected {} for {}{}", file, found,
                    expected, name(dtype), str(header.shape));
}

// Reads the data. The file must have exactly as many bytes as its header states.
void readData(std::istream& in, HostTensor& tensor, const std::string& file) {
  in.read(reinterpret_cast<char*>(tensor.data.get()), tensor.bytes());
  HEDDLE_USER_CHECK(in.gcount() == tensor.bytes(), "{}: {} bytes of data, expected {} for {}{}",
                    file, in.gcount(), tensor.bytes(), name(tensor.dtype), str(tensor.sizes));
  HEDDLE_USER_CHECK(in.peek() == std::char_traits<char>::eof(), "{}: bytes after the data", file);
}

HostTensor fromFortran(const HostTensor& stored, std::vector<int64_t> sizes) {
  AxisOrder order = rowMajor(sizes.size());
  std::reverse(order.begin(), order.end());
  TensorDesc desc = denseDesc(stored.dtype, std::move(sizes));
  desc.strides = stridesFor(desc.sizes, order);
  return unpackFrom(stored.data.get(), desc);
}

}  // namespace

HostTensor readNpy(std::istream& in, const std::string& file, std::optional<DType> wanted) {
  const std::string text = readHeaderText(in, file);
  const Header header = HeaderParser(text, file).run();
  const std::optional<DType> dtype = dtypeOf(header.descr, wanted);
  HEDDLE_USER_CHECK(dtype.has_value(),
                    "{}: elements of type '{}', expected |b1 (bool), |u1 (u8), |i1 (i8), <i4 "
                    "(i32), <i8 (i64), |V1 (f8), <f2 (f16), <V2 or <u2 (bf16), <f4 (f32) or <f8 "
                    "(f64); convert with numpy's astype",
                    file, header.descr);
  HostTensor tensor;
  try {
    checkDataBytes(in, header, *dtype, file);
    tensor = HostTensor(*dtype, header.shape);
  } catch (const std::bad_alloc&) {
    userError("{}: no memory for {}{}", file, name(*dtype), str(header.shape));
  }
  readData(in, tensor, file);
  if (*dtype == DType::Bool) {
    uint8_t* bytes = tensor.as<uint8_t>();
    for (int64_t i = 0; i < tensor.numel(); ++i) bytes[i] = bytes[i] != 0;
  }
  return header.fortran_order ? fromFortran(tensor, header.shape) : tensor;
}

HostTensor readNpy(const std::string& path, std::optional<DType> wanted) {
  const RegularFile file = openRegularFile(path);
  // Opens the same file through its descriptor, because the path may by now refer to a different
  // file.
  std::ifstream in(fmt::format("/proc/self/fd/{}", file.file.get()), std::ios::binary);
  HEDDLE_USER_CHECK(in.is_open(), "{}: cannot read the file: {}", path, std::strerror(errno));
  return readNpy(in, path, wanted);
}

namespace {

// Returns the bytes before the data.
std::string headerOf(const HostTensor& tensor) {
  std::string shape;
  for (int64_t size : tensor.sizes) shape += fmt::format("{}, ", size);
  if (tensor.sizes.size() > 1)
    shape.resize(shape.size() - 2);  // a shape of one size keeps its comma
  if (tensor.sizes.size() == 1) shape.pop_back();
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                   descrOf(tensor.dtype), shape);
  // Format version 1 stores the length of the header in two bytes, which is enough for thousands of
  // axes.
  const size_t prefix = kMagic.size() + 4;
  header.append((kAlignment - (prefix + header.size() + 1) % kAlignment) % kAlignment, ' ');
  header += '\n';
  HEDDLE_USER_CHECK(header.size() <= std::numeric_limits<uint16_t>::max(),
                    "a tensor of {} axes does not fit a .npy header", tensor.sizes.size());
  const std::string start = {'\x01', '\0', static_cast<char>(header.size() & 0xff),
                             static_cast<char>(header.size() >> 8)};
  return std::string(kMagic) + start + header;
}

std::string_view dataOf(const HostTensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data.get()), static_cast<size_t>(tensor.bytes())};
}

}  // namespace

void writeNpy(std::ostream& out, const HostTensor& tensor) {
  out << headerOf(tensor) << dataOf(tensor);
}

void writeNpy(const std::string& path, const HostTensor& tensor) {
  writeFileOf(path, {headerOf(tensor), dataOf(tensor)});
}

}  // namespace heddle
