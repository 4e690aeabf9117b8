#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <hortator/training/answers.hpp>
#include <map>
#include <string>
#include <vector>

namespace hortator::accelerator {

/// Keeps answers in files, one for each rank that ever wrote: "rank-3.answers". A record ends with its checksum, so
/// that a truncated one is ignored.
class AnswerJournal {
 public:
  explicit AnswerJournal(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Reads the answers to these prompts, by the prompts' numbers. Answers to other prompts are ignored.
  std::map<std::int64_t, std::string> read(const std::vector<detail::PromptFacts>& prompts) const;

  /// Opens this rank's file to append to; call it before write().
  void open(int rank);
  void write(std::int64_t prompt, const detail::PromptFacts& facts, std::string_view answer);
  void flush();  ///< writes everything to the file, so that it outlives the process
  void close() { file_.close(); }

  void remove() const;  ///< removes all files, and the folder if it is empty then

 private:
  std::vector<std::filesystem::path> files() const;

  std::filesystem::path folder_;
  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace hortator::accelerator
