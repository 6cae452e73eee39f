#include "tools/fuzz/mutator.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>

namespace heddle::fuzz {
namespace {

// Words that once() inserts into the text or writes in place of a token. They change the meaning of
// the text more often than random bytes do.
constexpr std::string_view kWords[] = {"%",
                                       "(",
                                       ")",
                                       "[",
                                       "]",
                                       "{",
                                       "}",
                                       "shard(@m, 0: x)",
                                       "-",
                                       "0",
                                       "1",
                                       "-1",
                                       "/",
                                       "ceildiv(",
                                       "t",
                                       "f32[",
                                       "bf16",
                                       "i64",
                                       "nan",
                                       "inf",
                                       "1e308",
                                       "stream(0: 4)",
                                       "\"",
                                       "return",
                                       "sum",
                                       "where",
                                       "reshape",
                                       "broadcast(1)",
                                       "permute",
                                       "slice",
                                       "matmul",
                                       "partial(sum: x)",
                                       "axes=[0]",
                                       "sizes=[t]",
                                       "9223372036854775807",
                                       "99999999999999999999",
                                       "ranks",
                                       "\\x",
                                       "order=[1, 0]",
                                       "needed order=[1, 0]",
                                       "hinted order=[1, 0]",
                                       "order=[0]",
                                       "inferred",
                                       "keepdim=true",
                                       "slot",
                                       "alias",
                                       "wait",
                                       "$t = ",
                                       "!e",
                                       "stream=1",
                                       "team=@m[x]",
                                       "for i in 0 .. 3 {",
                                       "if rank == 0 {",
                                       "on @m: ",
                                       "group_begin",
                                       "free",
                                       "..",
                                       ",",
                                       "=",
                                       ":",
                                       "@m",
                                       "#",
                                       "\n"};

}  // namespace

std::string Mutator::mutate(const std::vector<std::string>& seeds) {
  std::string text = pick(seeds);
  for (size_t n = below(6) + 1; n > 0; --n) once(text, seeds);
  return text;
}

size_t Mutator::below(size_t limit) { return limit == 0 ? 0 : random_() % limit; }
const std::string& Mutator::pick(const std::vector<std::string>& list) {
  return list[below(list.size())];
}

std::pair<size_t, size_t> Mutator::token(const std::string& text) {
  auto isWord = [&](size_t i) { return std::isalnum(static_cast<unsigned char>(text[i])) != 0; };
  size_t begin = below(text.size());
  size_t end = begin;
  while (begin > 0 && isWord(begin - 1) && isWord(begin)) --begin;
  while (end < text.size() && isWord(end)) ++end;
  return {begin, std::max<size_t>(end - begin, 1)};
}

std::pair<size_t, size_t> Mutator::line(const std::string& text) {
  size_t begin = text.rfind('\n', below(text.size()));
  begin = begin == std::string::npos ? 0 : begin + 1;
  size_t end = text.find('\n', begin);
  return {begin, (end == std::string::npos ? text.size() : end + 1) - begin};
}

void Mutator::once(std::string& text, const std::vector<std::string>& seeds) {
  if (text.empty()) text = pick(seeds);
  const auto [at, length] = token(text);
  const auto [line_at, line_length] = line(text);
  switch (below(10)) {
    case 0:
      text[below(text.size())] = static_cast<char>(below(256));
      break;
    case 1:
      text.erase(at, length);
      break;
    case 2:
      text.insert(at, text.substr(at, length));
      break;
    case 3: {  // replace a token by another token of the text
      const auto [from, size] = token(text);
      text.replace(at, length, text.substr(from, size));
      break;
    }
    case 4:
      text.replace(at, length, kWords[below(std::size(kWords))]);
      break;
    case 5:
      text.insert(at, kWords[below(std::size(kWords))]);
      break;
    case 6:
      text.erase(line_at, line_length);
      break;
    case 7:
      text.insert(line_at, text.substr(line_at, line_length));
      break;
    case 8: {  // insert a line of a random seed text
      const std::string& other = pick(seeds);
      const auto [from, size] = line(other);
      text.insert(line_at, other.substr(from, size));
      break;
    }
    default: {  // repeat the same bytes many times: deep nesting, long lists
      std::string run;
      for (size_t n = below(2000); n > 0 && run.size() < 8000; --n) run += text.substr(at, length);
      text.insert(at, run);
    }
  }
}

}  // namespace heddle::fuzz
