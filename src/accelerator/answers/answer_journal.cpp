#include "accelerator/answers/answer_journal.hpp"

#include <cerrno>
#include <cstring>
#include <hortator/error.hpp>
#include <iterator>

#include "core/checksum/crc.hpp"
#include "core/text/text.hpp"

namespace hortator::accelerator {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view suffix = ".answers";

struct RecordHead {
  std::int64_t prompt = 0;
  std::uint64_t fingerprint = 0;
  std::uint64_t bytes = 0;
};

std::uint32_t checksum(const RecordHead& head, std::string_view answer) {
  return core::crc32c(answer.data(), answer.size(), core::crc32c(&head, sizeof head));
}

// Decodes a value from the front of the bytes; nothing if they are too short.
template <typename T>
bool take(std::string_view& bytes, T& value) {
  if (bytes.size() < sizeof value) return false;
  bytes.copy(reinterpret_cast<char*>(&value), sizeof value);
  bytes.remove_prefix(sizeof value);
  return true;
}

template <typename See>
void each_record(std::string_view bytes, const See& see) {
  RecordHead head;
  std::uint32_t sum = 0;
  while (take(bytes, head) && head.bytes <= bytes.size()) {
    const auto answer = bytes.substr(0, head.bytes);
    bytes.remove_prefix(head.bytes);
    if (!take(bytes, sum) || sum != checksum(head, answer)) return;
    see(head, answer);
  }
}

}  // namespace

std::vector<fs::path> AnswerJournal::files() const {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().filename().string().ends_with(suffix)) found.push_back(entry->path());
  }
  return found;
}

std::map<std::int64_t, std::string> AnswerJournal::read(const std::vector<detail::PromptFacts>& prompts) const {
  std::map<std::int64_t, std::string> answers;
  for (const auto& path : files()) {
    std::ifstream in(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    if (in.bad()) {
      throw Error({.what = text::concat("The answers in ", path.string(), " cannot be read"),
                   .why = "prompts that were answered before are not answered again",
                   .hint = "check the disk; without the file its prompts are answered again"});
    }
    each_record(bytes, [&](const RecordHead& head, std::string_view answer) {
      if (head.prompt < 0 || head.prompt >= static_cast<std::int64_t>(prompts.size())) return;
      if (prompts[static_cast<std::size_t>(head.prompt)].fingerprint == head.fingerprint)
        answers.insert_or_assign(head.prompt, std::string(answer));
    });
  }
  return answers;
}

void AnswerJournal::open(int rank) {
  fs::create_directories(folder_);
  // Each run writes a new file: records after a truncated one would not be found.
  for (int attempt = 0; path_.empty() || fs::exists(path_); ++attempt)
    path_ = folder_ / text::concat("rank-", rank, attempt > 0 ? text::concat("-", attempt) : "", suffix);
  file_.open(path_, std::ios::binary | std::ios::app);
  if (!file_) {
    throw Error({.what = text::concat("Answers cannot be kept in ", path_.string(), ": ", std::strerror(errno)),
                 .why = "AnswerOptions::keep asks for it"});
  }
}

void AnswerJournal::write(std::int64_t prompt, const detail::PromptFacts& facts, std::string_view answer) {
  const RecordHead head{.prompt = prompt, .fingerprint = facts.fingerprint, .bytes = answer.size()};
  const auto sum = checksum(head, answer);
  file_.write(reinterpret_cast<const char*>(&head), sizeof head);
  file_.write(answer.data(), static_cast<std::streamsize>(answer.size()));
  file_.write(reinterpret_cast<const char*>(&sum), sizeof sum);
}

void AnswerJournal::flush() {
  if (file_.flush()) return;
  throw Error({.what = text::concat("Answers cannot be written to ", path_.string(), ": ", std::strerror(errno)),
               .why = "they would be lost if the run ended now",
               .hint = "make room, or keep them elsewhere"});
}

void AnswerJournal::remove() const {
  std::error_code ignored;
  for (const auto& path : files()) fs::remove(path, ignored);
  if (fs::is_empty(folder_, ignored)) fs::remove(folder_, ignored);
}

}  // namespace hortator::accelerator
