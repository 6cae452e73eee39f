#include "codegen/compile/image_files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <map>
#include <tuple>

#include "codegen/compile/load_image.h"
#include "codegen/compile/runtime_text.h"
#include "codegen/compile/sha256.h"
#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

constexpr int64_t kLargestImage = int64_t{1} << 28;
constexpr std::string_view kNotStored = "kernels are compiled again in each process";
constexpr time_t kUnfinishedSeconds = 3600;

std::string checksumLine(std::string_view image) {
  return fmt::format("{} {}\n", image.size(), sha256(image));
}

std::string imageNameOf(const ImageKey& key) {
  return key.stem + (key.target == Target::Cpp ? ".so" : ".cubin");
}

// Returns whether the name starts with a SHA-256 hash in hexadecimal digits and a dot. Files with
// other names may belong to the user, and must not be removed.
bool isOurName(const std::string& name) {
  constexpr size_t kHashDigits = 64;
  return name.find_first_not_of("0123456789abcdef") == kHashDigits && name[kHashDigits] == '.';
}

struct CachedImage {
  timespec used{};
  std::string stem;
  int64_t bytes = 0;
};

// Returns the images in the folder, least recently used first. Removes temporary files that are
// older than kUnfinishedSeconds, because a killed process has left them.
std::vector<CachedImage> imagesIn(const PrivateFolder& folder) {
  std::map<std::string, CachedImage> images;
  const auto earlier = [](const timespec& a, const timespec& b) {
    return std::tie(a.tv_sec, a.tv_nsec) < std::tie(b.tv_sec, b.tv_nsec);
  };
  for (const PrivateFolder::Entry& file : folder.list()) {
    if (!isOurName(file.name)) continue;
    const size_t dot = std::min(file.name.rfind('.'), file.name.size());
    const std::string extension = file.name.substr(dot);
    if (extension == ".tmp" && file.used.tv_sec + kUnfinishedSeconds < std::time(nullptr)) {
      folder.remove(file.name);
    }
    if (extension != ".key" && extension != ".so" && extension != ".cubin") continue;
    CachedImage& image = images[file.name.substr(0, dot)];
    image.stem = file.name.substr(0, dot);
    image.bytes += file.bytes;
    if (earlier(image.used, file.used)) image.used = file.used;
  }
  std::vector<CachedImage> by_age;
  for (auto& [stem, image] : images) by_age.push_back(std::move(image));
  std::sort(by_age.begin(), by_age.end(),
            [&](const CachedImage& a, const CachedImage& b) { return earlier(a.used, b.used); });
  return by_age;
}

}  // namespace

ImageKey::ImageKey(const KernelSource& source, const KernelCompiler& compiler)
    : target(source.target), entries(source.entries) {
  text = fmt::format("heddle image 2\n{}\n{}\n{}\n{}", target == Target::Cuda ? "cuda" : "cpp",
                     compiler.identity(), runtimeHeader(target), source.text);
  stem = sha256(text);
}

ImageFiles::ImageFiles(std::string folder, int64_t max_bytes)
    : path_(std::move(folder)), max_bytes_(max_bytes) {}

const PrivateFolder* ImageFiles::folder() {
  std::call_once(opened_, [this] { folder_ = openOrReport(path_, kNotStored); });
  return folder_.get();
}

std::shared_ptr<const KernelImage> ImageFiles::load(const ImageKey& key) {
  if (folder() == nullptr) return nullptr;
  constexpr int64_t kChecksumBytes = 100;
  const std::string key_name = key.stem + ".key";
  const auto key_file =
      folder_->read(key_name, static_cast<int64_t>(key.text.size()) + kChecksumBytes);
  if (!key_file) return nullptr;
  const auto file = folder_->read(imageNameOf(key), kLargestImage);
  if (!file) return nullptr;
  std::shared_ptr<const KernelImage> image;
  try {
    if (key_file->bytes != checksumLine(file->bytes) + key.text) {
      userError("its {} bytes are not the bytes that were stored with its key", file->bytes.size());
    }
    image = loadImage(key.target, key.entries, file->bytes, file->file.get());
  } catch (const UserError& error) {
    // The image may also be intact: dlopen() fails if the image needs a library that is no longer
    // installed.
    reportCacheOnce(path_,
                    fmt::format("has a damaged image, {}: {}", imageNameOf(key), error.what()),
                    "its kernel is compiled again");
    return nullptr;
  }
  // evict() sorts images by the modification times of their files.
  folder_->touch(key_name);
  return image;
}

void ImageFiles::save(const std::vector<const ImageKey*>& keys, std::string_view image) {
  if (folder() == nullptr) return;
  const std::string checksum = checksumLine(image);
  const std::string first = imageNameOf(*keys.front());
  std::set<std::string> stems;
  for (const ImageKey* key : keys) {
    const bool linked = key != keys.front() && folder_->link(first, imageNameOf(*key));
    // The image is written before its key, because load() ignores an image without a key. After a
    // crash between the two writes, the image is simply compiled again.
    if ((!linked && !folder_->write(imageNameOf(*key), image)) ||
        !folder_->write(key->stem + ".key", checksum + key->text)) {
      reportCacheOnce(path_, fmt::format("cannot be written: {}", std::strerror(errno)),
                      kNotStored);
      return;
    }
    stems.insert(key->stem);
  }
  evict(stems);
}

// Removes the least recently used images, except the images in `keep` (ImageKey::stem), until the
// folder is not larger than max_bytes_. Processes that have opened or mapped a removed image can
// still use it.
void ImageFiles::evict(const std::set<std::string>& keep) {
  const std::vector<CachedImage> by_age = imagesIn(*folder_);
  int64_t total = 0;
  for (const CachedImage& image : by_age) total += image.bytes;
  for (const CachedImage& image : by_age) {
    if (total <= max_bytes_) break;
    if (keep.contains(image.stem)) continue;
    for (const char* extension : {".key", ".so", ".cubin"}) folder_->remove(image.stem + extension);
    total -= image.bytes;
  }
}

}  // namespace heddle::codegen
