#include "tests/text/runner/case_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>

#include "ir/base/check.h"

namespace heddle::text_tests {
namespace {

constexpr std::string_view kCase = "=== ";
constexpr std::string_view kOptions = "options:";
constexpr std::string_view kExpected = "--- expected";
constexpr std::string_view kError = "--- error";

std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Returns the text without empty lines around it, and with one newline at the end.
std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of('\n');
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \n") + 1 - begin) + "\n";
}

void addOptions(const std::string& line, std::vector<std::string>& options) {
  std::istringstream words(line.substr(kOptions.size()));
  for (std::string word; words >> word;) options.push_back(word);
}

class Reader {
 public:
  explicit Reader(CaseFile& file) : file_(file) {}

  // Adds the next line of the file to the header, or to the input or the expected text of the last
  // case.
  void line(const std::string& text) {
    ++number_;
    if (text.starts_with(kCase)) return begin(text);
    if (file_.cases.empty()) {
      if (text.starts_with(kOptions)) addOptions(text, defaults_);
      file_.header += text + "\n";
      return;
    }
    Case& last = file_.cases.back();
    if (text == kExpected || text == kError) {
      HEDDLE_USER_CHECK(!in_expected_, "{}:{}: the case has two expected texts", file_.path,
                        number_);
      in_expected_ = true;
      last.expected.is_error = text == kError;
    } else if (in_expected_) {
      last.expected.text += text + "\n";
    } else {
      last.written += text + "\n";
      if (last.input.empty() && text.starts_with(kOptions)) {
        addOptions(text, last.options);
      } else {
        last.input += text + "\n";
      }
    }
  }

  void end() {
    HEDDLE_USER_CHECK(in_expected_, "{}: the last case has no `{}` or `{}`", file_.path, kExpected,
                      kError);
    for (Case& each : file_.cases) each.expected.text = trimmed(each.expected.text);
  }

 private:
  void begin(const std::string& text) {
    HEDDLE_USER_CHECK(file_.cases.empty() || in_expected_,
                      "{}:{}: the case above has no `{}` or `{}`", file_.path, number_, kExpected,
                      kError);
    const size_t colon = text.find(": ");
    HEDDLE_USER_CHECK(colon != std::string::npos,
                      "{}:{}: expected `=== name: one sentence of what is expected`", file_.path,
                      number_);
    Case next;
    next.name = text.substr(kCase.size(), colon - kCase.size());
    HEDDLE_USER_CHECK(names_.insert(next.name).second, "{}:{}: two cases are called \"{}\"",
                      file_.path, number_, next.name);
    next.options = defaults_;
    next.line = number_;
    next.written = text + "\n";
    file_.cases.push_back(std::move(next));
    in_expected_ = false;
  }

  CaseFile& file_;
  std::vector<std::string> defaults_;
  std::set<std::string> names_;
  bool in_expected_ = false;
  int number_ = 0;
};

// Returns the pairs of line numbers of a longest common subsequence of `a` and `b`.
std::vector<std::pair<size_t, size_t>> commonLines(const std::vector<std::string>& a,
                                                   const std::vector<std::string>& b) {
  std::vector<std::vector<int>> length(a.size() + 1, std::vector<int>(b.size() + 1, 0));
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      length[i][j] =
          a[i] == b[j] ? length[i + 1][j + 1] + 1 : std::max(length[i + 1][j], length[i][j + 1]);
    }
  }
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j]) {
      pairs.emplace_back(i++, j++);
    } else {
      ++(length[i + 1][j] >= length[i][j + 1] ? i : j);
    }
  }
  return pairs;
}

// One line of a diff: the mark ' ', '-' or '+', and the text.
struct DiffLine {
  char mark;
  std::string text;
  size_t in_a;  // number of lines of `a` before this line
  size_t in_b;
};

std::vector<DiffLine> compared(const std::vector<std::string>& a,
                               const std::vector<std::string>& b) {
  std::vector<DiffLine> lines;
  size_t i = 0, j = 0;
  auto pairs = commonLines(a, b);
  pairs.emplace_back(a.size(), b.size());
  for (const auto& [next_a, next_b] : pairs) {
    for (; i < next_a; ++i) lines.push_back({'-', a[i], i, j});
    for (; j < next_b; ++j) lines.push_back({'+', b[j], i, j});
    if (i < a.size() && j < b.size()) lines.push_back({' ', a[i], i, j}), ++i, ++j;
  }
  return lines;
}

}  // namespace

CaseFile readCases(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  HEDDLE_USER_CHECK(in.good(), "{}: cannot be read", path);
  CaseFile file;
  file.path = path;
  file.stage = std::filesystem::path(path).parent_path().filename().string();
  Reader reader(file);
  for (std::string line; std::getline(in, line);) reader.line(line);
  reader.end();
  return file;
}

void writeCases(const CaseFile& file, const std::vector<Outcome>& outcomes) {
  std::string text = file.header;
  for (size_t i = 0; i < file.cases.size(); ++i) {
    if (i > 0) text += "\n";
    text += file.cases[i].written;
    text +=
        std::string(outcomes[i].is_error ? kError : kExpected) + "\n" + trimmed(outcomes[i].text);
  }
  std::ofstream out(file.path, std::ios::binary);
  out << text;
  out.close();
  HEDDLE_USER_CHECK(out.good(), "{}: cannot be written", file.path);
}

std::string unifiedDiff(const std::string& expected, const std::string& actual) {
  if (expected == actual) return "";
  constexpr size_t kContext = 3;
  const std::vector<DiffLine> lines = compared(linesOf(expected), linesOf(actual));
  std::string text = "--- expected\n+++ actual\n";
  size_t shown = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].mark == ' ' || i < shown) continue;
    // A hunk has kContext equal lines before and after its differences. Differences that are at
    // most 2 * kContext lines apart share one hunk.
    const size_t begin = std::max(shown, i - std::min(i, kContext));
    size_t last = i;
    for (size_t k = i; k < lines.size() && k <= last + 2 * kContext; ++k) {
      if (lines[k].mark != ' ') last = k;
    }
    const size_t end = std::min(lines.size(), last + 1 + kContext);
    const auto count = [&](char other) {
      return std::count_if(lines.begin() + static_cast<std::ptrdiff_t>(begin),
                           lines.begin() + static_cast<std::ptrdiff_t>(end),
                           [&](const DiffLine& line) { return line.mark != other; });
    };
    text += fmt::format("@@ -{},{} +{},{} @@\n", lines[begin].in_a + 1, count('+'),
                        lines[begin].in_b + 1, count('-'));
    for (size_t k = begin; k < end; ++k) text += lines[k].mark + lines[k].text + "\n";
    shown = end;
  }
  return text;
}

}  // namespace heddle::text_tests
